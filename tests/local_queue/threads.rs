//! Threads of one process that want one lock: they use the local queue as calls and guards do.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::thread::panicking;
use std::time::Instant;

use crate::book::{Book, Seen};
use crate::local_queue::{Entered, Left, LocalQueues, Turn, Waiter};
use crate::sync::{Sender, bounded, spawn, step};

type Key = &'static str;

/// What a thread does.
pub(crate) type Thread = Box<dyn FnOnce() + Send>;

const NAME: Key = "name";

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

/// What comes with the turn.
#[derive(Default)]
enum Word {
    #[default]
    Ask,
    Have(Lease),
}

/// Ownership of the lock. It has to end by a release.
struct Lease {
    is_spent: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let is_over = self.is_spent || panicking();
        assert!(is_over, "a lease was lost on the way");
    }
}

/// Some threads, one queue, and the server with its lock.
pub(crate) struct Process {
    queues: LocalQueues<Key, Word>,
    /// To whom its guards give their leases, one after the other.
    hands_over: &'static [HandsOver],
    book: sync::Mutex<Book>,
}

/// How often a thread looks before it gives up; `None` never does.
#[derive(Clone, Copy)]
struct Patience(Option<u32>);

impl Patience {
    const ENDLESS: Self = Patience(None);

    /// Begins an attempt, and says whether it is the last.
    fn begin(&mut self) -> bool {
        let is_last = self.0 == Some(0);
        self.0 = self.0.map(|looks| looks.saturating_sub(1));
        is_last
    }
}

/// What ends a wait, if something does.
type Cancelled<'a> = Option<&'a Arc<AtomicBool>>;

fn is_set(cancelled: Cancelled<'_>) -> bool {
    cancelled.is_some_and(|cancelled| cancelled.load(Ordering::SeqCst))
}

impl Process {
    pub(crate) fn new(hands_over: &'static [HandsOver]) -> Arc<Self> {
        Arc::new(Process {
            queues: LocalQueues::default(),
            hands_over,
            book: sync::Mutex::default(),
        })
    }

