//! What the thread does that asks the server: `src/asker.rs`.

use super::lease::{Deferred, Guard, Lease};
use super::place::{Asker, Seen, Step};
use super::process::{Number, Phase, Word};
use super::server::{Answer, Ending};
use super::world::{Network, World};
use super::{HALF_TTL, HEARTBEAT, Mutant, Token};

impl World<'_> {
    /// Whether a thread whose time is over leaves its place to the next, instead of asking for the last time.
    pub fn leaves_place_to_next(&self, thread: Number, asker: &Asker) -> bool {
        let place = &asker.place;
        let last = self.state.process.threads[usize::from(thread)].over;
        let may = last && place.known && !place.failing && asker.seat;
        may && self.state.process.waits() && !self.is(Mutant::LastQuestionLeavesLine)
    }

    pub fn ask(&mut self, thread: Number, mut asker: Asker, network: Network) {
        if self.leaves_place_to_next(thread, &asker) {
            return self.leave_place_to_next(thread, asker);
        }
        // Who enters the line has to hear of grants before.
        let waits = !self.thread(thread).over && asker.place.listened;
        let owner = asker.place.owner;
        let leaves_line = !waits && self.state.server.has_in_line(owner);
        let has_successor = asker.seat && self.state.process.waits() && !asker.place.failing;
        self.state.judge.place_ends(leaves_line, has_successor);
        let mut answer = None;
        if self.arrives(network) {
            answer = Some(self.state.server.ask(owner, waits, self.setup));
        }
        asker.step = Step::Asked {
            answer: answer.filter(|_| network == Network::Works),
            age: 0,
            waits,
        };
        *self.phase(thread) = Phase::Asking(asker);
    }

    fn leave_place_to_next(&mut self, thread: Number, mut asker: Asker) {
        let failed = asker.failing;
        if !failed {
            self.state.judge.says_taken();
        }
        asker.place.failing |= failed;
        asker.step = Step::End { failed };
        *self.phase(thread) = Phase::Asking(asker);
    }

    /// The answer comes, or it is clear that none will. `ends`: it was tried for so long that the call ends.
    pub fn answer(&mut self, thread: Number, mut asker: Asker, ends: bool) {
        let Step::Asked { answer, age, waits } = asker.step else {
            return;
        };
        match answer {
            Some(Answer::Granted(token)) => {
                let lease = Lease::new(asker.place.owner, token, age);
                if lease.left > 0 {
                    return self.has_lease(thread, &asker, lease);
                }
                asker.place.known = true;
                self.fail(thread, &mut asker, ends);
                if matches!(asker.step, Step::Wait { .. }) {
                    // Asked again at once, the same owner gets a new lease.
                    asker.step = Step::Ask;
                }
            }
            Some(Answer::Taken(counter)) => {
                asker.place.seen = Some(Seen { age, counter });
                asker.place.known = waits;
                self.find_taken(thread, &mut asker);
            }
            None => {
                asker.place.known |= !self.is(Mutant::FailedQuestionForgotten);
                self.be_in_doubt(&asker);
                self.fail(thread, &mut asker, ends);
            }
        }
        *self.phase(thread) = Phase::Asking(asker);
    }

    fn find_taken(&mut self, thread: Number, asker: &mut Asker) {
        (asker.failing, asker.place.failing) = (false, false);
        self.set_taken_by(asker, true);
        asker.step = if self.thread(thread).over {
            Step::End { failed: false }
        } else if asker.place.listened {
            Step::Wait { due: HEARTBEAT }
        } else {
            Step::Ask
        };
        asker.place.listened = true;
    }

    /// A question wasn't answered.
    fn be_in_doubt(&mut self, asker: &Asker) {
        if !self.is(Mutant::TakenAfterFailure) {
            self.set_taken_by(asker, false);
        }
        if asker.seat {
            self.state.judge.knows_nothing();
        }
    }

    /// The server couldn't be reached: it is tried again, unless the call ends.
    fn fail(&mut self, thread: Number, asker: &mut Asker, ends: bool) {
        let failed_before = asker.failing || asker.place.failing;
        asker.failing = true;
        if !self.thread(thread).over && !ends {
            asker.step = Step::Wait { due: HEARTBEAT };
            return;
        }
        // The end of a timed call cut its last question short: to the one before, the lock was taken.
        let is_cut_short = self.thread(thread).over || self.is(Mutant::FailureEndsAsTaken);
        let seen = asker.place.seen.is_some() && !failed_before;
        let was_taken = seen && is_cut_short && self.is_timed(thread);
        // The next thread knows no more than that.
        asker.place.failing |= !(was_taken && self.is(Mutant::FailureNotPassedOn));
        asker.step = Step::End { failed: !was_taken };
    }

    /// A grant was heard of. One that may be from before, or was long on the way, is left to the next question.
    pub fn hear(&mut self, thread: Number, mut asker: Asker, token: Token) {
        let owner = asker.place.owner;
        let messages = &mut self.state.server.messages;
        messages.retain(|message| (message.owner, message.token) != (owner, token));
        if let Some(seen) = asker.place.seen {
            let lease = Lease::new(owner, token, seen.age);
            if token > seen.counter && lease.left >= HALF_TTL {
                return self.has_lease(thread, &asker, lease);
            }
        }
        asker.step = Step::Ask;
        *self.phase(thread) = Phase::Asking(asker);
    }

    fn has_lease(&mut self, thread: Number, asker: &Asker, lease: Lease) {
        self.set_taken_by(asker, true);
        self.begin_guard(thread, Guard::new(lease, asker.seat));
    }

    fn set_taken_by(&mut self, asker: &Asker, taken: bool) {
        if asker.seat {
            self.set_taken(taken);
        }
    }

    /// Without a lock: the place goes to the next thread.
    pub fn end(&mut self, thread: Number, mut asker: Asker, failed: bool) {
        let is_over = self.thread(thread).over;
        self.state.judge.ends_as_taken(is_over || failed);
        let has_successor = asker.seat && self.state.process.waits();
        let passes = has_successor && !self.is(Mutant::PlaceNotPassed);
        self.state.judge.place_ends(!passes, has_successor);
        if passes {
            self.pass_seat(Word::Wait(asker.place));
            if !self.is(Mutant::PlacePassedAndGivenUp) {
                return self.return_from_call(thread);
            }
            asker.seat = false;
        }
        let is_known = asker.place.known && !self.is(Mutant::PlaceNotGivenUp);
        *self.phase(thread) = if is_known {
            asker.step = Step::GiveUp { failed };
            Phase::Asking(asker)
        } else {
            Phase::Leaving {
                seat: asker.seat,
                unsaid: None,
            }
        };
    }

    /// Leaves the line, and releases what a question may have taken; `None`: there is no time left for that.
    pub fn give_up(&mut self, thread: Number, asker: &Asker, network: Option<Network>) {
        let owner = asker.place.owner;
        let ending = Ending::Unknown;
        if let Some(network) = network
            && self.arrives(network)
        {
            self.state.server.release(owner, ending, self.setup);
        }
        let unsaid = (network != Some(Network::Works)).then_some(Deferred { owner, ending });
        *self.phase(thread) = Phase::Leaving {
            seat: asker.seat,
            unsaid,
        };
    }

    pub fn is_timed(&self, thread: Number) -> bool {
        self.setup.threads[usize::from(thread)].timed
    }
}

/// Whether the time of a call can end in this phase.
pub fn may_end(phase: &Phase) -> bool {
    match phase {
        Phase::Waiting | Phase::Given(_) => true,
        Phase::Asking(asker) => !matches!(asker.step, Step::End { .. } | Step::GiveUp { .. }),
        _ => false,
    }
}

/// Whether a thread is to ask the server.
pub fn is_to_ask(asker: &Asker, over: bool) -> bool {
    match asker.step {
        Step::Ask => true,
        Step::Wait { due } => due == 0 || over,
        _ => false,
    }
}
