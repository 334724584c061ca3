//! Who waits, who stores, and what may go wrong.

use super::model::{Engine, MISSES_NOTHING, Mutant, RETURNS_RIGHTLY, Setup};
use super::storers::Operation::{Remove, Store};

const TWO: Setup = Setup {
    engine: Engine::Redis,
    goals: &[Some(2), None],
    storers: &[&[Store(1), Store(2)], &[Remove]],
    losses: 0,
    kills: 0,
    timeouts: 0,
    mutant: None,
};
/// Whose connection may be lost.
const ONE: Setup = Setup {
    goals: &[Some(2)],
    losses: 2,
    timeouts: 1,
    ..TWO
};
const FILE: Setup = Setup {
    engine: Engine::File,
    ..TWO
};
const KILLED: Setup = Setup {
    kills: 1,
    timeouts: 1,
    ..FILE
};

const fn on(engine: Engine, setup: Setup) -> Setup {
    Setup { engine, ..setup }
}

/// In these nothing may go wrong.
pub(super) const ALL: [Setup; 7] = [
    TWO,
    ONE,
    on(Engine::Etcd, TWO),
    on(Engine::Etcd, ONE),
    on(Engine::Zookeeper, TWO),
    on(Engine::Zookeeper, ONE),
    KILLED,
];

/// Each mutant, the property that it breaks, and where it is found.
pub(super) const MUTANTS: [(Mutant, &str, Setup); 15] = [
    (Mutant::LooksBeforeItWatches, MISSES_NOTHING, ONE),
    (Mutant::LooksBeforeItWatches, MISSES_NOTHING, FILE),
    (Mutant::LookLeftOut, MISSES_NOTHING, on(Engine::Etcd, ONE)),
    (
        Mutant::OneShotNotRenewed,
        MISSES_NOTHING,
        on(Engine::Zookeeper, ONE),
    ),
    (Mutant::OneShotNotRenewed, MISSES_NOTHING, FILE),
    (Mutant::LossNotTold, MISSES_NOTHING, on(Engine::Etcd, ONE)),
    (Mutant::ReconnectNotTold, MISSES_NOTHING, ONE),
    (Mutant::ToldBeforeStored, MISSES_NOTHING, ONE),
    (Mutant::RemovalNotTold, MISSES_NOTHING, ONE),
    (Mutant::ListRemovedUnread, MISSES_NOTHING, FILE),
    (Mutant::ListRemovedUnlocked, MISSES_NOTHING, FILE),
    (Mutant::ListEnteredUnlocked, MISSES_NOTHING, FILE),
    (Mutant::NoLookByItself, MISSES_NOTHING, KILLED),
    (Mutant::LockNotTaken, RETURNS_RIGHTLY, ONE),
    (Mutant::ConditionNotEvaluated, RETURNS_RIGHTLY, ONE),
];
