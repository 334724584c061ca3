//! The model of the scripts next to the scripts of `lua/`, on a real server.

mod play;
mod replayer;

use std::cell::{Cell, RefCell};

use crosslock_protocol::corpus::{Plays, all, play_all};
use crosslock_protocol::steps::{NAMES, Sequence, of_one_name, of_several_names};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRunner};

use self::play::Play;
use self::replayer::Replayer;

/// Replays so many random sequences, of which at least so many steps are to be done.
fn replay(names: u8, (cases, least): (u32, usize), sequences: impl Strategy<Value = Sequence>) {
    let (replayer, done) = (RefCell::new(Replayer::start(names.into())), Cell::new(0));
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        // The default one takes longer than a script.
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&sequences, |(claims, steps)| {
        let mut replayer = replayer.borrow_mut();
        let mut player = Play::new(&claims, &mut replayer);
        for (at, step) in steps {
            let is_done = player.play(at, step).map_err(TestCaseError::fail)?;
            done.set(done.get() + usize::from(is_done));
        }
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, sequence)) => panic!("{reason}\n{sequence:?}"),
        Err(failure) => panic!("{failure}"),
    }
    let done = done.get();
    println!("{done} steps");
    assert!(done > least, "only {done}");
}

#[test]
fn any_sequence_on_one_name_agrees_with_the_model() {
    replay(1, (3_000, 50_000), of_one_name());
}

#[test]
fn any_sequence_on_several_names_agrees_with_the_model() {
    replay(NAMES, (1_500, 25_000), of_several_names());
}

#[test]
fn named_sequences_go_as_they_are_written() {
    let mut replayer = Replayer::start(NAMES.into());
    play_all(&all(), |named| {
        named.play(&mut Play::new(&named.claims, &mut replayer))
    });
}
