//! C5 and C6: what the server shows of locks, and what is left of them.

use std::collections::HashMap;

use super::facts::{Holding, Span};
use super::{Facts, Rules, Violation, forgot, moved, nanos, passing, violation};
use crate::history::Event;

/// C5.
pub(super) fn remains(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in facts.events {
        match event.op.as_str() {
            "bare" => {
                let text = format!("the key {} has no ttl", event.name);
                found.push(violation("C5", text, &[event]));
            }
            "left" => {
                let text = format!("left behind: {}", event.detail);
                found.push(violation("C5", text, &[event]));
            }
            _ => {}
        }
    }
    found
}

/// How the value of a lock begins that is shared.
const SHARED: &str = "crosslock:";

/// What the server's clock, in whole milliseconds, may differ from ours.
const ROUNDING: u64 = 5_000_000;

/// C6: a lock whose owner is another than the last time, before it had expired, was released by its holder.
#[allow(clippy::too_many_lines, reason = "one rule, clause by clause")]
pub(super) fn owners(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let by_token: HashMap<_, _> = facts
        .holdings
        .iter()
        .map(|holding| ((holding.name(), holding.token()), holding))
        .collect();
    let mut found = Vec::new();
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "key") {
        let Some(before) = last.insert(&event.name, event) else {
            continue;
        };
        let is_due = !facts.engine.has_lines() && event.at + ROUNDING >= before.until;
        // What is shared is nobody's: each of those that share it has a lease.
        let is_nobodys = before.detail.is_empty() || before.detail.starts_with(SHARED);
        if is_nobodys || before.detail == event.detail || is_due {
            continue;
        }
        // A lease that nobody heard of was given up. Whether a command has ended is another rule's.
        let holding = match facts.engine.has_lines() {
            true => last_of_owner(facts, before),
            false => last_of_chain(&by_token, before),
        };
        let Some(holding) = holding.filter(|one| !one.is_of_command()) else {
            continue;
        };
        // A line doesn't show when its leases end: that is later than their holders believe.
        if facts.engine.has_lines() && event.at >= holding.until {
            continue;
        }
        let released = holding
            .let_go()
            .into_iter()
            .flatten()
            .any(|end| end.at <= event.at);
        let broken = facts
            .break_of(holding)
            .is_some_and(|one| one.from <= event.at);
        let died = facts.engine.has_lasting_leases() && holding.until <= event.at;
        if !released && !broken && !died && !went(facts, rules, before.at, event.at) {
            let text = format!("{} was taken from its holder", event.name);
            let shown = [holding.answer, holding.last, before, event];
            found.push(violation("C6", text, &shown));
        }
    }
    found
}

/// The last holding that the lease of a key went to, inside its process. By their tokens alone those of the next lease
/// may look the same: where the counter is ahead of the server's clock, they follow as closely.
fn last_of_chain<'a, 'b>(
    by_token: &HashMap<(&str, u64), &'b Holding<'a>>,
    lease: &Event,
) -> Option<&'b Holding<'a>> {
    let name = lease.name.as_str();
    let mut last = *by_token.get(&(name, lease.token))?;
    while let Some(next) = by_token.get(&(name, last.token() + 1))
        && next.was_handed_over()
        && next.answer.pid == last.answer.pid
    {
        last = next;
    }
    Some(last)
}

/// The last holding that the lease of an owner who is shown went to, inside its process. A lease that is adopted has
/// another owner, and larger tokens.
fn last_of_owner<'a, 'b>(facts: &'b Facts<'a>, shown: &Event) -> Option<&'b Holding<'a>> {
    let pid = pid_of(&shown.detail)?;
    let holdings = facts.holdings_of(&shown.name);
    // What is read after writing isn't the owner's alone any more.
    let of_lease = holdings.filter(|one| {
        one.is_exclusive()
            && one.answer.pid == pid
            && one.token() >= shown.token
            && facts.engine.may_be_of_lease(shown.token, one.token())
    });
    let mut of_lease: Vec<_> = of_lease.collect();
    of_lease.sort_by_key(|one| one.token());
    let first_passed = of_lease.iter().find(|one| one.passed().is_some());
    first_passed.or(of_lease.last()).copied()
}

