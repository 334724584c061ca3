//! Judges a history by rules that can fail.
//!
//! | rule | |
//! |---|---|
//! | C1 | no two valid holdings of a name overlap that may not; after an unsafe fault at most until the next renewal |
//! | C2 | the register's value is the number of its accepted writes, and stale ones were refused; nobody changes what is read; a value is what was stored last |
//! | C3 | tokens are unique, and increase in the order of holding, but among those that share |
//! | C4 | a lease is lost, or found abandoned, only when a fault explains it |
//! | C5 | in the end nothing is left, and no key was ever seen without a ttl |
//! | C6 | a lock goes to another only by its owner's release or by its expiry, a line keeps its order, and who is dead isn't served |
//! | C7 | every wait is bounded |
//! | C8 | calls give only errors that a fault allows |
//! | C9 | the run was no idle one: every fault hit its target, and stale writes were refused |
//! | C10 | a command under `crosslock run` is dead before another has its lock |
//! | C11 | two meet at a barrier, of which one leads |
//!
//! A machine that has no time for a process makes it late, and each process writes down when it was. Such a time
//! excuses what depends on it (C4, C7, C8, C10, and the order of a line in C6), for that process only: it, the driver,
//! through whose proxies it reaches the server, and the server. What is unsafe has no excuse.

mod bounds;
mod breaks;
mod commands;
mod engine;
mod explained;
mod facts;
mod lasting;
mod lateness;
mod meetings;
mod passing;
mod server;
mod tokens;
mod values;
mod work;

use std::fmt;
use std::time::Duration;

use crate::history::Event;
use crate::kinds::{Class, Moves};
pub(crate) use facts::Facts;
pub(crate) use work::sorts;

/// What a run promised.
#[derive(Clone, Debug)]
pub struct Rules {
    pub class: Class,
    pub ttl: Duration,
    pub io_timeout: Duration,
    /// For so long an answer waits for the replicas that must have what it says, where some must.
    pub replica_timeout: Option<Duration>,
    /// What a loaded machine may add to each bound, beside the lateness that was seen.
    pub slack: Duration,
    pub acquisitions: usize,
    /// So many of them at least for each way to hold a lock.
    pub of_each_sort: usize,
    /// Of a semaphore.
    pub permits: u32,
    /// That ran under a lock.
    pub commands: usize,
    pub stale_writes: usize,
    /// How often each of these faults must have hit.
    pub faults: Vec<(&'static str, usize)>,
}

/// A rule that was broken, and the events that show it.
#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: &'static str,
    pub text: String,
    pub events: Vec<Event>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        self.events
            .iter()
            .try_for_each(|event| write!(f, "\n    {}", event.to_json()))
    }
}

/// Judges a history, which is in the order of time.
pub fn judge(events: &[Event], rules: &Rules) -> Vec<Violation> {
    let facts = Facts::of(events);
    let judges = [
        tokens::exclusion,
        tokens::order,
        tokens::register,
        values::stored,
        values::readings,
        explained::losses,
        explained::errors,
        server::remains,
        server::owners,
        server::lines,
        server::dead,
        server::sharers,
        server::without_majority,
        bounds::calls,
        bounds::releases,
        bounds::after_releases,
        bounds::after_outages,
        passing::adopted,
        breaks::told,
        breaks::for_good,
        breaks::served,
        breaks::in_turn,
        commands::outlived,
        meetings::of_two,
        work::done,
    ];
    judges
        .iter()
        .flat_map(|judge| judge(&facts, rules))
        .collect()
}

fn violation(rule: &'static str, text: String, events: &[&Event]) -> Violation {
    let events = events.iter().map(|event| (*event).clone()).collect();
    Violation { rule, text, events }
}

/// Whether the server may have forgotten locks between the two times.
fn forgot(facts: &Facts<'_>, rules: &Rules, from: u64, until: u64) -> bool {
    let mut spans = facts.faults.iter();
    spans.any(|span| {
        span.kind.harms(rules.class)
            && span.from <= until
            && from <= span.until.saturating_add(nanos(rules.ttl))
    })
}

/// Whether locks came to another server in between: what was shown before and after isn't of one server, and a look in
/// the middle may miss what is on its way.
fn moved(facts: &Facts<'_>, from: u64, until: u64) -> bool {
    let mut spans = facts.faults.iter();
    spans.any(|span| span.kind.moves != Moves::None && span.from <= until && from <= span.until)
}

/// As the times of a history.
fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().expect("no centuries")
}

fn shown(nanos: u64) -> Duration {
    Duration::from_micros(nanos / 1000)
}
