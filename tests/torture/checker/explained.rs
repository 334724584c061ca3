//! C4 and C8: what goes wrong has a cause.

use std::collections::HashMap;

use super::facts::Holding;
use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::torture::history::Mode;

/// What is lost, or abandoned, without a fault.
pub(super) fn losses(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let ttl = nanos(rules.ttl + rules.slack);
    let (mut found, panics) = (Vec::new(), panics(facts));
    for holding in &facts.holdings {
        let (from, process) = (holding.from(), holding.answer.process);
        if let Some(lost) = holding.lost {
            let mut faults = facts.faults_near(process, from, lost.at, ttl);
            if !faults.any(|span| span.kind.loses) && facts.delayed(from, lost.at) < ttl / 4 {
                let text = format!("{} lost without a cause", holding.name());
                found.push(violation("C4", text, &[holding.answer, lost]));
            }
        }
        let is_judged = !matches!(holding.answer.mode, Mode::Permits(_));
        let within = (from.saturating_sub(3 * ttl), from);
        if is_judged
            && holding.answer.detail == "abandoned"
            && !panicked_within(within, holding, &panics)
        {
            let since = last_for_itself(facts, holding).saturating_sub(3 * ttl);
            let mut spans = facts.faults.iter();
            let faulty =
                spans.any(|span| span.kind.abandons() && span.from <= from && since <= span.until);
            let explained = faulty || panicked_within((since, from), holding, &panics);
            if !explained && !facts.is_delayed(since, from) {
                let text = format!("{} found abandoned without a cause", holding.name());
                found.push(violation("C4", text, &[holding.answer]));
            }
        }
    }
    found
}

/// When exclusive holders of each name panicked.
fn panics<'a>(facts: &Facts<'a>) -> HashMap<&'a str, Vec<u64>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for holding in facts.holdings.iter().filter(|one| one.is_exclusive()) {
        if let Some(release) = holding.release.filter(|event| event.detail == "panic") {
            found.entry(holding.name()).or_default().push(release.at);
        }
    }
    found.values_mut().for_each(|times| times.sort_unstable());
    found
}

/// Whether the last panic of one of its names was within that time.
fn panicked_within(
    (since, from): (u64, u64),
    holding: &Holding<'_>,
    panics: &HashMap<&str, Vec<u64>>,
) -> bool {
    let names = holding.answer.name.split(' ');
    names.filter_map(|name| panics.get(name)).any(|times| {
        let before = times.partition_point(|at| *at <= from);
        before > 0 && times[before - 1] >= since
    })
}

/// Since when it may have been abandoned: those that read tell of it, but leave it to be told to the next that has it
/// for itself.
fn last_for_itself(facts: &Facts<'_>, holding: &Holding<'_>) -> u64 {
    let from = holding.from();
    let last = |name| {
        let all = facts.holdings.iter().rev();
        let mut before = all.filter(|one| one.name() == name && one.from() < from);
        match before.next() {
            Some(last) if !last.is_exclusive() => before
                .find(|one| one.is_exclusive())
                .map_or(0, |one| one.from()),
            _ => from,
        }
    };
    let names = holding.answer.name.split(' ');
    names.map(last).min().unwrap_or_default()
}

/// For so long around a call that asks once it matters that the machine stood still, in nanoseconds.
const BUSY: u64 = 1_000_000_000;

/// Errors that no fault allows.
pub(super) fn errors(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let after = nanos(rules.ttl + rules.slack);
    let mut found = Vec::new();
    for event in facts.events {
        let error = match event.op.as_str() {
            "answer" if !matches!(event.outcome.as_str(), "held" | "none" | "opened") => {
                &event.outcome
            }
            // What was lost is another rule's.
            "released" if !matches!(event.outcome.as_str(), "ok" | "dropped" | "lost") => {
                &event.outcome
            }
            _ => continue,
        };
        let from = facts.asks.get(&event.id).map_or(event.at, |ask| ask.at);
        let mut faults = facts.faults_near(event.process, from, event.at, after);
        let allowed = faults.any(|span| span.kind.errors.contains(&error.as_str()));
        let ask = facts.asks.get(&event.id);
        let timeout = ask.map_or(0, |ask| ask.until);
        let asks_once = ask.is_some_and(|ask| matches!(ask.detail.as_str(), "try" | "open"));
        // A call that has little time, or one question, if the machine had no time for it. That of a single thread may
        // be missed by those who watch, so for one question it is enough that the machine was busy about then.
        let around = if asks_once { BUSY } else { 0 };
        let (since, until) = (from.saturating_sub(around), event.at + around);
        let was_delayed = (timeout > 0 || asks_once) && facts.is_delayed(since, until);
        let is_short = (1..20_000_000).contains(&timeout);
        let was_cut_short = error == "unavailable" && (is_short || was_delayed);
        if !allowed && !was_cut_short {
            let took = shown(event.at.saturating_sub(from));
            let text = format!("an error that no fault allows, after {took:?}");
            found.push(violation("C8", text, &[event]));
        }
    }
    found
}
