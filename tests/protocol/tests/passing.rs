//! How the threads of one process pass its place, and its lease: every state of the model in `src/passing`.
//!
//! `PASSING_FAULTS=1` lets one more thing go wrong in each setup: then there are six million states.

use std::collections::BTreeSet;
use std::fmt::Write;

use crosslock_protocol::passing::{Action, Caller, Mutant, Rule, Setup, State, WITNESSES};
use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model, Path};

const LOCKS: Caller = caller(1, false);
const TRIES: Caller = caller(1, true);

const SETUP: Setup = Setup {
    threads: Vec::new(),
    others: [1, 0],
    faults: 1,
    hand_overs: 1,
    panics: true,
    deletions: false,
    crashes: false,
    mutant: None,
};

const fn caller(calls: u8, timed: bool) -> Caller {
    Caller { calls, timed }
}

/// Two threads and much that goes wrong.
fn two_threads() -> Setup {
    Setup {
        threads: vec![LOCKS, TRIES],
        others: [1, 1],
        faults: 2,
        ..SETUP
    }
}

/// All kinds of faults.
fn all_faults() -> Setup {
    Setup {
        threads: vec![LOCKS, TRIES],
        faults: 3,
        deletions: true,
        crashes: true,
        ..SETUP
    }
}

fn three_threads() -> Setup {
    Setup {
        threads: vec![LOCKS, TRIES, TRIES],
        ..SETUP
    }
}

/// Threads that come again, while leases are handed over twice.
fn two_calls() -> Setup {
    Setup {
        threads: vec![caller(2, false), caller(2, true)],
        hand_overs: 2,
        ..SETUP
    }
}

fn checker(setup: &Setup) -> CheckerBuilder<Setup> {
    setup.clone().checker().threads(2)
}

fn is_rule(name: &str) -> bool {
    !WITNESSES.contains(&name)
}

fn steps(path: Path<State, Action>) -> String {
    let mut text = String::new();
    for action in path.into_actions() {
        write!(text, "\n  {action:?}").expect("a string takes it");
    }
    text
}

/// The shortest way to a state in which a rule is broken: one thread goes through the states by their depth.
fn shortest(setup: &Setup, name: &'static str) -> String {
    let found = HasDiscoveries::AnyOf(BTreeSet::from([name]));
    let checker = checker(setup).threads(1).finish_when(found).spawn_bfs();
    steps(checker.join().assert_any_discovery(name))
}

/// No rule is broken in any of these states. Gives what was seen to happen.
fn explore(name: &str, setup: Setup, at_least: usize) -> BTreeSet<&'static str> {
    let more =
        std::env::var("PASSING_FAULTS").map_or(0, |more| more.parse().expect("it is a number"));
    let setup = Setup {
        faults: setup.faults + more,
        ..setup
    };
    let checker = checker(&setup).spawn_bfs().join();
    let (states, steps) = (checker.unique_state_count(), checker.state_count());
    println!(
        "{name}: {states} states, {steps} steps, {} deep",
        checker.max_depth()
    );
    let found: BTreeSet<_> = checker.discoveries().into_keys().collect();
    if let Some(broken) = found.iter().find(|name| is_rule(name)) {
        panic!("{name}: {broken} is broken by{}", shortest(&setup, broken));
    }
    assert!(states >= at_least, "there are {at_least} states and more");
    found
}

#[test]
fn place_and_lease_pass_from_thread_to_thread() {
    let mut seen = explore("two threads", two_threads(), 366_000);
    seen.extend(explore("all faults", all_faults(), 360_000));
    seen.extend(explore("three threads", three_threads(), 451_000));
    seen.extend(explore("two calls", two_calls(), 182_000));
    let never = WITNESSES.into_iter().filter(|name| !seen.contains(name));
    assert_eq!(
        never.collect::<Vec<_>>(),
        Vec::<&str>::new(),
        "never happens"
    );
}

/// In how many states the rule was found to be broken, if it was.
fn states_until(rule: Rule, setup: &Setup) -> Option<usize> {
    let found = HasDiscoveries::AnyOf(BTreeSet::from([rule.name()]));
    let checker = checker(setup).finish_when(found).spawn_bfs().join();
    checker.discovery(rule.name())?;
    Some(checker.unique_state_count())
}

/// Where a mutant shows soon. Some need a thread that waits while two others pass something on.
fn setup_of(mutant: Mutant) -> Setup {
    let setup = match mutant {
        Mutant::HandOverTimeRestarts
        | Mutant::HandOversNotCounted
        | Mutant::LastComeFirstServed
        | Mutant::TakenAfterRelease => Setup {
            threads: vec![caller(2, false), LOCKS, TRIES],
            others: [0, 0],
            hand_overs: 2,
            ..SETUP
        },
        Mutant::TakenAfterExpiry => Setup {
            threads: vec![LOCKS, LOCKS, TRIES],
            others: [0, 0],
            faults: 3,
            ..SETUP
        },
        Mutant::FailureNotPassedOn => three_threads(),
        _ => Setup {
            crashes: true,
            ..two_threads()
        },
    };
    let mutant = Some(mutant);
    Setup { mutant, ..setup }
}

#[test]
fn each_mutant_breaks_its_rule() {
    for (mutant, rule) in Mutant::ALL {
        let states = states_until(rule, &setup_of(mutant));
        let states = states.unwrap_or_else(|| panic!("{mutant:?} doesn't break {}", rule.name()));
        println!("{mutant:?} breaks {}: {states} states", rule.name());
    }
}
