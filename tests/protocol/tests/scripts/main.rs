//! The model of the scripts next to the scripts of `lua/`, on a real server.

mod broken;
mod corpus;
mod play;
mod replayer;
mod rules;
mod steps;
mod walks;

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRunner};

use self::corpus::{of_all, of_scripts, play_all};
use self::play::Play;
use self::replayer::{Difference, Replayer};
use self::steps::{INBOXES, NAMES, Sequence, of_one_name, of_several_names};

impl From<Difference> for TestCaseError {
    fn from(Difference(text): Difference) -> Self {
        TestCaseError::fail(text)
    }
}

/// Replays so many random sequences, and gives how many steps that were.
fn replay(names: usize, cases: u32, sequences: impl Strategy<Value = Sequence>) -> usize {
    let replayer = RefCell::new(Replayer::start(names, INBOXES.into()));
    let steps_done = Cell::new(0);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        // The default one takes longer than a script.
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&sequences, |(claims, steps)| {
        let mut replayer = replayer.borrow_mut();
        let mut play = Play::new(&claims, &mut replayer);
        for (at, step) in steps {
            let done = play.apply(at, step)?;
            steps_done.set(steps_done.get() + usize::from(done));
        }
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        // It lists the events of the shortest sequence; the steps that led to them are many lines.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(failure) => panic!("{failure}"),
    }
    steps_done.get()
}

#[test]
fn any_sequence_on_one_name_agrees_with_the_model() {
    let steps = replay(1, 1_500, of_one_name());
    println!("{steps} steps");
    assert!(steps > 25_000, "only {steps}");
}

#[test]
fn any_sequence_on_several_names_agrees_with_the_model() {
    let steps = replay(NAMES.into(), 600, of_several_names());
    println!("{steps} steps");
    assert!(steps > 10_000, "only {steps}");
}

#[test]
fn named_sequences_go_as_they_are_written() {
    let mut replayer = Replayer::start(NAMES.into(), INBOXES.into());
    let all: Vec<_> = of_all().into_iter().chain(of_scripts()).collect();
    play_all(&all, |named| {
        named.play(&mut Play::new(&named.claims, &mut replayer))
    });
}
