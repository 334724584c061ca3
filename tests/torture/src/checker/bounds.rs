//! C7: every wait is bounded.

use std::time::Duration;

use super::facts::{Holding, Span};
use super::server::pid_of;
use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::history::{Event, WAITED};
use crate::kinds::Moves;

const TIMED: Duration = Duration::from_millis(100);
const CANCELLED: Duration = Duration::from_millis(50);
const CLOSE: Duration = Duration::from_millis(500);
const RELEASE: Duration = Duration::from_millis(500);
const AFTER_KILL: Duration = Duration::from_millis(250);
const AFTER_RELEASE: Duration = Duration::from_millis(100);
/// Within this time the server knows that a process that was killed is gone.
const CLOSED: Duration = Duration::from_millis(50);
const AFTER_OUTAGE: Duration = Duration::from_millis(500);
/// Nobody holds anything for longer than twice the ttl, and there are as many threads.
const ENDLESS: Duration = Duration::from_secs(15);
/// So many times the ttl, where that is longer.
const ENDLESS_TTLS: u32 = 20;

/// For how long something took, if that is longer than it may be, also with the lateness that adds to it.
fn too_long(
    (from, until): (u64, u64),
    most: Duration,
    lateness: impl FnOnce() -> u64,
) -> Option<Duration> {
    let (took, most) = (until.saturating_sub(from), nanos(most));
    (took > most && took > most + lateness()).then(|| shown(took))
}

/// For how long those were late in between who want this lock, or were on their way.
fn their_lateness(facts: &Facts<'_>, name: &str, from: u64, until: u64) -> u64 {
    let processes = facts.askers(name, from, until);
    facts.lateness.on_the_way_of(&processes, from, until)
}

/// A timed call is over 100 ms after its timeout; one that waits, 50 ms after it was cancelled, or its locker closed.
/// Nobody starves.
pub(super) fn calls(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let endless = ENDLESS.max(rules.ttl * ENDLESS_TTLS);
    for answer in facts.answers.values() {
        let Some(ask) = facts.asks.get(&answer.id) else {
            continue;
        };
        // Its own bounds don't depend on others.
        let late = |from| facts.lateness.of(answer.process, from, answer.at);
        let way = || facts.lateness.on_the_way(answer.process, ask.at, answer.at);
        // An attempt without a timeout takes what its connection and its answer may take.
        let timeout = match ask.detail.as_str() {
            "timed" => Some(Duration::from_nanos(ask.until)),
            "try" | "open" => Some(3 * rules.io_timeout),
            "close" => Some(CLOSE - TIMED),
            _ => None,
        };
        let whole = (ask.at, answer.at);
        let took = match timeout {
            Some(timeout) => too_long(whole, timeout + TIMED + rules.slack, || late(ask.at)),
            None => too_long(whole, endless, way),
        };
        if let Some(took) = took {
            let text = format!("a call took {took:?}");
            found.push(violation("C7", text, &[ask, answer]));
        }
        if let Some(ended) = ended(facts, ask) {
            let since = ask.at.max(ended.at);
            let most = CANCELLED + rules.slack;
            if let Some(took) = too_long((since, answer.at), most, || late(since)) {
                let text = format!("a call took {took:?} after it was cancelled");
                found.push(violation("C7", text, &[ask, ended, answer]));
            }
        }
    }
    found
}

/// What ended a call first.
pub(super) fn ended<'a>(facts: &Facts<'a>, ask: &Event) -> Option<&'a Event> {
    if matches!(ask.detail.as_str(), "open" | "close") {
        return None;
    }
    // Numbers of processes are used again.
    let is_its = |close: &Event| (close.process, close.pid) == (ask.process, ask.pid);
    let its = |close: &&&'a Event| is_its(close) && close.token == ask.token;
    let closes = facts.closes.iter().filter(its);
    let cancels = facts.cancels.get(&ask.id).into_iter();
    closes.chain(cancels).copied().min_by_key(|event| event.at)
}

