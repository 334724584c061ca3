//! The model of the scripts next to the scripts of `lua/`, on a real server.

mod play;
mod replayer;

use crosslock_protocol::corpus::{all, play_all};
use crosslock_protocol::random::{play_random, steps_done};
use crosslock_protocol::steps::{NAMES, Sequence, of_one_name, of_several_names};
use proptest::strategy::Strategy;

use self::play::Play;
use self::replayer::Replayer;

/// Replays so many random sequences, of at least so many steps.
fn replay(names: u8, amount: (u32, usize), sequences: impl Strategy<Value = Sequence>) {
    let mut replayer = Replayer::start(names.into());
    play_random(amount, sequences, |(claims, steps)| {
        steps_done(Play::new(&claims, &mut replayer), steps)
    });
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
