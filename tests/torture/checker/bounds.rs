//! C7: every wait is bounded.

use std::time::Duration;

use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::torture::history::Event;

const TIMED: Duration = Duration::from_millis(100);
const RELEASE: Duration = Duration::from_millis(500);
const AFTER_KILL: Duration = Duration::from_millis(250);
const AFTER_RELEASE: Duration = Duration::from_millis(100);
/// Within this time the server knows that a process that was killed is gone.
const CLOSED: Duration = Duration::from_millis(50);
const AFTER_OUTAGE: Duration = Duration::from_millis(500);

/// For how long this process, or the machine, stood still in between.
fn stood_still(facts: &Facts<'_>, event: &Event, from: u64) -> u64 {
    let stops = facts.faults_near(event.process, from, event.at, 0);
    let stopped = stops
        .filter(|span| span.kind.name.starts_with("stop ") && span.process == event.process)
        .map(|span| span.until.min(event.at) - span.from.max(from));
    stopped.sum::<u64>() + facts.stalled(from, event.at)
}

/// A timed call is over 100 ms after its timeout.
pub(super) fn timed(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for answer in facts.answers.values() {
        let Some(ask) = facts.asks.get(&answer.id) else {
            continue;
        };
        if !matches!(ask.detail.as_str(), "timed" | "try" | "open") {
            continue;
        }
        // An attempt without a timeout takes what its connection and its answer may take.
        let timeout = match ask.detail.as_str() {
            "timed" => ask.until,
            _ => nanos(3 * rules.io_timeout),
        };
        let most = timeout + nanos(TIMED + rules.slack) + stood_still(facts, answer, ask.at);
        let took = answer.at.saturating_sub(ask.at);
        if took > most {
            let text = format!("a timed call took {:?}", shown(took));
            found.push(violation("C7", text, &[ask, answer]));
        }
    }
    found
}

/// A release is over after 500 ms.
pub(super) fn releases(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for holding in &facts.holdings {
        let (Some(release), Some(released)) = (holding.release, holding.released) else {
            continue;
        };
        let took = released.at.saturating_sub(release.at);
        if took > nanos(RELEASE + rules.slack) + stood_still(facts, released, release.at) {
            let text = format!("a release took {:?}", shown(took));
            found.push(violation("C7", text, &[release, released]));
        }
    }
    found
}

/// Who waits for a lock whose holder is killed has it after its ttl.
pub(super) fn after_kills(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for span in &facts.faults {
        if !span.kind.name.starts_with("kill ") {
            continue;
        }
        let killed = |pid: u32| u64::from(pid) == span.event.token;
        for dead in &facts.holdings {
            let was_held = dead.from() <= span.from && span.from <= dead.end();
            if !killed(dead.answer.pid) || !was_held || dead.release.is_some() {
                continue;
            }
            let mut later = facts.holdings_of(dead.name());
            let Some(next) = later.find(|one| one.from() > span.from && !killed(one.answer.pid))
            else {
                continue;
            };
            let since = next.ask.map_or(span.from, |ask| ask.at.max(span.from));
            let took = next.from().saturating_sub(since);
            let most =
                nanos(rules.ttl + AFTER_KILL + rules.slack) + facts.delayed(since, next.from());
            let others = facts.faults.iter().filter(|other| {
                let near = other.until.saturating_add(nanos(rules.ttl));
                other.event.id != span.event.id && other.from <= next.from() && since <= near
            });
            if took > most && others.count() == 0 {
                let text = format!(
                    "{}: {:?} after its holder was killed",
                    dead.name(),
                    shown(took)
                );
                found.push(violation(
                    "C7",
                    text,
                    &[span.event, dead.answer, next.answer],
                ));
            }
        }
    }
    found
}

/// Who waits for a lock that is released has it soon, also when others have died in line. A process that dies just
/// when the lock is given to it costs its ttl.
pub(super) fn after_releases(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        let holdings: Vec<_> = facts.holdings_of(name).collect();
        for pair in holdings.windows(2) {
            let (Some(released), Some(ask)) = (pair[0].released, pair[1].ask) else {
                continue;
            };
            let took = pair[1].from().saturating_sub(released.at);
            let most = AFTER_RELEASE + rules.slack;
            if took <= nanos(most) || ask.at > released.at {
                continue;
            }
            let since = released.at.saturating_sub(nanos(2 * rules.ttl));
            let excused = facts.faults.iter().any(|span| {
                let (from, after) = match span.kind.name.starts_with("kill ") {
                    true => (
                        pair[0].release.map_or(released.at, |event| event.at),
                        CLOSED,
                    ),
                    false => (since, rules.ttl),
                };
                span.from <= pair[1].from() && from <= span.until.saturating_add(nanos(after))
            });
            let delayed = facts.delayed(released.at, pair[1].from());
            if !excused && took > nanos(most) + delayed {
                let text = format!("{name}: {:?} after it was released", shown(took));
                found.push(violation("C7", text, &[released, ask, pair[1].answer]));
            }
        }
    }
    found
}

/// Locks are taken again 500 ms after the server is back.
pub(super) fn after_outages(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    const OUTAGES: [&str; 5] = [
        "stop server",
        "restart server with aof",
        "restart server without aof",
        "client pause",
        "busy script",
    ];
    let mut found = Vec::new();
    for span in &facts.faults {
        if !OUTAGES.contains(&span.kind.name) || span.until == u64::MAX {
            continue;
        }
        let next = facts.holdings.iter().find(|one| one.from() >= span.until);
        let Some(next) = next else { continue };
        let took = next.from() - span.until;
        let mut later = facts.faults.iter();
        let again = later.any(|other| other.from > span.from && other.from <= next.from());
        let most = nanos(AFTER_OUTAGE + rules.slack) + facts.delayed(span.until, next.from());
        if took > most && !again {
            let text = format!("nobody had a lock for {:?} after it was over", shown(took));
            found.push(violation("C7", text, &[span.event, next.answer]));
        }
    }
    found
}
