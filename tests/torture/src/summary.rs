//! What a run did, as a table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::checker::{Facts, sorts};
use super::driver::WORKERS;
use super::history::{DRIVER, Event, SERVER};

/// What a run did, as a table.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    ttl: Duration,
    events: usize,
    calls: BTreeMap<String, usize>,
    /// How many locks were held, and in which ways.
    holdings: usize,
    sorts: Vec<(&'static str, usize)>,
    /// How many commands ran under a lock.
    commands: usize,
    /// Fired, and hit.
    faults: BTreeMap<&'static str, (usize, usize)>,
    accepted: usize,
    stale: usize,
    lost: usize,
    abandoned: usize,
    /// For how long who was late.
    late: [(&'static str, Duration); 3],
}

impl Summary {
    pub(crate) fn of(events: &[Event], ttl: Duration) -> Self {
        let facts = Facts::of(events);
        let mut summary = Summary {
            ttl,
            events: events.len(),
            ..Summary::default()
        };
        for event in events {
            match (event.op.as_str(), event.outcome.as_str()) {
                ("answer", outcome) => *summary.calls.entry(outcome.to_owned()).or_default() += 1,
                ("register", "stale") => summary.stale += 1,
                ("register", "accepted") if event.detail == "write" => summary.accepted += 1,
                _ => {}
            }
        }
        for span in &facts.faults {
            let (fired, hit) = summary.faults.entry(span.kind.name).or_default();
            *fired += 1;
            *hit += usize::from(span.hit);
        }
        let holdings = facts.holdings.iter();
        summary.lost = holdings.clone().filter(|one| one.lost.is_some()).count();
        let abandoned = |event: &Event| event.detail == "abandoned";
        summary.abandoned = holdings.filter(|one| abandoned(one.answer)).count();
        summary.late = late(&facts);
        summary.holdings = facts.holdings.len();
        summary.sorts = sorts(&facts).into();
        let holdings = facts.holdings.iter();
        summary.commands = holdings.filter(|one| one.is_of_command()).count();
        summary
    }

    /// How many faults were fired.
    pub(crate) fn fired(&self) -> usize {
        self.faults.values().map(|(fired, _)| fired).sum()
    }
}

fn late(facts: &Facts<'_>) -> [(&'static str, Duration); 3] {
    let of = |process| facts.lateness.seen(process);
    let workers = (0..WORKERS).map(of).sum();
    [
        ("workers were", workers),
        ("the driver was", of(DRIVER)),
        ("the server was", of(SERVER)),
    ]
    .map(|(who, nanos)| (who, Duration::from_micros(nanos / 1000)))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| ttl | {:?} |", self.ttl)?;
        writeln!(f, "|---|---|")?;
        writeln!(f, "| lines of history | {} |", self.events)?;
        for (outcome, count) in &self.calls {
            writeln!(f, "| calls: {outcome} | {count} |")?;
        }
        writeln!(f, "| locks held | {} |", self.holdings)?;
        for (sort, count) in &self.sorts {
            writeln!(f, "| {sort} | {count} |")?;
        }
        writeln!(f, "| commands under a lock | {} |", self.commands)?;
        writeln!(f, "| writes accepted | {} |", self.accepted)?;
        writeln!(f, "| stale reads and writes refused | {} |", self.stale)?;
        writeln!(f, "| leases lost | {} |", self.lost)?;
        writeln!(f, "| locks found abandoned | {} |", self.abandoned)?;
        for (who, time) in &self.late {
            writeln!(f, "| {who} late for | {time:?} |")?;
        }
        writeln!(f, "| faults | {} |", self.fired())?;
        for (name, (fired, hit)) in &self.faults {
            writeln!(f, "| {name} | {fired}, {hit} hit |")?;
        }
        Ok(())
    }
}