    /// To look something up is no step.
    fn book(&self) -> sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, seen: Seen) {
        self.book().seen.insert(seen);
    }

    /// Nothing is left. Tells what was seen.
    pub(crate) fn end(&self) -> BTreeSet<Seen> {
        let is_left = self.queues.len() > 0 || self.queues.room() > 100;
        assert!(!is_left, "a queue was left");
        self.book().end()
    }

    fn thread(self: &Arc<Self>, does: impl FnOnce(&Arc<Self>) + Send + 'static) -> Thread {
        let process = self.clone();
        Box::new(move || does(&process))
    }

    /// A thread that waits for the lock for ever.
    pub(crate) fn locks(self: &Arc<Self>) -> Thread {
        self.thread(|it| it.lock().hold())
    }

    /// A thread that gives up after `looks`, each of which may come at any time.
    pub(crate) fn locks_for(self: &Arc<Self>, looks: u32) -> Thread {
        let patience = Patience(Some(looks));
        self.thread(move |it| it.acquire(patience, None).iter().for_each(Guard::hold))
    }

    pub(crate) fn tries(self: &Arc<Self>) -> Thread {
        self.locks_for(0)
    }

    /// A thread that waits for the lock until another cancels that, which may come at any time.
    pub(crate) fn locks_until_cancelled(self: &Arc<Self>) -> Thread {
        self.thread(|it| {
            let cancelled = Arc::new(AtomicBool::new(false));
            let guard = it.acquire(Patience::ENDLESS, Some(&cancelled));
            guard.iter().for_each(Guard::hold);
        })
    }

    /// A thread whose lease is found to be lost by another, which ends its turn at any time.
    pub(crate) fn loses(self: &Arc<Self>) -> Thread {
        self.thread(|it| {
            let mut guard = it.lock();
            let (right, process) = (guard.right.take(), it.clone());
            let renewer = spawn(move || {
                step();
                if right
                    .as_ref()
                    .is_some_and(|right| right.turn().has_successor())
                {
                    process.see(Seen::FreedWhileHeld);
                }
                drop(right);
            });
            guard.hold();
            drop(guard);
            renewer.join().expect("the renewer's panic ends the model");
        })
    }

    fn lock(self: &Arc<Self>) -> Guard {
        let guard = self.acquire(Patience::ENDLESS, None);
        guard.expect("who waits for ever gets the lock")
    }

    fn acquire(
        self: &Arc<Self>,
        mut patience: Patience,
        cancelled: Cancelled<'_>,
    ) -> Option<Guard> {
        let (right, word) = self.enter(&mut patience, cancelled)?;
        if let Word::Have(lease) = word {
            self.see(Seen::HandedOver);
            return Some(self.guard(lease, right));
        }
        if is_set(cancelled) {
            self.see(Seen::CancelMetTurn);
            return None;
        }
        let (grant, granted) = bounded(1);
        loop {
            let is_last = patience.begin();
            let waits = patience.0.is_none().then_some(&grant);
            let has_it = self.ask(waits);
            if let Some(right) = &right {
                right.say_taken();
            }
            if !has_it && waits.is_some() {
                granted.recv().expect("it is granted");
            }
            if has_it || waits.is_some() {
                return Some(self.guard(Lease { is_spent: false }, right));
            }
            if is_last {
                return None;
            }
        }
    }

    /// Takes the lock of the server, or has itself told of a grant.
    fn ask(&self, waits: Option<&Sender<()>>) -> bool {
        step();
        let mut book = self.book();
        if book.is_held {
            if let Some(grant) = waits {
                let other = book.asker.replace(grant.clone());
                assert!(other.is_none(), "two ask with a turn");
            }
            return false;
        }
        book.is_held = true;
        true
    }

    /// Gives the lock to who asked, who hears of it a little later.
    fn release(&self, mut lease: Lease) {
        step();
        lease.is_spent = true;
        let asker = {
            let mut book = self.book();
            book.is_held = book.asker.is_some();
            book.asker.take()
        };
        if let Some(asker) = asker {
            assert!(asker.try_send(()).is_ok());
        }
    }

    fn guard(self: &Arc<Self>, lease: Lease, right: Option<Right>) -> Guard {
        Guard {
            process: self.clone(),
            lease: Some(lease),
            right,
        }
    }

    /// Takes the turn or waits for it, and goes on without it when its patience is at an end; or gives up, because the
    /// lock is known to be taken.
    fn enter(
        self: &Arc<Self>,
        patience: &mut Patience,
        cancelled: Cancelled<'_>,
    ) -> Option<(Option<Right>, Word)> {
        let began = self.book().now();
        let waiter = match self.queues.enter(&NAME) {
            Entered::First(turn) => return Some((Some(self.right(turn)), Word::Ask)),
            Entered::Offered(turn, word) => {
                self.see(Seen::WentAhead);
                return Some((Some(self.right(turn)), word));
            }
            Entered::Behind(waiter) => waiter,
        };
        match self.stand_in_queue(waiter, patience, cancelled, began) {
            Left::Given(turn, word) => Some((Some(self.right(turn)), word)),
            Left::Gone { .. } if is_set(cancelled) => {
                self.see(Seen::CancelledInQueue);
                None
            }
            Left::Gone { taken: true } => {
                let was_taken = self.book().was_claimed(began);
                assert!(was_taken, "nobody knew that the lock is taken");
                self.see(Seen::KnownToBeTaken);
                None
            }
            Left::Gone { taken: false } => {
                *patience = Patience(Some(0));
                self.see(Seen::AskedWithoutTurn);
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
        self.book().waits(began);
        let deadline = patience.0.is_some().then(Instant::now);
        while !patience.begin() && !is_set(cancelled) {
            match waiter.wait(deadline) {
                Ok((turn, word)) => {
                    self.book().waits_no_more(began);
                    self.book().is_served(began);
                    return Left::Given(turn, word);
                }
                Err(still) => waiter = still,
            }
        }
        self.book().waits_no_more(began);
        let left = waiter.leave();
        if let Left::Given(..) = left {
            self.see(Seen::GivenAtTheLastMoment);
            // What is offered also goes to whoever leaves.
            if !self.hands_over.contains(&HandsOver::ToAny) {
                self.book().is_served(began);
            }
        }
        left
    }

    fn right(self: &Arc<Self>, turn: Turn<Key, Word>) -> Right {
        self.book().take_turn();
        Right {
            turn: Some(turn),
            process: self.clone(),
        }
    }
}

type Give = fn(Turn<Key, Word>, Word) -> Result<(), (Turn<Key, Word>, Word)>;

/// A turn that is in the book.
struct Right {
    turn: Option<Turn<Key, Word>>,
    process: Arc<Process>,
}

impl Right {
    fn turn(&self) -> &Turn<Key, Word> {
        self.turn.as_ref().expect("there until it is passed")
    }

    fn say_taken(&self) {
        self.process.book().claim();
        self.turn().set_taken(true);
    }

    fn give(mut self, lease: Lease, give: Give) -> Result<(), (Self, Lease)> {
        let (process, turn) = (self.process.clone(), self.turn.take());
        process.book().end_turn();
        let turn = turn.expect("there until it is passed");
        match give(turn, Word::Have(lease)) {
            Ok(()) => Ok(()),
            Err((turn, Word::Have(lease))) => Err((process.right(turn), lease)),
            Err(_) => panic!("the word comes back as it was given"),
        }
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.process.book().end_turn();
        let claims = self.process.book().claims();
        drop(turn);
        self.process.book().unclaim(claims);
    }
}

/// The lock is held. The guard hands its lease over to the next thread when it ends.
struct Guard {
    process: Arc<Process>,
    lease: Option<Lease>,
    right: Option<Right>,
}

impl Guard {
    /// Time passes.
    fn hold(&self) {
        step();
    }

    fn hand_over(&mut self, lease: Lease) -> Result<(), Lease> {
        let hands_over = {
            let mut book = self.process.book();
            book.ended += 1;
            self.process.hands_over[book.ended % self.process.hands_over.len()]
        };
        let give: Give = match hands_over {
            HandsOver::No => return Err(lease),
            HandsOver::ToFirst => Turn::pass,
            HandsOver::ToAny => Turn::offer,
        };
        let Some(right) = self.right.take_if(|right| right.turn().has_successor()) else {
            return Err(lease);
        };
        right.give(lease, give).map_err(|(right, lease)| {
            self.right = Some(right);
            lease
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let lease = self.lease.take().expect("it ends once");
        if panicking() {
            drop(lease);
        } else if let Err(lease) = self.hand_over(lease) {
            self.process.release(lease);
        }
    }
}
