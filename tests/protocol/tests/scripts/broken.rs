//! Whether models that are broken on purpose are told from the scripts: a comparison that finds nothing might look for
//! nothing.

use crosslock_protocol::mutant::Mutant;
use crosslock_protocol::setups::MUTANTS;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::play::Play;
use super::replayer::{Difference, Replayer};
use super::steps::{INBOXES, NAMES, Sequence, of_one_name, of_several_names};

/// Far more sequences than it takes.
const TRIES: usize = 3_000;

/// What goes wrong in scripts.
fn of_scripts() -> impl Iterator<Item = Mutant> {
    let all = MUTANTS.iter().map(|(mutant, _, _)| *mutant);
    all.filter(|mutant| mutant.is_of_a_script())
}

/// How many sequences it takes to see a difference.
fn tries(
    mutant: Mutant,
    replayer: &mut Replayer,
    sequences: &impl Strategy<Value = Sequence>,
) -> Option<usize> {
    let mut runner = TestRunner::default();
    replayer.break_model(Some(mutant));
    let differs = |_: &usize| {
        let (claims, steps) = sequences.new_tree(&mut runner).unwrap().current();
        let mut play = Play::new(&claims, replayer);
        let mut steps = steps.into_iter();
        steps.any(|(at, step)| matches!(play.apply(at, step), Err(Difference(_))))
    };
    (0..TRIES).find(differs)
}

#[test]
fn every_broken_model_is_told_from_the_scripts() {
    let mut one = Replayer::start(1, INBOXES.into());
    let mut several = Replayer::start(NAMES.into(), INBOXES.into());
    let mut broken = 0;
    for mutant in of_scripts() {
        let only_several = matches!(mutant, Mutant::SomeAreKept | Mutant::SomeAreEnough);
        let tries = if only_several {
            tries(mutant, &mut several, &of_several_names())
        } else {
            tries(mutant, &mut one, &of_one_name())
        };
        println!("{mutant:?}: {tries:?}");
        assert!(tries.is_some(), "{mutant:?} makes no difference");
        broken += 1;
    }
    assert!(broken > 20, "only {broken}");
}
