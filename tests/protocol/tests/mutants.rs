//! What is broken on purpose is found, by the rule that it breaks.

use std::collections::BTreeSet;

use crosslock_protocol::checker::explore;
use crosslock_protocol::judge::Rule;
use crosslock_protocol::setup::Setup;
use crosslock_protocol::setups::mutants;

#[test]
fn each_mutant_is_found_by_the_rule_that_it_breaks() {
    for (mutant, rule, setup) in mutants() {
        let broken = Setup {
            mutant: Some(mutant),
            ..setup
        };
        let found = explore(broken, Some(rule));
        let by: Vec<_> = found.broken.iter().map(|(rule, _)| *rule).collect();
        println!(
            "{mutant:?}: {by:?} after {} states: {}",
            found.states, setup.title
        );
        assert!(by.contains(&rule), "{mutant:?} doesn't break {rule:?}");
    }
}

#[test]
fn each_rule_is_broken_by_a_mutant() {
    let broken: BTreeSet<_> = mutants().map(|(_, rule, _)| rule).collect();
    assert_eq!(broken, BTreeSet::from(Rule::ALL));
}
