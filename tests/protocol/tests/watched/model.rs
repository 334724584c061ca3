//! Threads that wait until a value fits, others that store it, and what is between them.

use stateright::{Model, Property};

use super::storers::{self, Operation, Storer};
use super::waiters::{self, Stage, Waiter};

/// `None`: there is none.
pub(super) type Value = Option<u8>;

/// What each has of its own: how it begins to watch, and what it hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// A subscription lasts. After a lost connection it is subscribed anew, and tells that.
    Redis,
    /// A watch lasts. After a lost connection it is begun anew.
    Etcd,
    /// A watch tells once, of a change or of a lost connection.
    Zookeeper,
    /// A list that the storer reads, removes and rings. It is entered, read and removed with the file locked.
    File,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// Whoever waits looks first, and begins to watch then.
    LooksBeforeItWatches,
    /// Whoever waits doesn't look.
    LookLeftOut,
    /// A watch that has told is taken for one that will tell again.
    OneShotNotRenewed,
    /// Nobody learns of a lost connection.
    LossNotTold,
    /// A subscription after a lost connection doesn't tell that it may have missed a change.
    ReconnectNotTold,
    /// A storer tells of its value before it stores it.
    ToldBeforeStored,
    /// Nobody is told of a value that is removed.
    RemovalNotTold,
    /// A storer removes the list, and reads it then.
    ListRemovedUnread,
    /// Whoever removes a value removes the list, without the lock.
    ListRemovedUnlocked,
    /// Whoever waits enters the list without the lock.
    ListEnteredUnlocked,
    /// Nobody looks by itself, although a storer may be killed before it has rung.
    NoLookByItself,
    /// Whoever was told returns without the lock.
    LockNotTaken,
    /// Whoever has the lock again returns, whatever the value is.
    ConditionNotEvaluated,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) engine: Engine,
    /// What each thread waits for.
    pub(super) goals: &'static [Value],
    /// What each storer does, one after the other.
    pub(super) storers: &'static [&'static [Operation]],
    /// How many connections may be lost.
    pub(super) losses: u8,
    /// How many storers may be killed after they have stored.
    pub(super) kills: u8,
    /// How many threads may have their time be over.
    pub(super) timeouts: u8,
    pub(super) mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Party {
    Waiter(usize),
    Storer(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) value: Value,
    pub(super) lock: Option<Party>,
    /// Who has the file of the name locked, for more than one step.
    pub(super) file_lock: Option<usize>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) storers: Vec<Storer>,
    pub(super) losses: u8,
    pub(super) kills: u8,
    pub(super) timeouts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Somebody gets the lock.
    Grant(Party),
    Wait(usize, waiters::Step),
    Store(usize, storers::Step),
}

impl Action {
    /// Whether it might as well never happen.
    fn is_optional(self) -> bool {
        match self {
            Action::Grant(party) => matches!(party, Party::Storer(_)),
            Action::Wait(_, step) => matches!(step, waiters::Step::TimeOut | waiters::Step::Cut),
            Action::Store(_, step) => matches!(step, storers::Step::Remove | storers::Step::Kill),
        }
    }
}

impl Setup {
    pub(super) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn nobody_misses_a_value(&self, world: &World) -> bool {
        let mut actions = Vec::new();
        self.actions(world, &mut actions);
        let is_over = actions.into_iter().all(Action::is_optional);
        let knows = |one: &Waiter| match one.stage {
            Stage::Done => true,
            Stage::Sleeps => one.seen == world.value,
            _ => false,
        };
        !is_over || world.waiters.iter().all(knows)
    }

    /// A value may be removed without the lock.
    fn who_returns_has_what_it_waits_for(&self, world: &World) -> bool {
        let mut waiters = world.waiters.iter().zip(self.goals).enumerate();
        waiters.all(|(at, (waiter, goal))| {
            let fits = waiter.is_timed_out || waiter.seen == *goal;
            let is_current = waiter.seen == world.value || world.value.is_none();
            let has_lock = world.lock == Some(Party::Waiter(at));
            waiter.stage != Stage::Returned || (has_lock && fits && is_current)
        })
    }
}

pub(super) const MISSES_NOTHING: &str = "nobody misses a value";
pub(super) const RETURNS_RIGHTLY: &str = "who returns has what it waits for";

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            value: Some(0),
            lock: None,
            file_lock: None,
            waiters: vec![Waiter::default(); self.goals.len()],
            storers: vec![Storer::default(); self.storers.len()],
            losses: 0,
            kills: 0,
            timeouts: 0,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let is_free = world.lock.is_none() && world.file_lock.is_none();
        for at in 0..world.waiters.len() {
            if is_free && world.waiters[at].stage == Stage::Locks {
                actions.push(Action::Grant(Party::Waiter(at)));
            }
            let steps = waiters::Step::ALL.into_iter();
            let steps = steps.filter(|step| world.may_wait(self, at, *step));
            actions.extend(steps.map(|step| Action::Wait(at, step)));
        }
        for at in 0..world.storers.len() {
            if is_free && world.wants_to_store(self, at) {
                actions.push(Action::Grant(Party::Storer(at)));
            }
            let steps = storers::Step::ALL.into_iter();
            let steps = steps.filter(|step| world.may_store(self, at, *step));
            actions.extend(steps.map(|step| Action::Store(at, step)));
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Grant(party) => {
                world.lock = Some(party);
                match party {
                    Party::Waiter(at) => world.waiters[at].hold(world.value),
                    Party::Storer(at) => world.storers[at].hold(),
                }
            }
            Action::Wait(at, step) => world.wait(self, at, step),
            Action::Store(at, step) => world.store(self, at, step),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(MISSES_NOTHING, Setup::nobody_misses_a_value),
            Property::always(RETURNS_RIGHTLY, Setup::who_returns_has_what_it_waits_for),
            Property::sometimes("all return", |_, world: &World| {
                world.waiters.iter().all(|one| one.stage == Stage::Done)
            }),
            Property::sometimes("somebody sleeps in vain", |setup: &Setup, world: &World| {
                let mut pairs = world.waiters.iter().zip(setup.goals);
                pairs.any(|(one, goal)| one.stage == Stage::Sleeps && world.value == *goal)
            }),
        ]
    }
}
