//! C4, C6 and C7, where somebody broke a lock: its holder is told, and the first in line has it.

use std::time::Duration;

use super::bounds::{Free, is_too_late};
use super::engine::Engine;
use super::facts::Holding;
use super::server::{ends_of, looks, may_lose_its_place, pid_of};
use super::{Facts, Rules, Violation, nanos, shown, violation};
use crate::history::Event;

/// A break that has ended a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Break<'a> {
    pub(crate) event: &'a Event,
    /// Before it.
    pub(crate) from: u64,
    /// After it.
    pub(crate) until: u64,
}

/// Who hears messages is told within this time.
const TOLD: Duration = Duration::from_millis(100);

impl<'a> Break<'a> {
    pub(super) fn of(event: &'a Event) -> Self {
        Break {
            event,
            from: event.until,
            until: event.at,
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.event.name
    }

    /// Whether it isn't known what it ended, if anything.
    fn is_vague(&self) -> bool {
        self.event.token == 0
    }

    /// Whether this is the lease that it ended, which may have been handed over.
    fn ended(&self, engine: Engine, holding: &Holding<'_>) -> bool {
        let (first, token) = (self.event.token, holding.token());
        if self.name() != holding.name() {
            return false;
        }
        if self.is_vague() {
            let asked = holding.ask.map_or(holding.from(), |ask| ask.at);
            return asked <= self.until && self.from <= holding.end();
        }
        let is_of_process = holding.answer.pid == self.event.pid;
        let may_be_handed_over = holding.is_exclusive() || engine.has_lines();
        first == token
            || (may_be_handed_over && is_of_process && engine.may_be_of_lease(first, token))
    }
}

impl<'a> Facts<'a> {
    /// What has ended its lease.
    pub(super) fn break_of(&self, holding: &Holding<'_>) -> Option<&Break<'a>> {
        let mut breaks = self.breaks.iter();
        breaks.find(|one| one.ended(self.engine, holding))
    }

    /// Whether somebody broke one of these names then, or one that is locked together with one of them.
    pub(super) fn was_broken(&self, names: &str, from: u64, until: u64) -> bool {
        let concerns = |one: &Break<'_>| {
            names
                .split(' ')
                .any(|name| self.go_together(name, one.name()))
        };
        let mut breaks = self.breaks.iter();
        breaks.any(|one| one.from <= until && from <= one.until && concerns(one))
    }

    /// Until when the holder of this lease may believe in it, which was broken: until its next renewal, and as long as
    /// that may take; or until the lease is over, when something kept it from renewing.
    pub(super) fn may_believe_until(
        &self,
        rules: &Rules,
        holding: &Holding<'_>,
        broken: &Break<'_>,
    ) -> u64 {
        let (process, seen) = (holding.answer.process, holding.seen);
        let after = nanos(rules.io_timeout + rules.slack);
        if self.engine.has_lasting_leases() {
            // Nothing ends it before: it is told by the next look that nothing keeps it from.
            let faults = self.faults_near(process, broken.from, seen, 0);
            let kept = faults.filter(|span| !span.kind.errors.is_empty());
            let since = kept.map(|span| span.until).fold(broken.until, u64::max);
            let lateness = self.lateness.on_the_way(process, broken.from, seen);
            return since.saturating_add(nanos(rules.ttl / 3) + after + lateness);
        }
        let over = broken.until + nanos(rules.ttl);
        let mut faults = self.faults_near(process, broken.from, seen, after);
        if faults.any(|span| !span.kind.errors.is_empty()) {
            return over;
        }
        let lateness = self.lateness.on_the_way(process, broken.from, seen);
        let renewed = broken.until + nanos(rules.ttl / 3);
        over.min(renewed + after + lateness)
    }

