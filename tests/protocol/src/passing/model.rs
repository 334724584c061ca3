//! Which steps there are in each state.

use stateright::{Model, Property};

use super::asking::{is_to_ask, may_end};
use super::lease::{Guard, Loss};
use super::place::{Asker, Step};
use super::process::{Number, Phase, Thread};
use super::server::{OTHERS, Server, is_other};
use super::world::{Network, State, World};
use super::{Owner, Rule, Setup, Token};

/// A step. A number is that of the thread that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A call begins.
    Call(Number),
    /// The time of a call is over.
    TimeOut(Number),
    /// A thread in the local queue finds that its time is over.
    LeaveQueue(Number),
    /// A thread finds what came with the seat.
    TakeSeat(Number),
    Ask(Number, Network),
    /// What its question was answered.
    Answer(Number),
    /// The question failed, and that for so long that the call ends.
    EndByFailure(Number),
    Hear(Number, Token),
    /// The place is passed, or is to be given up.
    EndCall(Number),
    GiveUp(Number, Network),
    /// A call that has no time left leaves that to the background.
    DeferGivingUp(Number),
    Renew(Number, Network),
    Expire(Number),
    Unlock(Number),
    Panic(Number),
    HandOver(Number),
    Release(Number, Network),
    Return(Number),
    /// The background makes its release of that number.
    ReleaseDeferred(usize, Network),
    Tick,
    /// Time passes although there is something to do.
    Delay,
    LoseMessage(usize),
    DeleteLock,
    Crash,
    OtherAsks(Owner),
    OtherReleases(Owner),
}

impl Model for Setup {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // What comes after a broken rule tells nothing new.
        if state.judge.is_any_broken() {
            return;
        }
        for (thread, number) in state.process.threads.iter().zip(0..) {
            self.add_thread(state, number, thread, actions);
        }
        for at in 0..state.process.deferred.len() {
            add_requests(state, actions, |network| {
                Action::ReleaseDeferred(at, network)
            });
        }
        let has_fault = state.faults > 0;
        if !state.is_busy() {
            actions.push(Action::Tick);
        } else if has_fault {
            actions.push(Action::Delay);
        }
        if has_fault {
            self.add_faults(&state.server, actions);
        }
        for other in 0..OTHERS {
            if state.may_come(other) || state.has_to_ask(other) {
                actions.push(Action::OtherAsks(other));
            }
            if state.server.is_held_by(other) {
                actions.push(Action::OtherReleases(other));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(World::after(state, self, |world| world.take(action)))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = rules();
        properties.extend(super::witness::properties());
        properties
    }
}

impl Setup {
    fn add_thread(
        &self,
        state: &State,
        number: Number,
        thread: &Thread,
        actions: &mut Vec<Action>,
    ) {
        let is_timed = self.threads[usize::from(number)].timed;
        if is_timed && !thread.over && may_end(&thread.phase) {
            actions.push(Action::TimeOut(number));
        }
        match &thread.phase {
            Phase::Out if thread.calls > 0 => actions.push(Action::Call(number)),
            Phase::Out => {}
            Phase::Waiting if thread.over => actions.push(Action::LeaveQueue(number)),
            Phase::Waiting => {}
            Phase::Given(_) => actions.push(Action::TakeSeat(number)),
            Phase::Asking(asker) => self.add_asker(state, number, asker, actions),
            Phase::Holding(guard) => self.add_guard(state, number, guard, actions),
            Phase::Ending {
                lease,
                seat,
                panicked,
                ..
            } => {
                let may = lease.may_be_handed_over(*panicked, self);
                if *seat && may && state.process.waits() {
                    actions.push(Action::HandOver(number));
                } else {
                    add_requests(state, actions, |network| Action::Release(number, network));
                }
            }
            Phase::Leaving { .. } => actions.push(Action::Return(number)),
        }
    }

    fn add_asker(&self, state: &State, number: Number, asker: &Asker, actions: &mut Vec<Action>) {
        let thread = &state.process.threads[usize::from(number)];
        let is_timed = self.threads[usize::from(number)].timed;
        match asker.step {
            Step::Asked { answer, .. } => {
                actions.push(Action::Answer(number));
                if answer.is_none() && !thread.over {
                    actions.push(Action::EndByFailure(number));
                }
            }
            Step::End { .. } => actions.push(Action::EndCall(number)),
            Step::GiveUp { failed } => {
                if !(is_timed && failed) {
                    add_requests(state, actions, |network| Action::GiveUp(number, network));
                }
                if is_timed {
                    actions.push(Action::DeferGivingUp(number));
                }
            }
            Step::Ask | Step::Wait { .. } => {
                if is_to_ask(asker, thread.over) {
                    add_requests(state, actions, |network| Action::Ask(number, network));
                }
                if asker.step != Step::Ask {
                    let messages = state.server.messages.iter();
                    let its = messages.filter(|message| message.owner == asker.place.owner);
                    actions.extend(its.map(|message| Action::Hear(number, message.token)));
                }
            }
        }
    }