/// C6: those that stay in line stay in their order, unless somebody was dropped for not asking in time.
pub(super) fn lines(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "line") {
        let Some(before) = last.insert(&event.name, event) else {
            continue;
        };
        let was: Vec<_> = before.detail.split(' ').collect();
        let is: Vec<_> = event.detail.split(' ').collect();
        let stayed = was.iter().filter(|owner| is.contains(owner));
        let kept = is.iter().filter(|owner| was.contains(owner));
        if stayed.eq(kept.clone()) {
            continue;
        }
        let is_excused = kept.clone().any(|owner| {
            gave_up(facts, owner, before, event)
                || may_lose_its_place(facts, rules, owner, (before.at, event.at))
        });
        if !is_excused {
            let text = format!("the line of {} has changed its order", event.name);
            found.push(violation("C6", text, &[before, event]));
        }
    }
    found
}

/// Whether something may have kept an owner in line from hearing, or from asking in time for its place. A break drops
/// nobody.
pub(super) fn may_lose_its_place(
    facts: &Facts<'_>,
    rules: &Rules,
    owner: &str,
    (from, until): (u64, u64),
) -> bool {
    let since = from.saturating_sub(nanos(2 * rules.ttl + rules.slack));
    let mut spans = facts.faults.iter();
    let faulty =
        spans.any(|span| span.kind.name != "break" && span.from <= until && since <= span.until);
    let pid = pid_of(owner).unwrap_or_default();
    let lateness = || facts.lateness.on_the_way_of_pid(pid, since, until);
    faulty || lateness() >= nanos(rules.ttl) / 2
}

/// C6: when the lock goes to another, the first in line, if it has died, is there no longer. Neither an adoption nor a
/// downgrade is a turn of the line.
pub(super) fn dead(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in facts.names() {
        for pair in looks(facts, name).windows(2) {
            let [before, after] = [pair[0], pair[1]];
            let (Some(line), Some(key)) = (before.line, after.key) else {
                continue;
            };
            let goes = !key.detail.is_empty()
                && before.key.is_none_or(|before| before.detail != key.detail);
            let first = after.first();
            if !goes || first.is_empty() || first != before.first() {
                continue;
            }
            let Some(killed) = death(facts, first, before.at) else {
                continue;
            };
            // Where all stand in one line nobody passes the first: whoever shares the lock has made its own one to
            // read.
            let is_downgraded = facts.engine.has_lines() && key.detail.starts_with(SHARED);
            let is_adopted = passing::is_adopted_between(facts, key, before.at);
            if !is_adopted && !is_downgraded && !went(facts, rules, before.at, after.at) {
                let text = format!("{name} goes to another, and who is dead stays first in line");
                found.push(violation("C6", text, &[killed.event, line, key]));
            }
        }
    }
    found
}

/// Whether a server forgot what it showed, or it isn't with that server any more.
fn went(facts: &Facts<'_>, rules: &Rules, from: u64, until: u64) -> bool {
    forgot(facts, rules, from, until) || moved(facts, from, until)
}

/// The fault by which the process of an owner had died by then.
fn death<'a, 'b>(facts: &'b Facts<'a>, owner: &str, by: u64) -> Option<&'b Span<'a>> {
    // A request of its may still have been on the way.
    const LAST_WORDS: u64 = 50_000_000;
    let pid = pid_of(owner)?;
    let killed = facts.death(pid, 0)?;
    // A number may come again.
    let answers = facts.answers.values();
    let mut later = answers.filter(|answer| answer.pid == pid && answer.at > killed.until);
    let is_dead = killed.until.saturating_add(LAST_WORDS) < by && later.next().is_none();
    is_dead.then_some(killed)
}