    /// Whether a thread of this process waited then, so that the process hears messages: as the server had its lines
    /// before and after.
    fn hears(&self, pid: u32, from: u64, until: u64) -> bool {
        match self.engine {
            Engine::Redis => {}
            // It renews, and sees that its key is gone.
            Engine::Etcd | Engine::Files => return false,
            // It watches its own node.
            Engine::ZooKeeper => return true,
        }
        self.names().into_iter().any(|name| {
            let lines = self
                .events
                .iter()
                .filter(|event| event.op == "line" && event.name == name);
            let mut owners: Option<Vec<&str>> = None;
            let mut line = "";
            for event in lines.take_while(|event| event.at <= until) {
                if event.at > from && owners.is_none() {
                    owners = Some(line.split(' ').collect());
                }
                line = &event.detail;
                if let Some(owners) = &mut owners {
                    owners.retain(|owner| line.split(' ').any(|one| one == *owner));
                }
            }
            let owners = owners.unwrap_or_else(|| line.split(' ').collect());
            owners.iter().any(|owner| pid_of(owner) == Some(pid))
        })
    }
}

/// C4: who holds a lock that is broken is told: at once where its process hears messages, otherwise at its next
/// renewal.
pub(super) fn told(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for holding in &facts.holdings {
        let Some(broken) = facts.break_of(holding) else {
            continue;
        };
        let had = holding.from() < broken.from && broken.until < holding.seen;
        if broken.is_vague() || !had {
            continue;
        }
        let by = told_by(facts, rules, holding, broken);
        if holding.seen > by {
            let late = shown(holding.seen - broken.until);
            let text = format!(
                "{}: {late:?} after it was broken its holder isn't told",
                holding.name()
            );
            found.push(violation(
                "C4",
                text,
                &[broken.event, holding.answer, holding.last],
            ));
        }
    }
    found
}

fn told_by(facts: &Facts<'_>, rules: &Rules, holding: &Holding<'_>, broken: &Break<'_>) -> u64 {
    /// A look at the server is so old at most.
    const LOOKS: u64 = 40_000_000;
    let renewed = facts.may_believe_until(rules, holding, broken);
    let process = holding.answer.process;
    let since = broken.from.saturating_sub(nanos(rules.ttl));
    let mut faults = facts.faults_near(process, since, holding.seen, 0);
    let faulty = faults.any(|span| !span.kind.errors.is_empty() || !span.kind.breaks());
    if faulty || !facts.hears(holding.answer.pid, broken.from, broken.until + LOOKS) {
        return renewed;
    }
    let lateness = facts
        .lateness
        .on_the_way(process, broken.from, holding.seen);
    // The next renewal isn't much later than that, so there is less slack than elsewhere.
    renewed.min(broken.until + nanos(TOLD + rules.slack / 5) + lateness)
}

/// C6: whose lease was broken isn't let in again while that would last. A server names it as long.
pub(super) fn for_good(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        for look in looks(facts, name) {
            let Some(broken) = look.broken.filter(|event| !event.detail.is_empty()) else {
                continue;
            };
            let is_broken = |owner: &str| {
                let id = owner.split('/').next().unwrap_or_default();
                let mut entries = broken.detail.split(' ');
                entries.any(|entry| entry.split_once(':').is_some_and(|(_, other)| other == id))
            };
            let has = look.key.filter(|key| is_broken(&key.detail));
            let shares = look
                .sharers
                .filter(|event| ends_of(event).any(|(owner, _)| is_broken(owner)));
            if let Some(event) = has.or(shares) {
                let text = format!("{name}: whose lease was broken has it again");
                found.push(violation("C6", text, &[broken, event]));
            }
        }
    }
    found
}

/// C7: who waits for a lock that is broken has it soon.
pub(super) fn served(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for broken in facts.breaks.iter().filter(|one| !one.is_vague()) {
        let is_next = |one: &&Holding<'_>| {
            one.from() > broken.from
                && one.token() > broken.event.token
                && !broken.ended(facts.engine, one)
        };
        let next = facts.holdings_of(broken.name()).find(is_next);
        let Some((next, ask)) = next.and_then(|next| Some((next, next.ask?))) else {
            continue;
        };
        let free = Free {
            begun: broken.from,
            at: broken.until,
            event: broken.event,
        };
        if is_too_late(facts, rules, free, next, ask) {
            let took = shown(next.from().saturating_sub(broken.until));
            let text = format!("{}: {took:?} after it was broken", broken.name());
            found.push(violation("C7", text, &[broken.event, ask, next.answer]));
        }
    }
    found
}

/// C6: a lock that is broken goes to the first in line, and not past it.
pub(super) fn in_turn(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        if !facts.breaks.iter().any(|one| one.name() == name) {
            continue;
        }
        for pair in looks(facts, name).windows(2) {
            let [before, next] = [pair[0], pair[1]];
            let (Some(line), Some(key)) = (before.line, next.key) else {
                continue;
            };
            let mut behind = line.detail.split(' ').skip(1);
            let passes = before.first() == next.first() && behind.any(|owner| owner == key.detail);
            let mut breaks = facts.breaks.iter();
            let broken = breaks
                .find(|one| one.name() == name && one.from <= next.at && before.at <= one.until);
            let Some(broken) = broken.filter(|_| passes) else {
                continue;
            };
            if !may_lose_its_place(facts, rules, before.first(), (before.at, next.at)) {
                let text = format!("{name} was broken, and went past the first in line");
                found.push(violation("C6", text, &[broken.event, line, key]));
            }
        }
    }
    found
}