    fn add_guard(&self, state: &State, number: Number, guard: &Guard, actions: &mut Vec<Action>) {
        actions.push(Action::Unlock(number));
        if self.panics && state.faults > 0 {
            actions.push(Action::Panic(number));
        }
        if guard.lost.is_none() && guard.lease.left == 0 {
            actions.push(Action::Expire(number));
        } else if guard.lost.is_none() && guard.due == 0 {
            add_requests(state, actions, |network| Action::Renew(number, network));
        }
    }

    fn add_faults(&self, server: &Server, actions: &mut Vec<Action>) {
        actions.extend((0..server.messages.len()).map(Action::LoseMessage));
        let is_ours = server.lock.is_some_and(|lock| !is_other(lock.owner));
        if self.deletions && is_ours && server.hears {
            actions.push(Action::DeleteLock);
        }
        if self.crashes && server.hears {
            actions.push(Action::Crash);
        }
    }
}

fn add_requests(state: &State, actions: &mut Vec<Action>, request: impl Fn(Network) -> Action) {
    actions.push(request(Network::Works));
    if state.faults > 0 {
        actions.push(request(Network::LosesRequest));
        actions.push(request(Network::LosesAnswer));
    }
}

impl World<'_> {
    fn take(&mut self, action: Action) {
        match action {
            Action::Call(thread) => self.enter(thread),
            Action::TimeOut(thread) => self.thread(thread).over = true,
            Action::LeaveQueue(thread) => self.leave(thread),
            Action::Tick => self.tick(),
            Action::Delay => {
                self.fault();
                self.tick();
            }
            Action::ReleaseDeferred(at, network) => self.release_deferred(at, network),
            Action::LoseMessage(at) => self.lose_message(at),
            Action::DeleteLock => self.delete(),
            Action::Crash => self.crash(),
            Action::OtherAsks(other) => self.other_asks(other),
            Action::OtherReleases(other) => self.other_releases(other),
            _ => self.take_in_phase(action),
        }
    }

    fn take_in_phase(&mut self, action: Action) {
        let Some(number) = action.thread() else {
            return;
        };
        match (action, *self.phase(number)) {
            (Action::TakeSeat(_), Phase::Given(word)) => self.take_seat(number, word),
            (_, Phase::Asking(asker)) => self.take_asking(action, number, asker),
            (_, Phase::Holding(guard)) => self.take_holding(action, number, guard),
            (
                _,
                Phase::Ending {
                    lease, panicked, ..
                },
            ) => match action {
                Action::HandOver(_) => self.hand_over(number, lease, panicked),
                Action::Release(_, network) => {
                    self.release(number, &lease, lease.ending(panicked), network);
                }
                _ => {}
            },
            (Action::Return(_), Phase::Leaving { seat, unsaid }) => {
                self.finish(number, seat, unsaid)
            }
            _ => {}
        }
    }

    fn take_asking(&mut self, action: Action, number: Number, asker: Asker) {
        match (action, asker.step) {
            (Action::Ask(_, network), _) => self.ask(number, asker, network),
            (Action::Answer(_), _) => self.answer(number, asker, false),
            (Action::EndByFailure(_), _) => self.answer(number, asker, true),
            (Action::Hear(_, token), _) => self.hear(number, asker, token),
            (Action::EndCall(_), Step::End { failed }) => self.end(number, asker, failed),
            (Action::GiveUp(_, network), _) => self.give_up(number, &asker, Some(network)),
            (Action::DeferGivingUp(_), _) => self.give_up(number, &asker, None),
            _ => {}
        }
    }

    fn take_holding(&mut self, action: Action, number: Number, guard: Guard) {
        match action {
            Action::Renew(_, network) => self.renew(number, guard, network),
            Action::Expire(_) => self.lose(number, guard, Loss::Expired),
            Action::Unlock(_) => self.unlock(number, guard, false),
            Action::Panic(_) => self.unlock(number, guard, true),
            _ => {}
        }
    }
}

impl Action {
    fn thread(self) -> Option<Number> {
        match self {
            Action::Call(thread)
            | Action::TimeOut(thread)
            | Action::LeaveQueue(thread)
            | Action::TakeSeat(thread)
            | Action::Ask(thread, _)
            | Action::Answer(thread)
            | Action::EndByFailure(thread)
            | Action::Hear(thread, _)
            | Action::EndCall(thread)
            | Action::GiveUp(thread, _)
            | Action::DeferGivingUp(thread)
            | Action::Renew(thread, _)
            | Action::Expire(thread)
            | Action::Unlock(thread)
            | Action::Panic(thread)
            | Action::HandOver(thread)
            | Action::Release(thread, _)
            | Action::Return(thread) => Some(thread),
            _ => None,
        }
    }
}

fn rules() -> Vec<Property<Setup>> {
    macro_rules! rule {
        ($rule:expr) => {
            Property::always($rule.name(), |_, state: &State| {
                !state.judge.is_broken($rule)
            })
        };
    }
    vec![
        rule!(Rule::Exclusion),
        rule!(Rule::OneHome),
        rule!(Rule::NothingLeft),
        rule!(Rule::Seat),
        rule!(Rule::LocalOrder),
        rule!(Rule::PlaceKept),
        rule!(Rule::Taken),
        rule!(Rule::Tokens),
        rule!(Rule::HandOver),
        rule!(Rule::Turn),
    ]
}
