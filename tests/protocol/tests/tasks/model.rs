//! All states of a queue with two tasks and two workers, whose requests and answers get lost or come late, and one of
//! which may vanish. The server follows the rules of the library.
//!
//! A worker asks by a new owner each time. If a question has no answer, it asks again by the same owner, or takes the
//! question back, which comes behind it; a copy of the question may stay on its way. Time passes in steps, of which a
//! lease has two.

mod exchange;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stateright::{Model, Property};

use super::tasks::{Asked, Micros, Tasks, Waits};
use crate::base::task::{Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd};

const TTL: Micros = 2;
const WORKERS: usize = 2;

/// How much happens in one run.
pub(super) struct Bounds {
    pub(super) time: Micros,
    /// Questions of one worker.
    pub(super) owners: u8,
    /// Lost requests and answers.
    pub(super) losses: u8,
    pub(super) vanish: bool,
    pub(super) tries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    server: Tasks,
    now: Micros,
    workers: [Worker; WORKERS],
    /// Questions that are on their way although nobody waits for their answers.
    late: BTreeSet<Question>,
    losses: u8,
    /// Tokens of each task, the last one.
    tokens: BTreeMap<String, u64>,
    /// Tasks that were reported done.
    done: BTreeSet<String>,
    /// Whether an end has given the next task.
    exchanged: bool,
    pub(super) broken: Option<&'static str>,
}

