//! The threads of one process: they use the local queue as `acquire.rs`, `guard.rs` and `held.rs` do.

use std::sync::{self, Arc, PoisonError};
use std::thread::panicking;
use std::time::Instant;

use crate::local_queue::{Entered, Left, LocalQueues, Turn, Waiter};
use crate::sync::{Receiver, bounded, spawn, step};
use crate::world::{Inbox, Lease, Seen, World};

type Key = &'static str;

/// What a thread does.
pub(crate) type Thread = Box<dyn FnOnce() + Send>;

const NAME: Key = "name";

/// Some threads, one queue.
pub(crate) struct Process {
    id: u32,
    hands_over: bool,
    queues: LocalQueues<Key, Word>,
    world: Arc<World>,
}

/// What comes with the turn.
#[derive(Default)]
enum Word {
    #[default]
    Ask,
    Wait(Place),
    Have(Lease),
}

/// The place of a process in the server's line. It is either left or passed on.
struct Place {
    owner: u64,
    known: bool,
    inbox: Inbox,
    grants: Receiver<u64>,
}

/// A turn that is in the book.
struct Right {
    turn: Option<Turn<Key, Word>>,
    process: Arc<Process>,
}

/// How often a thread looks before it gives up; `None` never does.
#[derive(Clone, Copy)]
struct Patience(Option<u32>);

/// The lock is held.
struct Guard {
    process: Arc<Process>,
    owner: u64,
    held: Arc<Held>,
}

struct Held(sync::Mutex<State>);

struct State {
    lease: Option<Lease>,
    right: Option<Right>,
    lost: bool,
}

struct Asker {
    process: Arc<Process>,
    patience: Patience,
    place: Place,
    right: Option<Right>,
}

impl Process {
    pub(crate) fn new(world: &Arc<World>, id: u32, hands_over: bool) -> Arc<Self> {
        Arc::new(Process {
            id,
            hands_over,
            queues: LocalQueues::default(),
            world: world.clone(),
        })
    }

    fn lock(self: &Arc<Self>) -> Guard {
        self.acquire(Patience(None))
            .expect("who waits for ever gets the lock")
    }

    /// Gives up after `looks`, each of which may come at any time.
    fn lock_for(self: &Arc<Self>, looks: u32) -> Option<Guard> {
        self.acquire(Patience(Some(looks)))
    }

