//! The whole state, and what happens to it from outside: time, faults, and the other process.

use super::judge::Judge;
use super::place::Step;
use super::process::{Number, Phase, Process, Thread};
use super::server::{Ending, OTHERS, Server};
use super::{Mutant, OWNERS, Owner, Owners, Setup, Token, all};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub server: Server,
    pub process: Process,
    /// How often each of the other processes still comes.
    pub others: [u8; OTHERS as usize],
    /// How many things may still go wrong.
    pub faults: u8,
    pub judge: Judge,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    Works,
    /// It doesn't come to the server.
    LosesRequest,
    /// It does, and the answer doesn't come back.
    LosesAnswer,
}

/// One step, while it is done.
pub struct World<'a> {
    pub state: State,
    pub setup: &'a Setup,
}

/// Tokens that are older are all the same.
const OLDEST: Token = -40;

impl State {
    pub fn new(setup: &Setup) -> Self {
        let calls: Vec<u8> = setup.threads.iter().map(|thread| thread.calls).collect();
        State {
            server: Server::new(),
            process: Process::new(&calls),
            others: setup.others,
            faults: setup.faults,
            judge: Judge::new(),
        }
    }

    /// Whether there is something to do that takes no time.
    pub fn is_busy(&self) -> bool {
        let mut threads = self.process.threads.iter();
        threads.any(|thread| self.is_busy_with(thread))
            || !self.process.deferred.is_empty()
            || (0..OTHERS).any(|other| self.has_to_ask(other))
    }

    fn is_busy_with(&self, thread: &Thread) -> bool {
        match &thread.phase {
            Phase::Out => false,
            Phase::Waiting => thread.over,
            Phase::Given(_) | Phase::Ending { .. } | Phase::Leaving { .. } => true,
            Phase::Asking(asker) => match asker.step {
                Step::Wait { due } => {
                    due == 0 || thread.over || self.server.has_message_for(asker.place.owner)
                }
                _ => true,
            },
            Phase::Holding(guard) => {
                guard.lost.is_none() && (guard.due == 0 || guard.lease.left == 0)
            }
        }
    }

    /// Another process that waits in line asks as soon as the lock is free.
    pub fn has_to_ask(&self, other: Owner) -> bool {
        self.server.lock.is_none() && self.server.has_in_line(other)
    }

    pub fn may_come(&self, other: Owner) -> bool {
        let is_here = self.server.owners().any(|owner| owner == other);
        self.others[usize::from(other)] > 0 && !is_here
    }

    /// All owners that anybody knows.
    fn used(&self) -> Owners {
        let messages = self.server.messages.iter();
        let homes = self.process.homes().map(|home| home.owner);
        all(messages.map(|message| message.owner)) | all(homes) | all(self.server.owners())
    }

    fn for_each_token(&mut self, mut change: impl FnMut(&mut Token)) {
        self.server.for_each_token(&mut change);
        self.process.for_each_token(&mut change);
        self.judge.for_each_token(&mut change);
    }

    /// Has the judge look, and makes states the same that differ in nothing which matters.
    fn settle(&mut self, before: &State) {
        let process = &self.process;
        let messages = &mut self.server.messages;
        messages.retain(|message| process.hears(message.owner));
        self.judge.look(&before.server, &self.server, &self.process);
        self.judge.forget_but(self.used());
        let since = self.server.counter - self.server.counter % 2;
        self.for_each_token(|token| *token = (*token - since).max(OLDEST));
    }
}

impl<'a> World<'a> {
    /// What becomes of a state by one step.
    pub fn after(before: &State, setup: &'a Setup, step: impl FnOnce(&mut World<'a>)) -> State {
        let state = before.clone();
        let mut world = World { state, setup };
        step(&mut world);
        world.state.settle(before);
        world.state
    }

    pub fn is(&self, mutant: Mutant) -> bool {
        self.setup.is(mutant)
    }

    pub fn thread(&mut self, number: Number) -> &mut Thread {
        &mut self.state.process.threads[usize::from(number)]
    }

    pub fn phase(&mut self, number: Number) -> &mut Phase {
        &mut self.thread(number).phase
    }

    /// An owner that nobody knows.
    pub fn new_owner(&self) -> Owner {
        let used = self.state.used();
        let mut owners = OTHERS..OWNERS;
        owners
            .find(|owner| used & (1 << owner) == 0)
            .expect("there are fewer owners than that")
    }

    pub fn fault(&mut self) {
        self.state.faults -= 1;
    }

    /// Uses up a fault, if it is one. Says whether the request arrives.
    pub fn arrives(&mut self, network: Network) -> bool {
        if network != Network::Works {
            self.fault();
        }
        network != Network::LosesRequest
    }

    pub fn tick(&mut self) {
        self.state.server.tick();
        self.state.process.tick();
        self.state.judge.tick(&self.state.server);
    }

    /// A message to this process is lost.
    pub fn lose_message(&mut self, at: usize) {
        self.fault();
        self.state.server.messages.remove(at);
    }

    /// Somebody deletes the lock.
    pub fn delete(&mut self) {
        self.fault();
        if let Some(lock) = self.state.server.lock.take() {
            self.state.judge.deletes(lock.owner);
        }
    }

    /// The process is gone, and the server sees that its connection is.
    pub fn crash(&mut self) {
        self.fault();
        let calls = [0; 3];
        self.state.process = Process::new(&calls[..self.setup.threads.len()]);
        self.state.server.hears = false;
        self.state.judge.crashes();
    }

    pub fn other_asks(&mut self, other: Owner) {
        if !self.state.server.has_in_line(other) {
            self.state.others[usize::from(other)] -= 1;
        }
        self.state.server.ask(other, true, self.setup);
    }

    pub fn other_releases(&mut self, other: Owner) {
        let last_used = self.state.server.counter;
        let ending = Ending::Clean { last_used };
        self.state.server.release(other, ending, self.setup);
    }
}
