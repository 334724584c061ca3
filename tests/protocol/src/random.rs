//! Random sequences of steps, played by whatever there is.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRunner};

use crate::corpus::Plays;
use crate::steps::{At, Step};

/// Plays a sequence, and gives how many of its steps were done.
pub fn steps_done(mut player: impl Plays, steps: Vec<(At, Step)>) -> Result<usize, String> {
    let mut done = 0;
    for (at, step) in steps {
        done += usize::from(player.play(at, step)?);
    }
    Ok(done)
}

/// Plays so many sequences, of which at least so many steps are to be done.
pub fn play_random<T: Clone + Debug>(
    (cases, least): (u32, usize),
    sequences: impl Strategy<Value = T>,
    play: impl FnMut(T) -> Result<usize, String>,
) {
    let (play, steps_done) = (RefCell::new(play), Cell::new(0));
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        // The default one takes longer than a script.
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&sequences, |sequence| {
        let mut play = play.borrow_mut();
        let done = play(sequence).map_err(TestCaseError::fail)?;
        steps_done.set(steps_done.get() + done);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, sequence)) => panic!("{reason}\n{sequence:?}"),
        Err(failure) => panic!("{failure}"),
    }
    let steps = steps_done.get();
    println!("{steps} steps");
    assert!(steps > least, "only {steps}");
}
