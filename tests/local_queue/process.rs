//! The threads of one process: they use the local queue as `acquire.rs`, `guard.rs` and `held.rs` do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::panicking;
use std::time::Instant;

use crate::asker::{Asker, Patience, Place, Right};
use crate::guard::Guard;
use crate::local_queue::{Entered, Left, LocalQueues, Turn, Waiter};
use crate::sync::{spawn, step};
use crate::world::{Lease, Seen, World};

pub(crate) type Key = &'static str;

/// What a thread does.
pub(crate) type Thread = Box<dyn FnOnce() + Send>;

const NAME: Key = "name";

/// Some threads, one queue.
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) hands_over: Hands,
    queues: LocalQueues<Key, Word>,
    pub(crate) world: Arc<World>,
}

/// To whom a guard gives its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandsOver {
    /// Nobody.
    No,
    /// The first that waits.
    ToFirst,
    /// Whoever comes or looks first.
    ToAny,
}

/// To whom the guards of a process give their leases, one after the other.
pub(crate) struct Hands {
    turns: &'static [HandsOver],
    made: AtomicUsize,
}

impl Hands {
    pub(crate) fn next(&self) -> HandsOver {
        self.turns[self.made.fetch_add(1, Ordering::Relaxed) % self.turns.len()]
    }

    /// Whether those that wait are served in their order.
    fn are_in_order(&self) -> bool {
        !self.turns.contains(&HandsOver::ToAny)
    }
}

/// What comes with the turn.
#[derive(Default)]
pub(crate) enum Word {
    #[default]
    Ask,
    Wait(Place),
    Have(Lease),
}

impl Process {
    pub(crate) fn new(world: &Arc<World>, id: u32, hands_over: &'static [HandsOver]) -> Arc<Self> {
        let hands_over = Hands {
            turns: hands_over,
            made: AtomicUsize::new(0),
        };
        Arc::new(Process {
            id,
            hands_over,
            queues: LocalQueues::default(),
            world: world.clone(),
        })
    }

    fn lock(self: &Arc<Self>) -> Guard {
        self.acquire(Patience(None), None)
            .expect("who waits for ever gets the lock")
    }

    /// Gives up after `looks`, each of which may come at any time.
    fn lock_for(self: &Arc<Self>, looks: u32) -> Option<Guard> {
        self.acquire(Patience(Some(looks)), None)
    }

    fn try_lock(self: &Arc<Self>) -> Option<Guard> {
        self.acquire(Patience(Some(0)), None)
    }

    /// A thread that waits for the lock for ever.
    pub(crate) fn locks(self: &Arc<Self>) -> Thread {
        let process = self.clone();
        Box::new(move || process.lock().hold())
    }

    /// A thread that gives up after `looks`.
    pub(crate) fn locks_for(self: &Arc<Self>, looks: u32) -> Thread {
        let process = self.clone();
        Box::new(move || process.lock_for(looks).iter().for_each(Guard::hold))
    }

    pub(crate) fn tries(self: &Arc<Self>) -> Thread {
        let process = self.clone();
        Box::new(move || process.try_lock().iter().for_each(Guard::hold))
    }

    /// A thread that waits for the lock until another cancels that, which may come at any time.
    pub(crate) fn locks_until_cancelled(self: &Arc<Self>) -> Thread {
        let process = self.clone();
        Box::new(move || {
            let cancelled = Arc::new(AtomicBool::new(false));
            let guard = process.acquire(Patience(None), Some(&cancelled));
            guard.iter().for_each(Guard::hold);
        })
    }

    /// A thread that loses its lease, or has dropped its guard by then.
    pub(crate) fn loses(self: &Arc<Self>) -> Thread {
        let process = self.clone();
        Box::new(move || {
            let guard = process.lock();
            let renewer = spawn(guard.loss());
            guard.hold();
            drop(guard);
            renewer.join().expect("the renewer's panic ends the model");
        })
    }

    fn see(&self, seen: Seen) {
        self.world.book().see(seen);
    }