/// What a worker asks by one owner, and the task of another that it ends first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Question {
    owner: String,
    ends: Option<(String, u64, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Worker {
    /// How many owners it has had.
    owners: u8,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Idle,
    /// Its question has no answer yet.
    Unanswered,
    /// It waits; until then, if it leads.
    Waiting(Option<Micros>),
    Working {
        id: String,
        token: u64,
        valid_until: Micros,
    },
    /// It gives back what its owner may have.
    Leaving,
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Pass,
    /// A worker asks and hears; or the question, or the answer, is lost; or the question stays on its way.
    Ask(usize, Fate),
    TakeBack(usize, Fate),
    Renew(usize, Fate),
    End(usize, How, Fate),
    Exchange(usize, Fate),
    Vanish(usize),
    /// A late question comes.
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    Heard,
    RequestLost,
    AnswerLost,
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum How {
    Done,
    Retry,
    Drop,
}

fn owner(worker: usize, number: u8) -> String {
    format!("{worker}-{number}")
}

impl World {
    fn new(bounds: &Bounds) -> Self {
        let mut server = Tasks::default();
        let policy = Policy {
            tries: bounds.tries,
            base: Duration::ZERO,
            cap: Duration::ZERO,
            remember: Duration::ZERO,
        };
        let task = |id, due| NewTask {
            id,
            payload: b"",
            due: Due::After(Duration::from_micros(due)),
            policy,
            if_exists: IfExists::Keep,
        };
        let tasks = [task("a", 0), task("b", 1)];
        server.call(
            TaskCall::Insert {
                tasks: &tasks,
                nonce: None,
            },
            0,
            0,
        );
        server.take_called();
        let idle = Worker {
            owners: 0,
            state: State::Idle,
        };
        World {
            server,
            now: 0,
            workers: [idle.clone(), idle],
            late: BTreeSet::new(),
            losses: 0,
            tokens: BTreeMap::new(),
            done: BTreeSet::new(),
            exchanged: false,
            broken: None,
        }
    }

    fn current(&self, at: usize) -> String {
        owner(at, self.workers[at].owners)
    }

    fn ask(&mut self, at: usize, fate: Fate) {
        if matches!(self.workers[at].state, State::Idle) {
            self.workers[at].owners += 1;
        }
        let owner = self.current(at);
        match fate {
            Fate::RequestLost => return self.unanswered(at),
            Fate::Late => {
                self.late.insert(Question { owner, ends: None });
                return self.unanswered(at);
            }
            Fate::Heard | Fate::AnswerLost => {}
        }
        let began = self.now;
        // Heartbeats are far more seldom than time passes here.
        let asked = self.server_asks(&owner, Waits::Until(None));
        if fate == Fate::AnswerLost {
            return self.unanswered(at);
        }
        self.workers[at].state = match asked {
            Asked::Task { token, record } => State::Working {
                id: record.id.to_string(),
                token: token.number,
                valid_until: began + TTL,
            },
            Asked::Empty { next, .. } => State::Waiting(next),
        };
    }

    fn unanswered(&mut self, at: usize) {
        self.losses += 1;
        self.workers[at].state = State::Unanswered;
    }

    /// The server's part: a task has larger and larger tokens, but for its owner's that asks again.
    fn server_asks(&mut self, owner: &str, waits: Waits) -> Asked {
        let asked = self.server.ask(owner, TTL, waits, self.now);
        if let Asked::Task { token, record } = &asked {
            let last = self.tokens.insert(record.id.to_string(), token.number);
            if last.is_some_and(|last| token.number < last) {
                self.broken = Some("a token doesn't increase");
            }
            if self.done.contains(&*record.id) {
                self.broken = Some("a task runs that is done");
            }
        }
        asked
    }

    fn end(&mut self, at: usize, how: How, fate: Fate) {
        let State::Working {
            id,
            token,
            valid_until,
        } = self.workers[at].state.clone()
        else {
            return;
        };
        let owner = self.current(at);
        self.workers[at].state = State::Idle;
        if fate == Fate::RequestLost {
            self.losses += 1;
            return;
        }
        let end = match how {
            How::Done => Some(TaskEnd::Done),
            How::Retry => Some(TaskEnd::Retry("")),
            How::Drop => None,
        };
        let is_ours = self.server.end(&owner, end, Some(token), self.now);
        self.losses += u8::from(fate == Fate::AnswerLost);
        if is_ours && how == How::Done {
            if !self.done.insert(id) {
                self.broken = Some("a task is done twice");
            }
        } else if !is_ours && self.now < valid_until {
            self.broken = Some("a valid lease is refused");
        }
    }

    fn renew(&mut self, at: usize, fate: Fate) {
        let owner = self.current(at);
        let began = self.now;
        let State::Working { token, .. } = self.workers[at].state else {
            return;
        };
        self.losses += u8::from(fate != Fate::Heard);
        if fate == Fate::RequestLost {
            return;
        }
        let is_ours = self.server.renew(&owner, Some(TTL), Some(token), self.now);
        if let State::Working { valid_until, .. } = &mut self.workers[at].state {
            if fate == Fate::Heard && is_ours {
                *valid_until = began + TTL;
            } else if !is_ours && self.now < *valid_until {
                self.broken = Some("a valid lease isn't renewed");
            }
        }
    }

    /// What the server has called wakes, if it hears.
    fn deliver_calls(&mut self) {
        for called in self.server.take_called() {
            for at in 0..WORKERS {
                if *called == *self.current(at)
                    && matches!(self.workers[at].state, State::Waiting(_))
                {
                    self.workers[at].state = State::Waiting(Some(0));
                }
            }
        }
    }

    fn judge(&mut self) {
        let valid = |worker: &Worker| match &worker.state {
            State::Working {
                id, valid_until, ..
            } if self.now < *valid_until => Some(id.clone()),
            _ => None,
        };
        let [first, second] = [0, 1].map(|at| valid(&self.workers[at]));
        if first.is_some() && first == second {
            self.broken = Some("two valid leases of one task");
        }
        for id in ["a", "b"] {
            let found = self.server.clone().call(TaskCall::Get(id), self.now, 0);
            let is_there = found != TaskAnswer::Tasks(Vec::new());
            if is_there == self.done.contains(id) {
                self.broken = Some("a task is lost, or is there although it is done");
            }
        }
        // The leader wakes when a task is ready. It calls the others when it asks.
        let counts = self.server.clone().call(TaskCall::Counts, self.now, 0);
        let TaskAnswer::Counts(counts) = counts else {
            return;
        };
        let line = self.server.shown_line();
        let is_asleep = line.first().is_some_and(|(_, told)| match &**told {
            "c" => false,
            told => told.parse().map_or(true, |until: Micros| until > self.now),
        });
        if is_asleep && counts.ready > 0 {
            self.broken = Some("the leader sleeps although a task is ready");
        }
        let has_tasks = counts.delayed + counts.running > 0;
        if has_tasks && line.first().is_some_and(|(_, told)| told == "-") {
            self.broken = Some("the leader doesn't know when to wake");
        }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            return;
        }
        if world.now < self.time {
            actions.push(Action::Pass);
        }
        if !world.late.is_empty() {
            actions.push(Action::Late);
        }
        (0..WORKERS).for_each(|at| self.actions_of(world, at, actions));
        if self.vanish && world.workers[0].state != State::Vanished {
            actions.push(Action::Vanish(0));
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Pass => world.now += 1,
            Action::Ask(at, fate) => world.ask(at, fate),
            Action::TakeBack(at, fate) => {
                let owner = world.current(at);
                world.losses += u8::from(fate != Fate::Heard);
                if fate != Fate::RequestLost {
                    world.server.take_back(&owner, world.now);
                }
                world.workers[at].state = State::Idle;
            }
            Action::Renew(at, fate) => world.renew(at, fate),
            Action::End(at, how, fate) => world.end(at, how, fate),
            Action::Exchange(at, fate) => world.exchange(at, fate),
            Action::Vanish(at) => world.workers[at].state = State::Vanished,
            Action::Late => {
                let question = world.late.pop_first()?;
                world.server_exchanges(&question);
            }
        }
        world.deliver_calls();
        world.judge();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is broken", |_, world: &World| {
                world.broken.is_none()
            }),
            Property::sometimes("an end gives the next", |_, world: &World| world.exchanged),
            Property::sometimes("both are done", |_, world: &World| world.done.len() == 2),
            Property::sometimes("a worker waits", |_, world: &World| {
                world
                    .workers
                    .iter()
                    .any(|one| matches!(one.state, State::Waiting(_)))
            }),
            Property::sometimes("a question comes late", |_, world: &World| {
                !world.late.is_empty()
            }),
        ]
    }
}

