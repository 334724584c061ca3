//! Goes through all states.

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use super::model::Setup;
use super::setups::{ALL, MUTANTS};

const THREADS: usize = 2;
/// So many states there are at least, or something isn't reached any more.
const STATES: usize = 2_000_000;

#[test]
fn nobody_misses_a_value_in_any_state() {
    let mut all = 0;
    for setup in ALL {
        let began = Instant::now();
        let checker = setup.checker().threads(THREADS).spawn_bfs().join();
        let (states, took) = (checker.unique_state_count(), began.elapsed());
        println!("{:?}: {states} states, {took:.1?}", setup.engine);
        checker.assert_properties();
        all += states;
    }
    assert!(all >= STATES, "only {all}");
}

#[test]
fn each_mutant_is_found() {
    for (mutant, property, setup) in MUTANTS {
        let broken = Setup {
            mutant: Some(mutant),
            ..setup
        };
        let until = HasDiscoveries::AllOf([property].into());
        let builder = broken.checker().threads(THREADS).finish_when(until);
        let checker = builder.spawn_bfs().join();
        let states = checker.unique_state_count();
        let path = checker.discovery(property);
        let path = path.unwrap_or_else(|| panic!("{mutant:?} isn't found"));
        println!(
            "{mutant:?} after {states} states: {:?}",
            path.into_actions()
        );
    }
}
