//! C4 and C8: what goes wrong has a cause.

use std::collections::HashMap;
use std::time::Duration;

use super::facts::Holding;
use super::{Facts, Rules, Violation, bounds, nanos, passing, shown, violation};
use crate::history::{Event, Mode};

/// What is lost, or abandoned, without a fault.
pub(super) fn losses(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let ttl = nanos(rules.ttl + rules.slack);
    let (mut found, panics) = (Vec::new(), panics(facts));
    for holding in &facts.holdings {
        let from = holding.from();
        if let Some(lost) = holding.lost
            && !is_loss_explained(facts, rules, holding, lost)
        {
            let text = format!("{} lost without a cause", holding.name());
            found.push(violation("C4", text, &[holding.answer, lost]));
        }
        let is_judged = !matches!(holding.answer.mode, Mode::Permits(_));
        let within = (from.saturating_sub(3 * ttl), from);
        if is_judged
            && holding.answer.detail == "abandoned"
            && !panicked_within(within, holding, &panics)
        {
            let since = last_for_itself(facts, holding).saturating_sub(3 * ttl);
            let mut spans = facts.faults.iter();
            let faulty = spans.any(|span| {
                facts.engine.may_abandon(span.kind) && span.from <= from && since <= span.until
            });
            let panicked = panicked_within((since, from), holding, &panics)
                || passing::was_passed_on(facts, holding, since);
            let broken = facts.was_broken(&holding.answer.name, since, from);
            let was_late =
                || !facts.engine.has_lasting_leases() && was_one_late(facts, rules, holding, since);
            if !faulty && !broken && !panicked && !was_late() {
                let text = format!("{} found abandoned without a cause", holding.name());
                found.push(violation("C4", text, &[holding.answer]));
            }
        }
    }
    found
}

fn is_loss_explained(
    facts: &Facts<'_>,
    rules: &Rules,
    holding: &Holding<'_>,
    lost: &Event,
) -> bool {
    let (from, process) = (holding.from(), holding.answer.process);
    let mut faults = facts.faults_near(process, from, lost.at, nanos(rules.ttl + rules.slack));
    match lost.detail.as_str() {
        "broken" => was_broken_before(facts, lost),
        "closed" => holding.closed.is_some(),
        // What is lost is lost for good.
        "held again" => false,
        _ => {
            let may_be_late = !facts.engine.has_lasting_leases();
            faults.any(|span| facts.engine.may_lose(span.kind))
                || (may_be_late && was_too_late(facts, rules, holding, lost))
        }
    }
}

/// Whether somebody had broken one of the names of this call before it was told.
fn was_broken_before(facts: &Facts<'_>, lost: &Event) -> bool {
    let mut holdings = facts.holdings_of_call(lost.id);
    holdings.any(|one| {
        facts
            .break_of(one)
            .is_some_and(|broken| broken.from <= lost.at)
    })
}

