//! C1, C2 and C3: one at a time, in the order of tokens.

use std::collections::HashMap;

use super::facts::Holding;
use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::history::Mode;
use crate::kinds::{Class, Moves};
use crate::register::Cell;

/// C1.
pub(super) fn exclusion(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        for (next, mut inside) in facts.together(name) {
            inside.retain(|before| {
                if in_order_of_tokens(before, next).0.is_of_command() {
                    // That one is another rule's.
                    return false;
                }
                if let Some(believes) = broken_overlap(facts, rules, before, next) {
                    return believes;
                }
                let (end, allowed) = match rules.class {
                    Class::Safe => (before.end(), 0),
                    Class::Unsafe => unsafe_overlap(facts, rules, before, next),
                };
                end.saturating_sub(next.from()) > allowed
            });
            for before in in_the_way(next, &inside, rules.permits) {
                let overlap = before.end().saturating_sub(next.from());
                let text = format!("{name}: two hold it for {:?}", shown(overlap));
                let events = [before.answer, before.last, next.answer];
                found.push(violation("C1", text, &events));
            }
        }
    }
    found
}

/// Those that should not be inside with the next.
fn in_the_way<'a, 'b>(
    next: &Holding<'_>,
    inside: &[&'b Holding<'a>],
    permits: u32,
) -> Vec<&'b Holding<'a>> {
    let count = |holding: &Holding<'_>| match holding.answer.mode {
        Mode::Permits(count) => count,
        _ => 0,
    };
    let used: u32 = inside.iter().map(|one| count(one)).sum();
    let fits = |one: &Holding<'_>| match (one.answer.mode, next.answer.mode) {
        (Mode::Read, Mode::Read) => true,
        (Mode::Permits(_), Mode::Permits(count)) => used + count <= permits,
        _ => false,
    };
    let others = inside.iter().copied();
    others.filter(|one| !fits(one)).collect()
}

/// Whether one whose lease was broken believed in it for too long, while the other had the lock. `None` when it wasn't.
fn broken_overlap(
    facts: &Facts<'_>,
    rules: &Rules,
    before: &Holding<'_>,
    next: &Holding<'_>,
) -> Option<bool> {
    let (lost, other) = in_order_of_tokens(before, next);
    let broken = facts.break_of(lost)?;
    let believed = found_valid(lost);
    let may = facts.may_believe_until(rules, lost, broken);
    Some(believed > other.from().max(may))
}

/// The server knows the one that it let in later, whoever was told first.
fn in_order_of_tokens<'a, 'b>(
    before: &'b Holding<'a>,
    next: &'b Holding<'a>,
) -> (&'b Holding<'a>, &'b Holding<'a>) {
    if before.token() < next.token() {
        (before, next)
    } else {
        (next, before)
    }
}

/// When it was last found valid; what its holder might have believed after that hurt nobody.
fn found_valid(holding: &Holding<'_>) -> u64 {
    holding
        .release
        .map_or(holding.seen, |event| event.at.min(holding.seen))
}

/// Until when the one that had lost its lease believed in it, and for how long it may have: until its next renewal, and
/// as long as that may take. Without an unsafe fault before it may not at all.
fn unsafe_overlap(
    facts: &Facts<'_>,
    rules: &Rules,
    before: &Holding<'_>,
    next: &Holding<'_>,
) -> (u64, u64) {
    let ttl = nanos(rules.ttl);
    let mut faults = facts.faults_near(before.answer.process, before.from(), next.from(), ttl);
    if !faults.any(|span| span.kind.harms(rules.class)) {
        return (before.end(), 0);
    }
    let (lost, _) = in_order_of_tokens(before, next);
    let end = found_valid(lost);
    let allowed = ignorance(facts, rules);
    // Its renewal may come as late as it does.
    let process = lost.answer.process;
    let lateness = facts.lateness.on_the_way(process, next.from(), end);
    (end, allowed + lateness)
}

/// For how long one may believe in a lease that a server forgot: until its next renewal. A master that was replaced
/// goes on renewing, and granting, until its clients look for the new one.
fn ignorance(facts: &Facts<'_>, rules: &Rules) -> u64 {
    let mut spans = facts.faults.iter();
    let are_replaced = spans.any(|span| span.kind.moves == Moves::Masters);
    let until = if are_replaced {
        rules.ttl
    } else {
        rules.ttl / 3
    };
    nanos(until + rules.io_timeout + rules.slack)
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
        let ignorant_for = match rules.class {
            Class::Safe => 0,
            Class::Unsafe => ignorance(facts, rules),
        };
        let valid = facts.holdings_of(name).filter(|one| one.was_valid());
        let (mut largest, mut largest_exclusive): (Option<&Holding<'_>>, Option<&Holding<'_>>) =
            (None, None);
        for next in valid {
            let before = if next.is_exclusive() {
                largest
            } else {
                largest_exclusive
            };
            let is_late = |before: &&Holding<'_>| is_late(before, next, ignorant_for);
            if let Some(before) = before.filter(is_late)
                && !next.is_of_command()
                && !is_unknowingly_broken(facts, rules, next)
            {
                let text = format!("{name}: a later holder has a smaller token");
                found.push(violation("C3", text, &[before.answer, next.answer]));
            }
            largest = larger(largest, next);
            if next.is_exclusive() {
                largest_exclusive = larger(largest_exclusive, next);
            }
        }
    }
    found
}

/// The same where a lease was broken that is handed over, or was on its way to whom it was granted.
fn is_unknowingly_broken(facts: &Facts<'_>, rules: &Rules, next: &Holding<'_>) -> bool {
    let broken = facts.break_of(next);
    broken.is_some_and(|one| next.from() <= facts.may_believe_until(rules, next, one))
}

fn is_late(before: &Holding<'_>, next: &Holding<'_>, ignorance: u64) -> bool {
    before.token() > next.token() && next.from() - before.from() >= ignorance
}

fn larger<'a, 'b>(one: Option<&'b Holding<'a>>, next: &'b Holding<'a>) -> Option<&'b Holding<'a>> {
    Some(one.filter(|one| one.token() > next.token()).unwrap_or(next))
}

/// C2. What the register has let in is judged anew.
pub(super) fn register(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut cells: HashMap<&str, Cell> = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "register") {
        let cell = cells.entry(&event.name).or_default();
        let is_stale = cell.is_stale(&event.detail, event.token, event.id);
        if is_stale != (event.outcome == "stale") {
            let text = format!("{}: after {cell:?} this should not be", event.name);
            found.push(violation("C2", text, &[event]));
        }
        if is_stale {
            continue;
        }
        let expected = cell.value + u64::from(event.detail == "write");
        if event.until != expected {
            let text = format!("{}: a write was lost, {expected} is due", event.name);
            found.push(violation("C2", text, &[event]));
        }
        cell.accept(&event.detail, event.token, event.id, event.until);
        cell.value = event.until;
    }
    found
}