/// How soon after its ttl the lease of a dead owner is over.
fn ends_within(facts: &Facts<'_>) -> Duration {
    AFTER_KILL + facts.engine.ends_leases_within()
}

/// A release is over after 500 ms.
pub(super) fn releases(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for holding in &facts.holdings {
        let (Some(release), Some(released)) = (holding.release, holding.released) else {
            continue;
        };
        if released.detail == WAITED {
            // How long the wait behind it took says nothing.
            continue;
        }
        let lateness = || {
            let process = released.process;
            facts.lateness.of(process, release.at, released.at)
        };
        let took = (release.at, released.at);
        if let Some(took) = too_long(took, RELEASE + rules.slack, lateness) {
            let text = format!("a release took {took:?}");
            found.push(violation("C7", text, &[release, released]));
        }
    }
    found
}

/// Whether somebody may have had this lock without knowing, who waited for another beside it.
fn someone_waits_for_several(
    facts: &Facts<'_>,
    rules: &Rules,
    name: &str,
    from: u64,
    until: u64,
) -> bool {
    facts.asks.values().any(|ask| {
        let is_among = ask.name.contains(' ') && ask.name.split(' ').any(|one| one == name);
        is_among && ask.at <= until && from <= waited_until(facts, rules, ask)
    })
}

fn waited_until(facts: &Facts<'_>, rules: &Rules, ask: &Event) -> u64 {
    match facts.answers.get(&ask.id) {
        Some(answer) => answer.at + nanos(CLOSED),
        // It died meanwhile.
        None => {
            let death = facts.death(ask.pid, ask.at);
            death.map_or(u64::MAX, |span| span.until + nanos(2 * rules.ttl))
        }
    }
}

/// When a lock was free, or the last of its leases was over.
#[derive(Clone, Copy)]
pub(super) struct Free<'a> {
    /// Before it was released.
    pub(super) begun: u64,
    pub(super) at: u64,
    pub(super) event: &'a Event,
}

impl<'a> Free<'a> {
    fn after(facts: &Facts<'a>, rules: &Rules, holding: &Holding<'a>) -> Option<Self> {
        if holding.passed().is_some() {
            return Self::after_passing(facts, rules, holding);
        }
        if let Some(event) = holding.released {
            let begun = holding.release.map_or(event.at, |event| event.at);
            let at = event.at;
            return Some(Free { begun, at, event });
        }
        // It lasts for its ttl, and then nobody is told.
        let death = facts.death(holding.answer.pid, holding.from())?;
        let lasts = facts.engine.lasts(rules.ttl);
        let later = lasts + ends_within(facts) - AFTER_RELEASE;
        let at = death.until.saturating_add(nanos(later));
        let event = death.event;
        Some(Free {
            begun: at,
            at,
            event,
        })
    }

    /// A lease that nobody adopts lasts for its ttl. One that is adopted is another's, or nobody knows how it ended.
    fn after_passing(facts: &Facts<'_>, rules: &Rules, holding: &Holding<'a>) -> Option<Self> {
        let event = holding.released.filter(|_| holding.adopted.is_none())?;
        let at = event.at + nanos(rules.ttl + ends_within(facts) - AFTER_RELEASE);
        let begun = event.at;
        Some(Free { begun, at, event })
    }

    /// When this is over, and what was there before.
    fn and(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if before.at > self.at => Free {
                begun: self.begun.min(before.begun),
                ..before
            },
            _ => self,
        }
    }
}

/// Who waits for a lock that is released, or whose holder was killed and whose lease is over, has it soon, also when
/// others have died in line. A process that dies just when the lock is given to it costs its ttl.
pub(super) fn after_releases(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        let mut free: Option<Free<'_>> = None;
        for next in facts.holdings_of(name) {
            if let (Some(free), Some(ask)) = (free, next.ask)
                && is_too_late(facts, rules, free, next, ask)
            {
                let took = next.from().saturating_sub(free.at);
                let text = format!("{name}: {:?} after it was released", shown(took));
                found.push(violation("C7", text, &[free.event, ask, next.answer]));
            }
            free = Free::after(facts, rules, next).map(|after| after.and(free));
        }
    }
    found
}