impl Bounds {
    /// What is taken back comes behind the question on the same connection.
    fn take_backs(&self, world: &World, at: usize, fates: &[Fate], actions: &mut Vec<Action>) {
        let current = world.current(at);
        if !world.late.iter().any(|question| question.owner == current) {
            actions.extend(fates.iter().map(|fate| Action::TakeBack(at, *fate)));
        }
    }

    /// What a worker may do.
    fn actions_of(&self, world: &World, at: usize, actions: &mut Vec<Action>) {
        let may_lose = world.losses < self.losses;
        let losses = [Fate::RequestLost, Fate::AnswerLost];
        let losses = losses.into_iter().filter(|_| may_lose);
        let fates: Vec<_> = [Fate::Heard].into_iter().chain(losses).collect();
        let late = (may_lose && world.late.is_empty()).then_some(Fate::Late);
        let asks = fates.iter().copied().chain(late);
        let asks = asks.map(|fate| Action::Ask(at, fate));
        let worker = &world.workers[at];
        match &worker.state {
            State::Idle if worker.owners < self.owners => actions.extend(asks),
            State::Unanswered => {
                actions.extend(asks);
                self.take_backs(world, at, &fates, actions);
            }
            State::Leaving => self.take_backs(world, at, &fates, actions),
            State::Waiting(Some(until)) if *until <= world.now => actions.extend(asks),
            State::Working { .. } => {
                if worker.owners < self.owners {
                    let exchanges = fates.iter().copied().chain(late);
                    actions.extend(exchanges.map(|fate| Action::Exchange(at, fate)));
                }
                for fate in fates.iter().copied() {
                    let ends = [How::Done, How::Retry, How::Drop];
                    actions.push(Action::Renew(at, fate));
                    actions.extend(ends.map(|how| Action::End(at, how, fate)));
                }
            }
            _ => {}
        }
    }
}
