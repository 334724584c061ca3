//! C3, C4 and C6, where a lease is passed on to another process.

use super::facts::Holding;
use super::server::pid_of;
use super::{Facts, Rules, Violation, forgot, violation};
use crate::history::Event;

/// A lease is adopted once, as long as it is there, with a larger token.
pub(super) fn adopted(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for (id, asks) in &facts.adoptions {
        let answers = asks.iter().filter_map(|ask| facts.answers.get(&ask.id));
        let held: Vec<_> = answers
            .clone()
            .filter(|one| one.outcome == "held")
            .collect();
        if let [first, second, ..] = held[..] {
            let text = format!("{}: two have adopted a lease", first.name);
            found.push(violation("C6", text, &[first, second]));
        }
        let Some(passed) = facts.holdings_of_call(*id).next() else {
            continue;
        };
        for answer in held {
            if answer.token <= passed.token() {
                let text = format!("{}: who adopts it has no larger token", answer.name);
                found.push(violation("C3", text, &[passed.answer, answer]));
            }
        }
        for answer in answers.filter(|one| one.outcome == "lost") {
            if !is_explained(facts, rules, passed, asks, answer) {
                let text = format!("{} lost without a cause, when it was adopted", answer.name);
                found.push(violation("C4", text, &[passed.answer, passed.last, answer]));
            }
        }
    }
    found
}

/// Why a lease wasn't there any more when it was to be adopted.
fn is_explained(
    facts: &Facts<'_>,
    rules: &Rules,
    passed: &Holding<'_>,
    asks: &[&Event],
    answer: &Event,
) -> bool {
    let was_over = passed.last.op != "release" || passed.until <= answer.at;
    let another = asks
        .iter()
        .any(|ask| ask.id != answer.id && ask.at <= answer.at);
    let broken = facts
        .break_of(passed)
        .is_some_and(|one| one.from <= answer.at);
    was_over || another || broken || forgot(facts, rules, passed.from(), answer.at)
}

pub(super) fn is_adoption(facts: &Facts<'_>, answer: &Event) -> bool {
    let ask = facts.asks.get(&answer.id);
    ask.is_some_and(|ask| ask.detail == "adopt")
}

/// Whether the owner that a key has may have it by an adoption that wasn't over then.
pub(super) fn is_adopted_between(facts: &Facts<'_>, key: &Event, since: u64) -> bool {
    let mut asks = facts.adoptions.values().flatten();
    asks.any(|ask| {
        let answer = facts.answers.get(&ask.id);
        let is_its = ask.name == key.name && Some(ask.pid) == pid_of(&key.detail);
        is_its && ask.at <= key.at && answer.is_none_or(|answer| since <= answer.at)
    })
}

/// Whether somebody passed on one of its names since then, which nobody may have adopted, or which tells the one that
/// adopted it that it was never released.
pub(super) fn was_passed_on(facts: &Facts<'_>, holding: &Holding<'_>, since: u64) -> bool {
    let names = holding.answer.name.split(' ');
    let mut holdings = names.flat_map(|name| facts.holdings_of(name));
    holdings.any(|one| {
        let passed = one.passed();
        passed.is_some_and(|event| since <= event.at && event.at <= holding.from())
    })
}
