//! The local queue, and what a thread does in it: `src/local_queue.rs` and `src/acquire.rs`.

use super::Mutant;
use super::lease::{Deferred, Guard};
use super::place::{Asker, Place};
use super::process::{Number, Phase, Queue, Word};
use super::world::World;

impl World<'_> {
    /// A call begins.
    pub fn enter(&mut self, thread: Number) {
        if let Some(queue) = &mut self.state.process.queue {
            queue.waiting.push(thread);
            self.state.judge.waits(thread);
            *self.phase(thread) = Phase::Waiting;
        } else {
            self.state.process.queue = Some(Queue::default());
            self.state.judge.knows_nothing();
            let place = Place::new(self.new_owner());
            *self.phase(thread) = Phase::Asking(Asker::new(place, true));
        }
    }

    /// The time of a thread in the queue is over, and it wasn't given the seat.
    pub fn leave(&mut self, thread: Number) {
        let mut taken = false;
        if let Some(queue) = &mut self.state.process.queue {
            queue.waiting.retain(|one| *one != thread);
            taken = queue.taken;
        }
        self.state.judge.leaves(thread);
        if taken {
            self.state.judge.says_taken();
            self.return_from_call(thread);
        } else {
            // Nobody here knows how the lock stands: one question, without waiting.
            let place = Place::new(self.new_owner());
            *self.phase(thread) = Phase::Asking(Asker::new(place, false));
        }
    }

    /// A thread finds what came with the seat.
    pub fn take_seat(&mut self, thread: Number, word: Word) {
        if self.thread(thread).over && self.is(Mutant::GivenSeatIgnored) {
            *self.phase(thread) = Phase::Leaving {
                seat: true,
                unsaid: None,
            };
            return;
        }
        let place = match word {
            Word::Ask => Place::new(self.new_owner()),
            Word::Wait(place) if self.is(Mutant::NewOwnerForPlace) => Place {
                known: false,
                owner: self.new_owner(),
                ..place
            },
            Word::Wait(place) => place,
            Word::Have(lease) => {
                let lease = lease.handed_over(self.setup);
                if lease.left > 0 || self.is(Mutant::ExpiredLeaseTaken) {
                    return self.begin_guard(thread, Guard::new(lease, true));
                }
                let (owner, ending) = (lease.owner, lease.ending(false));
                self.defer(Deferred { owner, ending });
                if !self.is(Mutant::TakenAfterExpiry) {
                    self.set_taken(false);
                }
                self.state.judge.knows_nothing();
                Place::new(self.new_owner())
            }
        };
        *self.phase(thread) = Phase::Asking(Asker::new(place, true));
    }

    pub fn begin_guard(&mut self, thread: Number, guard: Guard) {
        self.state.judge.guard_begins(&guard);
        self.thread(thread).over = false;
        *self.phase(thread) = Phase::Holding(guard);
    }

    pub fn set_taken(&mut self, taken: bool) {
        if let Some(queue) = &mut self.state.process.queue {
            queue.taken = taken;
        }
    }

    /// Gives the seat to the next thread. Says whether there was one.
    pub fn pass_seat(&mut self, word: Word) -> bool {
        let is_last_first = self.is(Mutant::LastComeFirstServed);
        let Some(queue) = &mut self.state.process.queue else {
            return false;
        };
        let next = if is_last_first {
            queue.waiting.pop()
        } else {
            queue.waiting.pop_at(0)
        };
        let Some(next) = next else {
            return false;
        };
        self.state.judge.is_given_seat(next);
        *self.phase(next) = Phase::Given(word);
        true
    }

    /// The seat goes to the next thread, which is to ask, or the queue is gone.
    pub fn drop_seat(&mut self) {
        if self.is(Mutant::SeatNotPassed) {
            return;
        }
        if !self.is(Mutant::TakenAfterRelease) {
            self.set_taken(false);
        }
        self.state.judge.knows_nothing();
        if !self.pass_seat(Word::Ask) {
            self.state.process.queue = None;
        }
    }

    pub fn return_from_call(&mut self, thread: Number) {
        let thread = self.thread(thread);
        (thread.phase, thread.over) = (Phase::Out, false);
        thread.calls -= 1;
    }
}
