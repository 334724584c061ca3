//! All states of all setups: every rule holds in each of them, and every excuse is used by some.
//!
//! `PROTOCOL=full` goes through the full set.

use std::collections::BTreeSet;
use std::env;

use crosslock_protocol::checker::explore;
use crosslock_protocol::judge::Excuse;
use crosslock_protocol::setup::Setup;
use crosslock_protocol::setups::{FULL, QUICK, mutants};

/// So many states there are at least, or something isn't reached any more.
const STATES: usize = 5_000_000;
const STATES_OF_ALL: usize = 30_000_000;

fn setups() -> (Vec<Setup>, usize) {
    match env::var("PROTOCOL").as_deref() {
        Ok("full") => {
            // And those in which mutants are found: without their mutants nothing is.
            let of_mutants: Vec<_> = mutants().map(|(_, _, setup)| setup).collect();
            ([QUICK, FULL, &of_mutants[..]].concat(), STATES_OF_ALL)
        }
        Ok(other) => panic!("PROTOCOL is {other:?}: there is `full`"),
        Err(_) => (QUICK.to_vec(), STATES),
    }
}

#[test]
fn every_rule_holds_in_every_state_and_every_excuse_is_used() {
    let (setups, least) = setups();
    let (mut states, mut excuses) = (0, BTreeSet::new());
    for setup in setups {
        let found = explore(setup, None);
        println!(
            "{}: {} states, {} steps deep, {:.1?}",
            setup.title, found.states, found.depth, found.took
        );
        assert!(found.broken.is_empty(), "{:?}", found.broken);
        states += found.states;
        excuses.extend(found.excuses);
    }
    println!("{states} states");
    assert!(states >= least, "only {states}");
    let unused: Vec<_> = Excuse::ALL
        .into_iter()
        .filter(|excuse| !excuses.contains(excuse))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}
