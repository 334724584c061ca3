//! The model of the scripts next to the scripts of `lua/`, on a real server.

mod corpus;
mod play;
mod random;
mod replayer;
mod rules;
mod steps;

use crosslock_protocol::mutant::Mutant;
use crosslock_protocol::setups::mutants;
use proptest::strategy::Strategy;

use self::corpus::{of_all, of_scripts, play_all};
use self::play::Play;
use self::random::{play_random, steps_done, tries};
use self::replayer::Replayer;
use self::steps::{INBOXES, NAMES, Sequence, of_one_name, of_several_names};

/// Replays so many random sequences, of at least so many steps.
fn replay(names: u8, amount: (u32, usize), sequences: impl Strategy<Value = Sequence>) {
    let mut replayer = Replayer::start(names.into(), INBOXES.into());
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
    let mut replayer = Replayer::start(NAMES.into(), INBOXES.into());
    let all: Vec<_> = of_all().into_iter().chain(of_scripts()).collect();
    play_all(&all, |named| {
        named.play(&mut Play::new(&named.claims, &mut replayer))
    });
}

/// A comparison that finds nothing might look for nothing.
#[test]
fn every_broken_model_is_told_from_the_scripts() {
    let mut one = Replayer::start(1, INBOXES.into());
    let mut several = Replayer::start(NAMES.into(), INBOXES.into());
    let of_scripts = mutants().map(|(mutant, ..)| mutant);
    let of_scripts: Vec<_> = of_scripts
        .filter(|mutant| mutant.is_of_a_script())
        .collect();
    assert!(of_scripts.len() > 20, "only {}", of_scripts.len());
    for mutant in of_scripts {
        let (replayer, sequences) = match mutant {
            Mutant::SomeAreKept | Mutant::SomeAreEnough => {
                (&mut several, of_several_names().boxed())
            }
            _ => (&mut one, of_one_name().boxed()),
        };
        replayer.break_model(mutant);
        let tries = tries(&sequences, |(claims, steps)| {
            steps_done(Play::new(&claims, replayer), steps)
        });
        println!("{mutant:?}: {tries:?}");
        assert!(tries.is_some(), "{mutant:?} makes no difference");
    }
}