/// When exclusive holders of each name panicked.
fn panics<'a>(facts: &Facts<'a>) -> HashMap<&'a str, Vec<u64>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for holding in facts.holdings.iter().filter(|one| one.is_exclusive()) {
        if let Some(release) = holding.release.filter(|event| event.detail == "panic") {
            for name in holding.answer.name.split(' ') {
                found.entry(name).or_default().push(release.at);
            }
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

/// Whether renewals may not have come in time, since the last one that is known: more than half of a ttl has to pass
/// without one.
fn was_too_late(facts: &Facts<'_>, rules: &Rules, holding: &Holding<'_>, lost: &Event) -> bool {
    let ttl = nanos(rules.ttl);
    // The answer that gave the lease may have come late itself.
    let since = holding.until.saturating_sub(ttl);
    let lateness = facts.lateness.on_the_way(lost.process, since, lost.at);
    lateness >= ttl / 2
}

/// Whether the same may be so for one of those that may have had it before.
fn was_one_late(facts: &Facts<'_>, rules: &Rules, holding: &Holding<'_>, since: u64) -> bool {
    let (ttl, until) = (nanos(rules.ttl), holding.from());
    let processes = facts.askers(holding.name(), since, until);
    processes.into_iter().any(|process| {
        let lateness = &facts.lateness;
        lateness.worst_on_the_way(process, since, until, 2 * ttl) >= ttl / 2
    })
}

/// Since when it may have been abandoned: since the last that had it for itself, however long ago that was. Those that
/// read tell of it, but leave it to be told; so does who has one of several names, and gives it up before it has all.
fn last_for_itself(facts: &Facts<'_>, holding: &Holding<'_>) -> u64 {
    let from = holding.from();
    let last = |name| {
        let mut all = facts.holdings.iter().rev();
        let last = all.find(|one| one.name() == name && one.from() < from && one.is_exclusive());
        last.map_or(from, |last| last.from())
    };
    let names = holding.answer.name.split(' ');
    names.map(last).min().unwrap_or_default()
}

/// Errors that no fault allows.
pub(super) fn errors(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let after = nanos(rules.ttl + rules.slack);
    let mut found = Vec::new();
    for event in facts.events {
        let is_error = match (event.op.as_str(), event.outcome.as_str()) {
            ("answer", "held" | "none" | "opened" | "closed") => false,
            // What was lost is another rule's.
            ("released", "ok" | "dropped" | "passed" | "lost") => false,
            ("answer", "lost") => !passing::is_adoption(facts, event),
            ("answer", "cancelled") => !was_cancelled(facts, event),
            ("answer" | "released", _) => true,
            _ => false,
        };
        if !is_error {
            continue;
        }
        let error = &event.outcome;
        let from = facts.asks.get(&event.id).map_or(event.at, |ask| ask.at);
        let mut faults = facts.faults_near(event.process, from, event.at, after);
        let allowed = faults.any(|span| span.kind.errors.contains(&error.as_str()));
        let had_no_answer = error == "unavailable" && had_no_time(facts, rules, event);
        if !allowed && !had_no_answer {
            let took = shown(event.at.saturating_sub(from));
            let text = format!("an error that no fault allows, after {took:?}");
            found.push(violation("C8", text, &[event]));
        }
    }
    found
}

fn was_cancelled(facts: &Facts<'_>, answer: &Event) -> bool {
    let ask = facts.asks.get(&answer.id);
    let ended = ask.and_then(|ask| bounds::ended(facts, ask));
    ended.is_some_and(|ended| ended.at <= answer.at)
}

/// Less than this is too short to ask in, whatever the machine does.
const SHORT: Duration = Duration::from_millis(20);
/// What a release may take.
const RELEASE: Duration = Duration::from_millis(500);
/// For so long calls without a timeout ask a server that doesn't answer.
const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);

/// Whether an answer may not have come in time, for want of time, or because somebody on its way was late.
fn had_no_time(facts: &Facts<'_>, rules: &Rules, event: &Event) -> bool {
    let late = |since: u64| facts.lateness.on_the_way(event.process, since, event.at);
    let before = |time: Duration| event.at.saturating_sub(nanos(time));
    let attempt = rules.replica_timeout.unwrap_or(rules.io_timeout);
    if event.op == "released" {
        let mut holdings = facts.holdings_of_call(event.id);
        return holdings.find_map(|one| one.release).is_some_and(|begun| {
            // A value that too few replicas have isn't stored again.
            let is_one_attempt = begun.detail == "commit" && rules.replica_timeout.is_some();
            let time = if is_one_attempt { attempt } else { RELEASE };
            // It is tried for no longer than its lease lasts.
            let time = nanos(time).min(begun.until.saturating_sub(begun.at));
            late(begun.at) >= time / 2
        });
    }
    let Some(ask) = facts.asks.get(&event.id) else {
        return false;
    };
    match ask.detail.as_str() {
        // What it is told last has to come before its end.
        "timed" => {
            ask.until < nanos(SHORT) || late(ask.at.max(before(rules.io_timeout + SHORT))) > 0
        }
        // They are tried once.
        "try" | "adopt" if facts.engine.shares_connection() => {
            late(ask.at.saturating_sub(nanos(attempt))) >= nanos(attempt) / 2
        }
        "try" | "open" | "adopt" => late(ask.at) >= nanos(attempt) / 2,
        _ => late(ask.at.max(before(UNAVAILABLE_FOR))) >= nanos(UNAVAILABLE_FOR) / 2,
    }
}
