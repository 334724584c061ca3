//! The rules that memory and directories follow, next to the model of the scripts: who is let in, who waits, who is
//! told what, in any sequence of calls.

#![allow(
    dead_code,
    unexpected_cfgs,
    unused_imports,
    clippy::allow_attributes,
    reason = "the files of the library are here as they are, and not all that uses them is"
)]

#[path = "../../../../src/base/mod.rs"]
mod base;
#[path = "../scripts/corpus/mod.rs"]
mod corpus;
mod engine;
mod play;
#[path = "../scripts/steps.rs"]
mod steps;

use std::cell::Cell;

use crosslock_protocol::mutant::Mutant;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};

use self::corpus::{of_all, play_all};
use self::engine::subject::Place;
use self::play::Play;
use self::steps::of_one_name;

/// Plays so many random sequences, and gives how many steps that were.
fn play(cases: u32, place: Place) -> usize {
    let steps_done = Cell::new(0);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&of_one_name(), |(claims, steps)| {
        let mut play = Play::new(&claims, place, None);
        for (at, step) in steps {
            let done = play.apply(at, step).map_err(TestCaseError::fail)?;
            steps_done.set(steps_done.get() + usize::from(done));
        }
        Ok(())
    });
    match outcome {
        Ok(()) => steps_done.get(),
        Err(TestError::Fail(reason, (claims, steps))) => {
            let modes: Vec<_> = claims.iter().map(|claim| claim.mode).collect();
            let steps: Vec<_> = steps.iter().map(|(_, step)| format!("{step:?}")).collect();
            panic!("{reason}\n{modes:?}\n{}", steps.join("\n"))
        }
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn rules_agree_with_the_model_of_the_scripts() {
    let steps = play(2_500, Place::Memory);
    println!("{steps} steps");
    assert!(steps > 25_000, "only {steps}");
}

#[test]
fn rules_that_are_written_down_after_each_call_agree_with_the_model() {
    let steps = play(2_500, Place::File);
    println!("{steps} steps");
    assert!(steps > 25_000, "only {steps}");
}

#[test]
fn rules_that_give_leases_unasked_agree_with_the_model() {
    let steps = play(2_500, Place::GivingFile);
    println!("{steps} steps");
    assert!(steps > 25_000, "only {steps}");
}

#[test]
fn named_sequences_go_as_they_are_written() {
    for place in [Place::Memory, Place::File, Place::GivingFile] {
        play_all(&of_all(), |named| {
            named.play(&mut Play::new(&named.claims, place, None))
        });
    }
}

/// What goes wrong in a model, and is to be told from the rules.
const MUTANTS: [Mutant; 11] = [
    Mutant::AbandonmentNotTold,
    Mutant::AdoptionKeepsOldOwner,
    Mutant::AnyoneReleases,
    Mutant::BreakIsClean,
    Mutant::HeartbeatLosesPlace,
    Mutant::NobodyIsLetIn,
    Mutant::PanicIsClean,
    Mutant::PermitsNotCounted,
    Mutant::PlaceIsKept,
    Mutant::ReaderBesideWriter,
    Mutant::ReadersPassWriters,
];

/// A comparison that finds nothing might look for nothing.
#[test]
fn every_broken_model_is_told_from_the_rules() {
    /// Far more than it takes.
    const TRIES: usize = 2_000;
    let sequences = of_one_name();
    let mut runner = TestRunner::default();
    for mutant in MUTANTS {
        let tries = (0..TRIES).find(|_| {
            let sequence = sequences.new_tree(&mut runner);
            let (claims, steps) = sequence.expect("nothing is filtered").current();
            let mut play = Play::new(&claims, Place::Memory, Some(mutant));
            steps
                .into_iter()
                .any(|(at, step)| play.apply(at, step).is_err())
        });
        println!("{mutant:?}: {tries:?}");
        assert!(tries.is_some(), "{mutant:?} makes no difference");
    }
}
