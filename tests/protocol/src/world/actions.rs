//! What may happen next.

use super::{
    ANSWERED_WITHIN, Body, DONE_WITHIN, Ending, Fault, HAND_OVERS, Lease, News, Phase, World,
};
use arrayvec::ArrayVec;

use crate::server::{Ear, Name, Ticks, Token};
use crate::setup::{Patience, Setup};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client begins its next acquisition.
    Begin(usize),
    /// It sends a heartbeat.
    Ask(usize),
    /// Its time is up: it asks for the last time.
    AskLast(usize),
    /// It has had no answer in time, and tries again.
    TryAgain(usize),
    /// It has had no answer in time, and gives up.
    GiveUp(usize),
    Renew(usize),
    Unlock(usize, Ending),
    Downgrade(usize),
    HandOver(usize),
    /// It passes its lease on to another process.
    PassOn(usize),
    /// Somebody breaks the lock of a name.
    Break(usize),
    /// It connects its inbox.
    Listen(usize),
    /// A client that was stopped goes on.
    GoOn(usize),
    /// A packet arrives: an index into what is on its way.
    Arrive(usize),
    /// A replica has what the server has.
    Copy,
    Tick,
    Fault(Fault, usize),
}

impl World {
    pub fn actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        let mut urgent = false;
        for (at, packet) in self.wire.iter().enumerate() {
            let arrives = matches!(packet.body, Body::Request(_)) || self.reads(packet);
            if arrives {
                actions.push(Action::Arrive(at));
            }
            urgent |= self.is_urgent(packet);
        }
        for client in 0..self.clients.len() {
            urgent |= self.client_actions(setup, client, actions);
        }
        if setup.may(Fault::FailOver) && self.replica.is_none() && self.faults > 0 {
            actions.push(Action::Copy);
        }
        if self.faults > 0 {
            self.fault_actions(setup, actions);
        }
        if self.breaks > 0 {
            let held = (0..self.names.len()).filter(|at| self.names[*at].lock.is_some());
            actions.extend(held.map(Action::Break));
        }
        if !urgent {
            actions.push(Action::Tick);
        }
    }

    /// Says whether one of them has to come before time passes.
    fn client_actions(&self, setup: &Setup, at: usize, actions: &mut Vec<Action>) -> bool {
        let client = &self.clients[at];
        if client.stopped {
            actions.push(Action::GoOn(at));
            return false;
        }
        if client.is_dead() {
            return false;
        }
        let first = actions.len();
        match client.phase {
            Phase::Idle => {
                if self.may_begin(setup, at) {
                    actions.push(Action::Begin(at));
                }
                return false;
            }
            Phase::Asking { age, .. } | Phase::Adopting { age } if age >= ANSWERED_WITHIN => {
                if self.want(setup, at).patience != Patience::Try {
                    actions.push(Action::TryAgain(at));
                }
                actions.push(Action::GiveUp(at));
            }
            Phase::Waiting { due } => return self.waiter_actions(setup, at, due, actions),
            Phase::Holding(lease) => {
                let is_due = self.renewal_actions(at, lease, actions);
                self.holder_actions(setup, at, actions);
                return is_due;
            }
            Phase::Ending { age, .. }
            | Phase::GivingUp { age, .. }
            | Phase::Downgrading { age, .. }
                if age >= DONE_WITHIN =>
            {
                actions.push(Action::TryAgain(at));
            }
            _ => {}
        }
        actions.len() > first
    }

    fn waiter_actions(
        &self,
        setup: &Setup,
        at: usize,
        due: Ticks,
        actions: &mut Vec<Action>,
    ) -> bool {
        let is_due = due <= 0 || self.clients[at].news == Some(News::Ask);
        if is_due {
            actions.push(Action::Ask(at));
        }
        if self.want(setup, at).patience == Patience::Timed {
            actions.push(Action::AskLast(at));
        }
        if self.ears[at] != Ear::Hears {
            actions.push(Action::Listen(at));
        }
        is_due
    }

    /// Says whether the lease is to be renewed, or to be renewed again.
    fn renewal_actions(&self, at: usize, lease: Lease, actions: &mut Vec<Action>) -> bool {
        let action = match lease.renewing {
            _ if lease.refused || lease.valid <= 0 => None,
            None if lease.due <= 0 => Some(Action::Renew(at)),
            Some(age) if age >= DONE_WITHIN => Some(Action::TryAgain(at)),
            _ => None,
        };
        actions.extend(action);
        action.is_some()
    }

    fn holder_actions(&self, setup: &Setup, at: usize, actions: &mut Vec<Action>) {
        actions.push(Action::Unlock(at, Ending::Clean));
        let Some(lease) = self.clients[at].held(setup) else {
            return;
        };
        let is_alone = self.want(setup, at).names.count == 1;
        let is_exclusive = lease.mode.is_exclusive();
        if setup.choices.panics && is_exclusive {
            actions.push(Action::Unlock(at, Ending::Panicked));
        }
        if setup.choices.keeps && is_alone {
            actions.push(Action::Unlock(at, Ending::Kept));
        }
        if setup.choices.downgrades && is_exclusive && is_alone {
            actions.push(Action::Downgrade(at));
        }
        if setup.choices.passes_on && self.ticket.is_none() {
            actions.push(Action::PassOn(at));
        }
        let may_hand_over = Token::from(lease.hand_overs) < HAND_OVERS;
        if setup.choices.hands_over && is_exclusive && is_alone && may_hand_over {
            actions.push(Action::HandOver(at));
        }
    }

    /// The world after one of its actions.
    pub fn after(&self, setup: &Setup, action: Action) -> World {
        let mut world = self.clone();
        world.judge.begin_step();
        world.act(setup, action);
        world.judge_guards(setup);
        world
    }

    fn act(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Begin(at) => self.begin(setup, at),
            Action::Ask(at) => self.ask(setup, at, true),
            Action::AskLast(at) => self.ask(setup, at, false),
            Action::GiveUp(at) => self.give_up(setup, at),
            Action::TryAgain(at) => self.try_again(setup, at),
            Action::Renew(at)
            | Action::Unlock(at, _)
            | Action::Downgrade(at)
            | Action::HandOver(at)
            | Action::PassOn(at) => {
                if let Phase::Holding(lease) = self.clients[at].phase {
                    self.act_with(setup, at, lease, action);
                }
            }
            Action::Break(at) => self.break_lock(setup, at),
            Action::Listen(at) => self.listen(setup, at),
            Action::GoOn(at) => self.clients[at].stopped = false,
            Action::Arrive(at) => self.deliver(setup, at, false),
            Action::Copy => self.replica = Some(Box::new(self.names.clone())),
            Action::Tick => self.tick(setup),
            Action::Fault(fault, at) => self.suffer(setup, fault, at),
        }
    }

    /// What a holder does with its lease.
    fn act_with(&mut self, setup: &Setup, at: usize, lease: Lease, action: Action) {
        match action {
            Action::Renew(_) => self.renew(at, lease),
            Action::Unlock(_, ending) => self.unlock(setup, at, lease, ending),
            Action::Downgrade(_) => self.downgrade(setup, at, lease),
            Action::HandOver(_) => self.hand_over(setup, at, lease),
            Action::PassOn(_) => self.pass_on(setup, at, lease),
            _ => unreachable!("it is no holder's"),
        }
    }

    /// No answer came in time.
    fn try_again(&mut self, setup: &Setup, at: usize) {
        match self.clients[at].phase {
            Phase::Asking { waits, .. } => self.ask_again(setup, at, waits),
            Phase::Adopting { .. } => self.adopt(setup, at),
            Phase::Holding(lease) => self.postpone(setup, at, lease),
            Phase::Ending {
                lease,
                ending,
                tries,
                was_held,
                ..
            } => self.release(setup, at, lease, ending, tries + 1, was_held),
            Phase::GivingUp { tries, mode, .. } => self.take_back(setup, at, mode, tries + 1),
            // It is held either way, or not at all.
            Phase::Downgrading { lease, .. } => {
                self.release(setup, at, lease, Ending::Downgraded, 1, false);
            }
            Phase::Idle | Phase::Waiting { .. } | Phase::Dead => {}
        }
    }

    /// Whoever connects anew asks, because it may have missed something.
    fn listen(&mut self, setup: &Setup, at: usize) {
        self.ears[at] = Ear::Hears;
        self.clients[at].news.get_or_insert(News::Ask);
        self.look_at_news(setup, at);
    }

    fn tick(&mut self, setup: &Setup) {
        self.judge_tick(setup);
        let owners: ArrayVec<_, 2> = self.names.iter().map(Name::owner).collect();
        for name in &mut self.names {
            name.tick();
        }
        if let Some(replica) = &mut self.replica {
            for name in replica.iter_mut() {
                name.tick();
            }
        }
        for at in 0..self.clients.len() {
            self.clients[at].tick();
        }
        self.judge_expiry(&owners);
        self.pass();
    }
}

impl super::Client {
    fn tick(&mut self) {
        // What is older than this is as old.
        const OLD: i8 = 4;
        let grow = |age: &mut i8| *age = (*age + 1).min(OLD);
        if let Some(seen) = &mut self.seen {
            grow(&mut seen.age);
        }
        match &mut self.phase {
            Phase::Asking { age, .. } | Phase::Adopting { age } | Phase::GivingUp { age, .. } => {
                grow(age);
            }
            Phase::Waiting { due } => *due = (*due - 1).max(0),
            Phase::Holding(lease) => {
                lease.tick();
                if let Some(age) = &mut lease.renewing {
                    grow(age);
                }
            }
            Phase::Ending { lease, age, .. } | Phase::Downgrading { lease, age } => {
                lease.tick();
                grow(age);
            }
            Phase::Idle | Phase::Dead => {}
        }
    }
}

impl super::Lease {
    fn tick(&mut self) {
        self.due = (self.due - 1).max(0);
        self.valid = (self.valid - 1).max(0);
    }
}