/// C6: the lease of one that is dead becomes no longer.
pub(super) fn sharers(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in facts.events.iter().filter(|event| event.op == "sharers") {
        let Some(before) = last.insert(&event.name, event) else {
            continue;
        };
        let ends: HashMap<_, _> = ends_of(before).collect();
        for (owner, end) in ends_of(event) {
            if ends.get(owner).is_none_or(|before| end <= *before) {
                continue;
            }
            let Some(killed) = death(facts, owner, before.at) else {
                continue;
            };
            if !went(facts, rules, before.at, event.at) {
                let text = format!("{}: somebody renews for one that is dead", event.name);
                found.push(violation("C6", text, &[killed.event, before, event]));
            }
        }
    }
    found
}

/// The owners of those that share a lock, each with the end of its lease.
pub(super) fn ends_of(event: &Event) -> impl Iterator<Item = (&str, u64)> {
    let words: Vec<_> = event.detail.split(' ').collect();
    let all: Vec<_> = words
        .chunks_exact(3)
        .filter_map(|words| Some((words[1], words[2].parse().ok()?)))
        .collect();
    all.into_iter()
}

/// What the server showed of a name at one time.
#[derive(Clone, Copy, Default)]
pub(super) struct Look<'a> {
    pub(super) at: u64,
    pub(super) key: Option<&'a Event>,
    pub(super) line: Option<&'a Event>,
    pub(super) sharers: Option<&'a Event>,
    pub(super) broken: Option<&'a Event>,
}

impl<'a> Look<'a> {
    pub(super) fn first(&self) -> &'a str {
        let owners = self.line.map_or("", |line| &line.detail);
        owners.split(' ').next().unwrap_or_default()
    }
}

/// Those that showed something new.
pub(super) fn looks<'a>(facts: &Facts<'a>, name: &str) -> Vec<Look<'a>> {
    let mut looks: Vec<Look<'a>> = Vec::new();
    for event in facts.events.iter().filter(|event| event.name == name) {
        let mut look = looks.last().copied().unwrap_or_default();
        match event.op.as_str() {
            "key" => look.key = Some(event),
            "line" => look.line = Some(event),
            "sharers" => look.sharers = Some(event),
            "broken" => look.broken = Some(event),
            _ => continue,
        }
        if look.at == event.at {
            looks.pop();
        }
        look.at = event.at;
        looks.push(look);
    }
    looks
}

/// The process of an owner.
pub(super) fn pid_of(owner: &str) -> Option<u32> {
    owner.split('/').nth(2)?.parse().ok()
}

/// Whether a call of this owner's process gave up in between: the next one, with the same owner, stands behind the
/// others when it came too late to keep the place.
fn gave_up(facts: &Facts<'_>, owner: &str, before: &Event, after: &Event) -> bool {
    const NEAR: u64 = 50_000_000;
    let pid = pid_of(owner);
    let mut answers = facts.answers.values();
    answers.any(|answer| {
        Some(answer.pid) == pid
            && answer.name.split(' ').any(|name| name == after.name)
            && !matches!(answer.outcome.as_str(), "held" | "opened")
            && before.at <= answer.at + NEAR
            && answer.at <= after.at + NEAR
    })
}

/// C6: while most members are down, nobody gets a lock, but a thread that another of its process hands it over.
pub(super) fn without_majority(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for down in facts.events.iter().filter(|event| event.op == "down") {
        let is_within = |at: u64| down.at < at && at < down.until;
        for holding in &facts.holdings {
            let Some(ask) = holding.ask else { continue };
            let is_let_in = is_within(ask.at) && is_within(holding.from());
            if is_let_in && !holding.was_handed_over() {
                let name = holding.name();
                let text = format!("{name} was given while most members were down");
                found.push(violation("C6", text, &[down, ask, holding.answer]));
            }
        }
    }
    found
}
