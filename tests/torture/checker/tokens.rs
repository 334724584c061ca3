//! C1, C2 and C3: one at a time, in the order of tokens.

use std::collections::HashMap;

use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::torture::kinds::Class;

/// C1.
pub(super) fn exclusion(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        let mut last: Option<&super::facts::Holding<'_>> = None;
        for next in facts.holdings_of(name).filter(|one| one.was_valid()) {
            if let Some(before) = last {
                let (end, allowed) = match rules.class {
                    Class::Safe => (before.end(), 0),
                    Class::Unsafe => unsafe_overlap(facts, rules, before, next.from()),
                };
                let overlap = end.saturating_sub(next.from());
                if overlap > allowed {
                    let text = format!("{name}: two hold it for {:?}", shown(overlap));
                    let events = [before.answer, before.last, next.answer];
                    found.push(violation("C1", text, &events));
                }
            }
            if last.is_none_or(|before| before.end() < next.end()) {
                last = Some(next);
            }
        }
    }
    found
}

/// How long the one before believed in its lease, and for how long it may have: until its next renewal, and as long
/// as that may take. Without an unsafe fault before it may not at all.
fn unsafe_overlap(
    facts: &Facts<'_>,
    rules: &Rules,
    before: &super::facts::Holding<'_>,
    next: u64,
) -> (u64, u64) {
    let ttl = nanos(rules.ttl);
    let mut faults = facts.faults_near(before.answer.process, before.from(), next, ttl);
    if !faults.any(|span| span.kind.class == Class::Unsafe) {
        return (before.end(), 0);
    }
    // It was found valid then; what it might have believed after that hurt nobody.
    let end = before
        .release
        .map_or(before.seen, |event| event.at.min(before.seen));
    let allowed = rules.ttl / 3 + rules.io_timeout + rules.slack;
    (end, nanos(allowed) + facts.stalled(next, end))
}

/// C3.
pub(super) fn order(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        let mut seen = HashMap::new();
        for holding in facts.holdings_of(name) {
            if let Some(other) = seen.insert(holding.token(), holding.answer) {
                let text = format!("{name}: two have token {}", holding.token());
                found.push(violation("C3", text, &[other, holding.answer]));
            }
        }
        // A thread may be handed a lease by one that doesn't know yet that the server has forgotten it.
        let ignorance = match rules.class {
            Class::Safe => 0,
            Class::Unsafe => nanos(rules.ttl / 3 + rules.io_timeout + rules.slack),
        };
        let valid: Vec<_> = facts
            .holdings_of(name)
            .filter(|one| one.was_valid())
            .collect();
        for pair in valid.windows(2) {
            let gap = pair[1].from() - pair[0].from();
            if pair[0].token() > pair[1].token() && gap >= ignorance {
                let text = format!("{name}: a later holder has a smaller token");
                found.push(violation("C3", text, &[pair[0].answer, pair[1].answer]));
            }
        }
    }
    found
}

/// C2. What the register has let in is judged anew.
pub(super) fn register(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: HashMap<&str, (u64, u64, u64)> = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "register") {
        let (token, owner, value) = last.get(event.name.as_str()).copied().unwrap_or_default();
        let is_stale = event.token < token || (event.token == token && owner != event.id);
        if is_stale != (event.outcome == "stale") {
            let text = format!("{}: after token {token} this should not be", event.name);
            found.push(violation("C2", text, &[event]));
        }
        if is_stale {
            continue;
        }
        let expected = value + u64::from(event.detail == "write");
        if event.until != expected {
            let text = format!("{}: a write was lost, {expected} is due", event.name);
            found.push(violation("C2", text, &[event]));
        }
        last.insert(&event.name, (event.token, event.id, event.until));
    }
    found
}