    fn try_lock(self: &Arc<Self>) -> Option<Guard> {
        self.acquire(Patience(Some(0)))
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

    fn acquire(self: &Arc<Self>, mut patience: Patience) -> Option<Guard> {
        let began = self.world.book().now();
        let (right, word) = match self.queues.enter(&NAME) {
            Entered::First(turn) => (Some(self.sit(turn)), Word::Ask),
            Entered::Behind(waiter) => match self.stand_in_queue(waiter, &mut patience, began) {
                Left::Given(turn, word) => {
                    self.world.book().is_served(self.id, began);
                    (Some(self.sit(turn)), word)
                }
                Left::Gone { taken: true } => {
                    let was_taken = self.world.book().was_claimed(self.id, began);
                    assert!(was_taken, "nobody knew that the lock is taken");
                    self.see(Seen::KnownToBeTaken);
                    return None;
                }
                Left::Gone { taken: false } => {
                    patience.run_out();
                    self.see(Seen::AskedWithoutSeat);
                    (None, Word::Ask)
                }
            },
        };
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
                self.world.release(lease);
                Place::new(&self.world)
            }
        };
        Asker {
            process: self.clone(),
            patience,
            place,
            right,
        }
        .run()
    }

    fn stand_in_queue(
        &self,
        mut waiter: Waiter<Key, Word>,
        patience: &mut Patience,
        began: u64,
    ) -> Left<Key, Word> {
        self.world.book().waits(self.id, began);
        let deadline = patience.0.is_some().then(Instant::now);
        while !patience.begin() {
            match waiter.wait(deadline) {
                Ok((turn, word)) => {
                    self.world.book().waits_no_more(self.id, began);
                    return Left::Given(turn, word);
                }
                Err(still) => waiter = still,
            }
        }
        self.world.book().waits_no_more(self.id, began);
        let left = waiter.leave();
        if let Left::Given(..) = left {
            self.see(Seen::GivenAtTheLastMoment);
        }
        left
    }

    fn sit(self: &Arc<Self>, turn: Turn<Key, Word>) -> Right {
        self.world.book().sit(self.id);
        Right {
            turn: Some(turn),
            process: self.clone(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !panicking() {
            assert_eq!(self.queues.len(), 0, "a queue was left");
        }
    }
}

impl Asker {
    fn run(mut self) -> Option<Guard> {
        let world = self.process.world.clone();
        loop {
            let last = self.patience.begin();
            if last && self.place.known && self.has_successor() {
                break;
            }
            let inbox = (!last).then_some(&self.place.inbox);
            if let Some(token) = world.ask(self.place.owner, inbox) {
                return Some(self.has(token));
            }
            self.place.known = !last;
            self.set_taken();
            if last {
                break;
            }
            let grant = match self.patience {
                Patience(None) => self.place.grants.recv().ok(),
                Patience(Some(_)) => self.place.grants.try_recv().ok(),
            };
            if let Some(token) = grant {
                return Some(self.has(token));
            }
        }
        self.end();
        None
    }

    fn has(mut self, token: u64) -> Guard {
        self.place.known = false;
        self.set_taken();
        let lease = self.process.world.lease(self.place.owner, token);
        Guard::new(&self.process, lease, self.right)
    }

    /// Passes the place on to the next that waits, or gives up.
    fn end(self) {
        let passed = match self.right {
            Some(right) => right
                .pass(Word::Wait(self.place))
                .map_err(|(right, word)| (Some(right), word)),
            None => Err((None, Word::Wait(self.place))),
        };
        if let Err((right, Word::Wait(mut place))) = passed {
            if place.known {
                self.process.world.give_up(place.owner);
                place.known = false;
            }
            drop(right);
        }
    }

    fn has_successor(&self) -> bool {
        self.right.as_ref().is_some_and(Right::has_successor)
    }

    fn set_taken(&self) {
        if let Some(right) = &self.right {
            right.process.world.book().claim(right.process.id);
            right.turn().set_taken(true);
        }
    }
}

impl Patience {
    /// Begins an attempt, and says whether it is the last.
    fn begin(&mut self) -> bool {
        let last = self.0 == Some(0);
        self.0 = self.0.map(|looks| looks.saturating_sub(1));
        last
    }

    fn run_out(&mut self) {
        self.0 = Some(0);
    }
}

impl Place {
    fn new(world: &World) -> Self {
        let (inbox, grants) = bounded(1);
        Place {
            owner: world.book().new_owner(),
            known: false,
            inbox: Arc::new(inbox),
            grants,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        assert!(!self.known || panicking(), "a place was lost on the way");
    }
}

impl Right {
    fn turn(&self) -> &Turn<Key, Word> {
        self.turn.as_ref().expect("there until it is passed")
    }

    fn has_successor(&self) -> bool {
        self.turn().has_successor()
    }

    fn pass(mut self, word: Word) -> Result<(), (Self, Word)> {
        let (process, turn) = (self.process.clone(), self.turn.take());
        process.world.book().stand_up(process.id);
        let turn = turn.expect("there until it is passed");
        turn.pass(word)
            .map_err(|(turn, word)| (process.sit(turn), word))
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (world, id) = (&self.process.world, self.process.id);
        world.book().stand_up(id);
        // What is said of the lock is over with this, unless the next has said it again.
        let claim = world.book().claim_of(id);
        drop(turn);
        world.book().unclaim(id, claim);
    }
}

impl Guard {
    fn new(process: &Arc<Process>, lease: Lease, right: Option<Right>) -> Self {
        process.world.book().come_in(&lease);
        let owner = lease.owner;
        let state = State {
            lease: Some(lease),
            right,
            lost: false,
        };
        Guard {
            process: process.clone(),
            owner,
            held: Arc::new(Held(sync::Mutex::new(state))),
        }
    }

    /// Time passes.
    fn hold(&self) {
        step();
    }

    /// What a renewer does that finds the lease gone, in a thread of its own.
    fn loss(&self) -> impl FnOnce() + Send + 'static {
        let (world, owner, held) = (self.process.world.clone(), self.owner, self.held.clone());
        move || {
            world.expire(owner);
            held.lose(&world);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if panicking() {
            return;
        }
        let world = &self.process.world;
        let (lease, right, lost) = self.held.end();
        world.book().go_out(self.owner);
        let Err((mut lease, right)) = hand_over(&self.process, lease, right) else {
            return;
        };
        if lost {
            lease.spend();
        } else {
            world.release(lease);
        }
        drop(right);
    }
}

fn hand_over(
    process: &Process,
    lease: Lease,
    right: Option<Right>,
) -> Result<(), (Lease, Option<Right>)> {
    let Some(right) = right else {
        return Err((lease, None));
    };
    if !process.hands_over || !lease.is_valid() || !right.has_successor() {
        return Err((lease, Some(right)));
    }
    match right.pass(Word::Have(lease)) {
        Err((right, Word::Have(lease))) => Err((lease, Some(right))),
        Err(_) => panic!("the word comes back as it was given"),
        Ok(()) => Ok(()),
    }
}

impl Held {
    fn state(&self) -> sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> (Lease, Option<Right>, bool) {
        let mut state = self.state();
        let lease = state.lease.take().expect("it ends once");
        (lease, state.right.take(), state.lost)
    }

    fn lose(&self, world: &World) {
        step();
        let right = {
            let mut state = self.state();
            if state.lease.is_none() {
                return;
            }
            state.lost = true;
            state.right.take()
        };
        if right.as_ref().is_some_and(Right::has_successor) {
            world.book().see(Seen::LostWhileOthersWait);
        }
        drop(right);
    }
}
