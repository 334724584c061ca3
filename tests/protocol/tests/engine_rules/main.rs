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
mod engine;
mod play;

use crosslock_protocol::corpus::{of_all, play_all};
use crosslock_protocol::random::{play_random, steps_done};
use crosslock_protocol::steps::of_one_name;

use self::engine::subject::Place;
use self::play::Play;

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, scripts: T, rules: T) -> Result<(), String> {
    if scripts == rules {
        return Ok(());
    }
    Err(format!(
        "{what}: {scripts:?} by the scripts, {rules:?} by the rules"
    ))
}

/// Plays random sequences.
fn play(place: Place) {
    play_random((2_500, 25_000), of_one_name(), |(claims, steps)| {
        steps_done(Play::new(&claims, place), steps)
    });
}

#[test]
fn rules_agree_with_the_model_of_the_scripts() {
    play(Place::Memory);
}

#[test]
fn rules_that_are_written_down_after_each_call_agree_with_the_model() {
    play(Place::File);
}

#[test]
fn rules_that_give_leases_unasked_agree_with_the_model() {
    play(Place::GivingFile);
}

#[test]
fn named_sequences_go_as_they_are_written() {
    for place in [Place::Memory, Place::File, Place::GivingFile] {
        play_all(&of_all(), |named| {
            named.play(&mut Play::new(&named.claims, place))
        });
    }
}
