//! C2, for what locks protect: a value is what was stored last, and stays as it is while it is read.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::facts::{Holding, Span};
use super::{Facts, Rules, Violation, forgot, nanos, violation};
use crate::kinds::{Class, Moves};

/// The server has no values after them, or older ones.
const FORGET: [&str; 3] = [
    "restart server without aof",
    "flushall",
    "fail over to a stale replica",
];

/// In the order of tokens, each holder finds what the one before left.
pub(super) fn stored(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let names = facts.names().into_iter();
    names
        .flat_map(|name| stored_under(facts, rules, name))
        .collect()
}

fn stored_under(facts: &Facts<'_>, rules: &Rules, name: &str) -> Vec<Violation> {
    let holdings = facts.holdings_of(name);
    let mut holdings: Vec<_> = holdings.filter_map(|one| Some((one, one.value?))).collect();
    holdings.sort_by_key(|(holding, _)| holding.token());
    let mut found = Vec::new();
    let mut due = 0..=0;
    // The sum of what was added: for certain, and perhaps.
    let mut sum = 0..=0;
    let mut last: Option<&Holding<'_>> = None;
    for (holding, value) in holdings {
        if !due.contains(&value) && !has_forgotten(facts, rules, last, holding.from()) {
            let text = format!("{name}: the value is {value}, and {due:?} was due");
            let before = last.map(|last| last.release.unwrap_or(last.answer));
            let shown: Vec<_> = before.into_iter().chain([holding.answer]).collect();
            found.push(violation("C2", text, &shown));
        }
        due = left_by(facts, rules, holding, value);
        sum = sum.start() + due.start() - value..=sum.end() + due.end() - value;
        last = Some(holding);
    }
    let events = facts.events.iter();
    for event in events.filter(|event| event.op == "stored" && event.name == name) {
        let value = event.until;
        let is_sum = sum.contains(&value) || rules.class == Class::Unsafe;
        let is_due = due.contains(&value) && is_sum;
        if !is_due && !has_forgotten(facts, rules, last, event.at) {
            let text = format!("{name}: {value} in the end, and {due:?} of {sum:?} was due");
            found.push(violation("C2", text, &[event]));
        }
    }
    found
}

/// What the value may be after somebody had it, who found it to be `value`.
fn left_by(
    facts: &Facts<'_>,
    rules: &Rules,
    holding: &Holding<'_>,
    value: u64,
) -> RangeInclusive<u64> {
    let (same, changed, either) = (value..=value, value + 1..=value + 1, value..=value + 1);
    let Some(release) = holding.release else {
        // It died before it began to.
        return same;
    };
    if !matches!(release.detail.as_str(), "commit" | "drop") {
        return same;
    }
    match holding.released {
        Some(event) if event.outcome == "ok" => changed,
        Some(event) if event.outcome == "lost" => same,
        Some(event) if event.outcome == "dropped" && holding.lost.is_none() => {
            let after = nanos(rules.ttl + rules.slack);
            let process = event.process;
            let mut faults = facts.faults_near(process, holding.from(), event.at, after);
            // Whether it was in time nobody saw.
            let lateness = facts.lateness.on_the_way(process, release.at, event.at);
            let is_sure = faults.next().is_none() && lateness == 0;
            if is_sure { changed } else { either }
        }
        _ => either,
    }
}

/// Whether a server has forgotten values since somebody had it.
fn has_forgotten(facts: &Facts<'_>, rules: &Rules, last: Option<&Holding<'_>>, until: u64) -> bool {
    let from = last.map_or(0, Holding::from);
    let fails_over =
        |span: &Span<'_>| span.kind.moves == Moves::Masters && span.kind.harms(rules.class);
    facts.faults.iter().any(|span| {
        let forgets = FORGET.contains(&span.kind.name) || fails_over(span);
        forgets && span.from <= until && from <= span.until.saturating_add(nanos(rules.ttl))
    })
}

/// What is read in the beginning and in the end, by who may read all the time.
pub(super) fn readings(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let holdings: HashMap<_, _> = facts
        .holdings
        .iter()
        .map(|holding| ((holding.name(), holding.answer.id), holding))
        .collect();
    let mut found = Vec::new();
    let mut begun = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "register") {
        let of = (event.name.as_str(), event.id);
        match event.detail.as_str() {
            "peek" => drop(begun.insert(of, event)),
            "leave" => {
                let (Some(before), Some(holding)) = (begun.remove(&of), holdings.get(&of)) else {
                    continue;
                };
                let lost = holding.lost.is_some_and(|lost| lost.at <= event.at);
                let was_valid = event.at < holding.end() && !lost;
                // The register has refused one whose lease was broken.
                let refused = event.outcome == "stale" && facts.break_of(holding).is_some();
                let excused = refused || forgot(facts, rules, holding.from(), event.at);
                if was_valid && before.until != event.until && !excused {
                    let text = format!("{}: somebody wrote while it was read", event.name);
                    found.push(violation("C2", text, &[holding.answer, before, event]));
                }
            }
            _ => {}
        }
    }
    found
}
