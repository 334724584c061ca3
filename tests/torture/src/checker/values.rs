//! C2: a value is what was stored last.

use std::ops::RangeInclusive;

use super::facts::{Facts, Holding};
use super::{Violation, violation};
use crate::history::What;
use crate::names::COUNTER;

/// In the order of tokens, each holder finds what the one before left.
pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let holdings = facts.holdings.iter().filter(|one| one.name() == COUNTER);
    let mut holdings: Vec<_> = holdings.filter_map(|one| Some((one, one.found?))).collect();
    holdings.sort_by_key(|(holding, _)| holding.token);
    let mut found = Vec::new();
    let (mut due, mut before) = (0..=0, None);
    for (holding, value) in holdings {
        if !due.contains(&value) {
            let text = format!("the value is {value}, and {due:?} was due");
            let events: Vec<_> = before.into_iter().chain([holding.held]).collect();
            found.push(violation("C2", text, &events));
        }
        due = left_by(holding, value);
        before = Some(holding.held);
    }
    for event in facts.events {
        if let What::Stored(value) = &event.what
            && !due.contains(value)
        {
            let text = format!("{value} is stored in the end, and {due:?} was due");
            found.push(violation("C2", text, &[event]));
        }
    }
    found
}

/// What the value may be after somebody had it, who found it to be `value`.
fn left_by(holding: &Holding<'_>, value: u64) -> RangeInclusive<u64> {
    match (holding.increased, holding.released) {
        // It died before it released, changed nothing, or had lost its lease.
        (None | Some(false), _) | (_, Some("lost")) => value..=value,
        (_, Some("ok")) => value + 1..=value + 1,
        // Whoever drops a guard isn't told; and an answer may have been lost.
        _ => value..=value + 1,
    }
}