    fn acquire(
        self: &Arc<Self>,
        mut patience: Patience,
        cancelled: Cancelled<'_>,
    ) -> Option<Guard> {
        let (right, word) = self.enter(&mut patience, cancelled)?;
        let place = match word {
            Word::Ask => Place::new(&self.world),
            Word::Wait(place) => {
                self.see(Seen::PlacePassedOn);
                place
            }
            Word::Have(lease) => {
                let lease = lease.handed_over();
                if lease.is_valid() {
                    self.see(Seen::HandedOver);
                    return Some(Guard::new(self, lease, right));
                }
                self.see(Seen::ExpiredOnTheWay);
                if let Some(right) = &right {
                    right.set_taken(false);
                }
                self.world.release(lease);
                Place::new(&self.world)
            }
        };
        let asker = Asker {
            process: self.clone(),
            patience,
            place,
            right,
        };
        if is_set(cancelled) {
            self.see(Seen::CancelMetTurn);
            asker.end();
            return None;
        }
        asker.run()
    }

    /// Takes the turn or waits for it, and goes on without it when its patience is at an end; or gives up, because the
    /// lock is known to be taken.
    fn enter(
        self: &Arc<Self>,
        patience: &mut Patience,
        cancelled: Cancelled<'_>,
    ) -> Option<(Option<Right>, Word)> {
        let began = self.world.book().now();
        let waiter = match self.queues.enter(&NAME) {
            Entered::First(turn) => return Some((Some(self.sit(turn)), Word::Ask)),
            Entered::Offered(turn, word) => {
                self.see(Seen::WentAhead);
                return Some((Some(self.sit(turn)), word));
            }
            Entered::Behind(waiter) => waiter,
        };
        match self.stand_in_queue(waiter, patience, cancelled, began) {
            Left::Given(turn, word) => Some((Some(self.sit(turn)), word)),
            Left::Gone { .. } if is_set(cancelled) => {
                self.see(Seen::CancelledInQueue);
                None
            }
            Left::Gone { taken: true } => {
                let was_taken = self.world.book().was_claimed(self.id, began);
                assert!(was_taken, "nobody knew that the lock is taken");
                self.see(Seen::KnownToBeTaken);
                None
            }
            Left::Gone { taken: false } => {
                patience.run_out();
                self.see(Seen::AskedWithoutSeat);
                Some((None, Word::Ask))
            }
        }
    }

    fn stand_in_queue(
        &self,
        mut waiter: Waiter<Key, Word>,
        patience: &mut Patience,
        cancelled: Cancelled<'_>,
        began: u64,
    ) -> Left<Key, Word> {
        if let Some(cancelled) = cancelled {
            let look_again = waiter.look_again().expect("nobody else has it");
            let cancelled = cancelled.clone();
            spawn(move || {
                step();
                cancelled.store(true, Ordering::SeqCst);
                look_again.tell();
                look_again.tell();
            });
        }
        self.world.book().waits(self.id, began);
        let deadline = patience.0.is_some().then(Instant::now);
        while !patience.begin() && !is_set(cancelled) {
            match waiter.wait(deadline) {
                Ok((turn, word)) => {
                    self.world.book().waits_no_more(self.id, began);
                    self.world.book().is_served(self.id, began);
                    return Left::Given(turn, word);
                }
                Err(still) => waiter = still,
            }
        }
        self.world.book().waits_no_more(self.id, began);
        let left = waiter.leave();
        if let Left::Given(..) = left {
            self.see(Seen::GivenAtTheLastMoment);
            // What is offered also goes to whoever leaves.
            if self.hands_over.are_in_order() {
                self.world.book().is_served(self.id, began);
            }
        }
        left
    }

    pub(crate) fn sit(self: &Arc<Self>, turn: Turn<Key, Word>) -> Right {
        self.world.book().sit(self.id);
        Right {
            turn: Some(turn),
            process: self.clone(),
        }
    }
}

/// What ends a wait, if something does.
type Cancelled<'a> = Option<&'a Arc<AtomicBool>>;

fn is_set(cancelled: Cancelled<'_>) -> bool {
    cancelled.is_some_and(|cancelled| cancelled.load(Ordering::SeqCst))
}

impl Drop for Process {
    fn drop(&mut self) {
        if !panicking() {
            assert_eq!(self.queues.len(), 0, "a queue was left");
        }
    }
}
