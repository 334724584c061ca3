//! Goes through all states of the model.

use stateright::{Checker, Model};

use super::model::Bounds;

fn explore(bounds: Bounds) -> usize {
    let checker = bounds.checker().threads(2).spawn_bfs().join();
    if let Some(path) = checker.discovery("nothing is broken") {
        let broken = path.last_state().broken;
        panic!("{broken:?}: {:?}", path.into_actions());
    }
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states");
    states
}

#[test]
fn every_state_keeps_the_rules_with_losses() {
    let states = explore(Bounds {
        time: 3,
        owners: 2,
        losses: 2,
        vanish: false,
        tries: 0,
    });
    assert!(states > 10_000, "only {states}");
}

#[test]
fn every_state_keeps_the_rules_when_a_worker_vanishes() {
    let states = explore(Bounds {
        time: 4,
        owners: 2,
        losses: 1,
        vanish: true,
        tries: 0,
    });
    assert!(states > 10_000, "only {states}");
}