pub(super) fn is_too_late(
    facts: &Facts<'_>,
    rules: &Rules,
    free: Free<'_>,
    next: &Holding<'_>,
    ask: &Event,
) -> bool {
    let most = nanos(AFTER_RELEASE + rules.slack);
    let is_in_time = |since: u64| next.from().saturating_sub(since) <= most;
    if is_in_time(free.at) || ask.at > free.at {
        return false;
    }
    let since = had_by_program(facts, next.name(), free.at, next.from());
    let took = next.from().saturating_sub(since.unwrap_or(free.at));
    if took <= most {
        return false;
    }
    let since = free.at.saturating_sub(nanos(2 * rules.ttl));
    let mut holdings = facts.holdings_of(next.name());
    let may_share = holdings.any(|one| !one.is_exclusive());
    // The kill, or the break, by which it is free.
    let is_its_own = |span: &Span<'_>| span.event.id == free.event.id;
    let mut spans = facts
        .faults
        .iter()
        .filter(|span| span.concerns(facts, next.name()));
    let excused = spans.any(|span| {
        let (from, after) = match span.kind.name.starts_with("kill ") {
            // One that shared it may have died before it knew.
            // It may stand in the line until its lease is over.
            true if facts.engine.has_lines() => {
                let lasts = rules.ttl + ends_within(facts);
                (free.begun.saturating_sub(nanos(lasts)), lasts)
            }
            true if may_share => (free.begun.saturating_sub(nanos(rules.ttl)), CLOSED),
            true => (free.begun, CLOSED),
            false => (since, rules.ttl),
        };
        let is_near = span.from <= next.from() && from <= span.until.saturating_add(nanos(after));
        is_near && !is_its_own(span)
    });
    !excused
        && took > most + their_lateness(facts, next.name(), free.at, next.from())
        && !someone_waits_for_several(facts, rules, next.name(), free.at, next.from())
}

/// When the server last showed that `crosslock run` had the lock in that time. A command that was never started,
/// because its start took until the lease could end, has written nothing of that.
fn had_by_program(facts: &Facts<'_>, name: &str, from: u64, until: u64) -> Option<u64> {
    let is_of_worker = |pid: u32| facts.asks.values().any(|ask| ask.pid == pid);
    let shows_it = |look: &&Event| {
        let is_look = look.op == "key" && look.name == name && (from..until).contains(&look.at);
        is_look && pid_of(&look.detail).is_some_and(|pid| !is_of_worker(pid))
    };
    let last = facts.events.iter().rev().find(shows_it);
    last.map(|look| look.at)
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
        let is_outage = OUTAGES.contains(&span.kind.name)
            || span.kind.moves != Moves::None
            || span.kind.is_of_members();
        if !is_outage || span.until == u64::MAX {
            continue;
        }
        let next = facts.holdings.iter().find(|one| one.from() >= span.until);
        let Some(next) = next else { continue };
        let took = next.from() - span.until;
        let mut later = facts.faults.iter();
        let again = later.any(|other| other.from > span.from && other.from <= next.from());
        let process = next.answer.process;
        let lateness = facts.lateness.on_the_way(process, span.until, next.from());
        // All that anybody waits for may be held.
        let leases = rules.ttl + facts.engine.ends_leases_within();
        let most = nanos(AFTER_OUTAGE.max(leases) + rules.slack) + lateness;
        if took > most && !again {
            let text = format!("nobody had a lock for {:?} after it was over", shown(took));
            found.push(violation("C7", text, &[span.event, next.answer]));
        }
    }
    found
}
