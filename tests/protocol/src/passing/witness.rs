//! What has to happen in some state, so that the rules have something to watch.

use stateright::Property;

use super::place::{Asker, Step};
use super::process::{Phase, Thread, Word};
use super::server::is_other;
use super::world::State;
use super::{Owner, Setup};

/// What each is called.
pub const NAMES: [&str; 13] = [
    "a place is passed",
    "a place is passed after a failure",
    "a place is passed that was let in",
    "a place is passed before another process",
    "a lease is handed over",
    "a lease runs out while it is handed over",
    "a lease is handed over that is gone",
    "the seat is given at the last moment",
    "the queue knows that the lock is taken",
    "a thread asks without the seat",
    "a loss gives the seat to another thread",
    "a grant meets the end of the call",
    "a release is deferred while another owner has the lock",
];

/// They come in the order of their names.
pub(super) fn properties() -> Vec<Property<Setup>> {
    const CONDITIONS: [fn(&Setup, &State) -> bool; NAMES.len()] = [
        |_, state| words(state).any(|word| matches!(word, Word::Wait(place) if place.known)),
        |_, state| words(state).any(|word| matches!(word, Word::Wait(place) if place.failing)),
        |_, state| passed(state).any(|owner| state.server.is_held_by(owner)),
        |_, state| passed(state).any(|owner| is_behind(state, owner)),
        |_, state| words(state).any(|word| matches!(word, Word::Have(_))),
        |_, state| words(state).any(|word| matches!(word, Word::Have(lease) if lease.left == 0)),
        |_, state| words(state).any(|word| is_gone(state, word)),
        |_, state| {
            threads(state, |thread| {
                thread.over && matches!(thread.phase, Phase::Given(_))
            })
        },
        |_, state| {
            threads(state, |thread| {
                thread.over && thread.phase == Phase::Waiting
            }) && is_taken(state)
        },
        |_, state| {
            phases(state, |phase| {
                matches!(phase, Phase::Asking(Asker { seat: false, .. }))
            })
        },
        |_, state| {
            state.process.guards().any(|guard| guard.lost.is_some())
                && phases(state, Phase::has_seat)
        },
        |_, state| threads(state, |thread| thread.over && hears_grant(state, thread)),
        |_, state| is_deferred_beside_holder(state),
    ];
    let conditions = NAMES.into_iter().zip(CONDITIONS);
    conditions
        .map(|(name, condition)| Property::sometimes(name, condition))
        .collect()
}

fn words(state: &State) -> impl Iterator<Item = &Word> {
    state.process.phases().filter_map(|phase| match phase {
        Phase::Given(word) => Some(word),
        _ => None,
    })
}

/// The owners of places that are passed just now.
fn passed(state: &State) -> impl Iterator<Item = Owner> {
    words(state).filter_map(|word| match word {
        Word::Wait(place) => Some(place.owner),
        _ => None,
    })
}

fn threads(state: &State, is_it: impl Fn(&Thread) -> bool) -> bool {
    state.process.threads.iter().any(is_it)
}

fn phases(state: &State, is_it: impl Fn(&Phase) -> bool) -> bool {
    state.process.phases().any(is_it)
}

/// Whether another process stands in line behind an owner.
fn is_behind(state: &State, owner: Owner) -> bool {
    let mut owners = state.server.line.iter().map(|waiter| waiter.owner);
    owners.any(|one| one == owner) && owners.any(is_other)
}

fn is_gone(state: &State, word: &Word) -> bool {
    matches!(word, Word::Have(lease) if lease.left > 0 && !state.server.is_held_by(lease.owner))
}

fn is_taken(state: &State) -> bool {
    let queue = state.process.queue.as_ref();
    queue.is_some_and(|queue| queue.taken)
}

fn hears_grant(state: &State, thread: &Thread) -> bool {
    matches!(&thread.phase, Phase::Asking(Asker { place, step: Step::Wait { .. }, .. })
        if state.server.has_message_for(place.owner))
}

fn is_deferred_beside_holder(state: &State) -> bool {
    let owners = state.process.deferred.iter().map(|deferred| deferred.owner);
    let mut guards = state.process.guards().filter(|guard| guard.is_held());
    guards.any(|guard| owners.clone().any(|owner| owner != guard.lease.owner))
}
