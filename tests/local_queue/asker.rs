//! A thread that asks the server for the lock, until it has it or gives up.

use std::sync::Arc;
use std::thread::panicking;

use crate::guard::Guard;
use crate::local_queue::Turn;
use crate::process::{Key, Process, Word};
use crate::sync::{Receiver, bounded};
use crate::world::{Inbox, Seen, World};

/// The place of a process in the server's line. It is either left or passed on.
pub(crate) struct Place {
    owner: u64,
    known: bool,
    inbox: Inbox,
    grants: Receiver<u64>,
}

type Give = fn(Turn<Key, Word>, Word) -> Result<(), (Turn<Key, Word>, Word)>;

/// A turn that is in the book.
pub(crate) struct Right {
    pub(crate) turn: Option<Turn<Key, Word>>,
    pub(crate) process: Arc<Process>,
}

/// How often a thread looks before it gives up; `None` never does.
#[derive(Clone, Copy)]
pub(crate) struct Patience(pub(crate) Option<u32>);

pub(crate) struct Asker {
    pub(crate) process: Arc<Process>,
    pub(crate) patience: Patience,
    pub(crate) place: Place,
    pub(crate) right: Option<Right>,
}

impl Asker {
    pub(crate) fn run(mut self) -> Option<Guard> {
        let world = self.process.world.clone();
        loop {
            let last = self.patience.begin();
            if last && self.place.known && self.has_successor() {
                break;
            }
            let inbox = (!last).then_some(&self.place.inbox);
            let granted = world.ask(self.place.owner, inbox);
            if !world.book().answers() {
                world.book().see(Seen::AnswerLost);
                self.place.known = true;
                self.set_taken(false);
                if last {
                    break;
                }
                continue;
            }
            if let Some(token) = granted {
                return Some(self.has(token));
            }
            self.place.known = !last;
            self.set_taken(true);
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
        self.set_taken(true);
        let lease = self.process.world.lease(self.place.owner, token);
        Guard::new(&self.process, lease, self.right)
    }

    /// Passes the place on to the next that waits, or gives up.
    pub(crate) fn end(self) {
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

    fn set_taken(&self, taken: bool) {
        if let Some(right) = &self.right {
            right.set_taken(taken);
        }
    }
}

impl Patience {
    /// Begins an attempt, and says whether it is the last.
    pub(crate) fn begin(&mut self) -> bool {
        let last = self.0 == Some(0);
        self.0 = self.0.map(|looks| looks.saturating_sub(1));
        last
    }

    pub(crate) fn run_out(&mut self) {
        self.0 = Some(0);
    }
}

impl Place {
    pub(crate) fn new(world: &World) -> Self {
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

    pub(crate) fn has_successor(&self) -> bool {
        self.turn().has_successor()
    }

    /// Says whether the lock is taken. What was said before is over when the queue knows it.
    pub(crate) fn set_taken(&self, taken: bool) {
        let (world, id) = (&self.process.world, self.process.id);
        if taken {
            world.book().claim(id);
        }
        let claim = world.book().claim_of(id);
        self.turn().set_taken(taken);
        if !taken {
            world.book().unclaim(id, claim);
        }
    }

    pub(crate) fn pass(self, word: Word) -> Result<(), (Self, Word)> {
        self.give(word, Turn::pass)
    }

    pub(crate) fn offer(self, word: Word) -> Result<(), (Self, Word)> {
        self.give(word, Turn::offer)
    }

    fn give(mut self, word: Word, give: Give) -> Result<(), (Self, Word)> {
        let (process, turn) = (self.process.clone(), self.turn.take());
        process.world.book().stand_up(process.id);
        let turn = turn.expect("there until it is passed");
        give(turn, word).map_err(|(turn, word)| (process.sit(turn), word))
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
