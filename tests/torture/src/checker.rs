//! Judges a history by rules that a late machine can't break.
//!
//! | rule | |
//! |---|---|
//! | C1 | holders of a name who may not share it don't have it at the same time |
//! | C2 | the value that a lock protects is what its last holder left |
//! | C3 | tokens are unique, and increase in the order of holding, but among those that share |
//! | C5 | in the end nobody is left in a lock or its line, and no thread or socket in a process |
//! | C7 | all calls end, and in the end each thread gets each lock |
//! | C8 | calls give no errors but those that a fault allows |
//! | C10 | a command under `crosslock run` is dead before another has its lock |

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::history::{Event, Mode, What};
use crate::worker::{COUNTER, MOST_PERMITS};

/// The watchdog kills a command 50 ms before the end of its lease. A busy machine may let it run so much later, and a
/// command of which nobody took care lives for longer.
const LATE: Duration = Duration::from_millis(250);

#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: &'static str,
    text: String,
    events: Vec<Event>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        let mut events = self.events.iter();
        events.try_for_each(|event| write!(f, "\n    {event:?}"))
    }
}

pub fn judge(events: &[Event]) -> Vec<Violation> {
    let holdings = holdings(events);
    let mut by_name: HashMap<&str, Vec<&Holding<'_>>> = HashMap::new();
    // One that wasn't valid when it began excludes nobody.
    for holding in holdings.iter().filter(|one| one.until > one.from()) {
        by_name.entry(holding.name()).or_default().push(holding);
    }
    let mut found = values(events, &holdings);
    found.extend(events.iter().filter_map(end));
    found.extend(unique_tokens(&holdings));
    for (name, valid) in by_name {
        found.extend(exclusion(name, &valid));
        found.extend(tokens(name, &valid));
        let commands = holdings.iter().filter(|one| one.name() == name);
        found.extend(commands.filter_map(|one| command(one, &valid)));
    }
    found
}

fn violation(rule: &'static str, text: String, events: &[&Event]) -> Violation {
    let events = events.iter().map(|event| (*event).clone()).collect();
    Violation { rule, text, events }
}

#[derive(Debug)]
struct Holding<'a> {
    held: &'a Event,
    mode: Mode,
    token: u64,
    /// The last event that shows that it was valid.
    last: &'a Event,
    /// Until when its holder could believe in it: until its lease ended, or it began to release, or was killed.
    until: u64,
    found: Option<u64>,
    /// Whether it increased that, if it began to release.
    increased: Option<bool>,
    released: Option<&'a str>,
}

/// By the time of their beginning.
fn holdings(events: &[Event]) -> Vec<Holding<'_>> {
    let mut holdings: Vec<Holding<'_>> = Vec::new();
    let (mut by_call, mut killed) = (HashMap::new(), HashMap::new());
    for event in events {
        let call = (event.process, event.call);
        match event.what {
            What::Held { mode, token, until } => {
                by_call.insert(call, holdings.len());
                holdings.push(Holding {
                    held: event,
                    mode,
                    token,
                    last: event,
                    until,
                    found: None,
                    increased: None,
                    released: None,
                });
            }
            What::Killed => drop(killed.insert(event.process, event.at)),
            _ => {
                if let Some(at) = by_call.get(&call) {
                    holdings[*at].take_in(event);
                }
            }
        }
    }
    for holding in &mut holdings {
        if let Some(at) = killed.get(&holding.held.process) {
            holding.until = holding.until.min(*at);
        }
    }
    holdings
}

impl<'a> Holding<'a> {
    fn take_in(&mut self, event: &'a Event) {
        match &event.what {
            What::Valid { until } => {
                self.until = self.until.max(*until);
                self.last = event;
            }
            What::Found(value) => self.found = Some(*value),
            What::Releasing { increased } => {
                self.increased = Some(*increased);
                self.until = self.until.min(event.at);
            }
            What::Released(outcome) => self.released = Some(outcome),
            _ => {}
        }
    }

    fn name(&self) -> &'a str {
        &self.held.name
    }

    fn from(&self) -> u64 {
        self.held.at
    }

    fn is_exclusive(&self) -> bool {
        matches!(self.mode, Mode::Exclusive | Mode::Command)
    }

    fn permits(&self) -> u32 {
        match self.mode {
            Mode::Permits(count) => count,
            _ => 0,
        }
    }

    /// What the value may be afterwards, if it was `value` before.
    fn leaves(&self, value: u64) -> RangeInclusive<u64> {
        match (self.increased, self.released) {
            // It died before it released, changed nothing, or had lost its lease.
            (None | Some(false), _) | (_, Some("lost")) => value..=value,
            (_, Some("ok")) => value + 1..=value + 1,
            // Whoever drops a guard isn't told; and an answer may have been lost.
            _ => value..=value + 1,
        }
    }
}

/// C1: one at a time, unless they share.
fn exclusion(name: &str, holdings: &[&Holding<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut inside: Vec<&Holding<'_>> = Vec::new();
    for next in holdings {
        inside.retain(|before| before.until > next.from());
        let used = inside.iter().map(|one| one.permits()).sum::<u32>() + next.permits();
        for before in &inside {
            let fits = match (before.mode, next.mode) {
                (Mode::Read, Mode::Read) => true,
                (Mode::Permits(_), Mode::Permits(_)) => used <= MOST_PERMITS,
                // A command that lives on beside one with a larger token is another rule's.
                (Mode::Command, _) => before.token < next.token,
                (_, Mode::Command) => next.token < before.token,
                _ => false,
            };
            if !fits {
                let overlap = Duration::from_nanos(before.until.min(next.until) - next.from());
                let text = format!("{name}: two hold it for {overlap:?}");
                let events = [before.held, before.last, next.held];
                found.push(violation("C1", text, &events));
            }
        }
        inside.push(next);
    }
    found
}

/// C2: in the order of tokens, each holder finds what the one before left.
fn values(events: &[Event], holdings: &[Holding<'_>]) -> Vec<Violation> {
    let holdings = holdings.iter().filter(|one| one.name() == COUNTER);
    let mut holdings: Vec<_> = holdings.filter_map(|one| Some((one, one.found?))).collect();
    holdings.sort_by_key(|(holding, _)| holding.token);
    let mut found = Vec::new();
    let (mut due, mut before) = (0..=0, None);
    for (holding, value) in holdings {
        if !due.contains(&value) {
            let text = format!("the value is {value}, and {due:?} was due");
            let events: Vec<_> = before.into_iter().chain([holding.held]).collect();
            found.push(violation("C2", text, &events));
        }
        due = holding.leaves(value);
        before = Some(holding.held);
    }
    for event in events {
        if let What::Stored(value) = &event.what
            && !due.contains(value)
        {
            let text = format!("{value} is stored in the end, and {due:?} was due");
            found.push(violation("C2", text, &[event]));
        }
    }
    found
}

fn unique_tokens(holdings: &[Holding<'_>]) -> Vec<Violation> {
    let mut seen = HashMap::new();
    let repeated = holdings.iter().filter_map(|one| {
        let other = seen.insert((one.name(), one.token), one.held)?;
        let text = format!("{}: two have token {}", one.name(), one.token);
        Some(violation("C3", text, &[other, one.held]))
    });
    repeated.collect()
}

/// C3: tokens increase.
fn tokens(name: &str, holdings: &[&Holding<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    // A command begins to write when others may have its lock already.
    let holdings = holdings.iter().filter(|one| one.mode != Mode::Command);
    let mut earlier: Vec<&Holding<'_>> = Vec::new();
    for next in holdings {
        let is_bound = |one: &&&Holding<'_>| next.is_exclusive() || one.is_exclusive();
        let largest = earlier.iter().filter(is_bound).max_by_key(|one| one.token);
        if let Some(before) = largest.filter(|one| one.token > next.token) {
            let text = format!("{name}: a later holder has a smaller token");
            found.push(violation("C3", text, &[before.held, next.held]));
        }
        // The largest of each kind is enough.
        earlier.retain(|one| one.token > next.token || one.is_exclusive() != next.is_exclusive());
        earlier.push(next);
    }
    found
}

/// C10: a command is dead before another has its lock.
fn command(command: &Holding<'_>, valid: &[&Holding<'_>]) -> Option<Violation> {
    let is_next = |next: &&&Holding<'_>| {
        command.mode == Mode::Command && next.token > command.token && next.from() < command.last.at
    };
    let next = valid.iter().find(is_next)?;
    let lived = Duration::from_nanos(command.last.at - next.from());
    let name = command.name();
    let text = format!("{name}: a command ran for {lived:?} while another had its lock");
    (lived > LATE).then(|| violation("C10", text, &[command.held, next.held, command.last]))
}

/// C5, C7 and C8: what stays behind, doesn't end, or fails as no fault allows.
fn end(event: &Event) -> Option<Violation> {
    const ALLOWED: [&str; 4] = ["ok", "dropped", "lost", "unavailable"];
    let (rule, text) = match &event.what {
        What::Left(what) => ("C5", format!("left behind: {what}")),
        What::Stuck(what) => ("C7", format!("it didn't end: {what}")),
        What::Failed(error) if error != "unavailable" => ("C8", format!("a call fails: {error}")),
        What::Released(outcome) if !ALLOWED.contains(&outcome.as_str()) => {
            ("C8", format!("a release fails: {outcome}"))
        }
        _ => return None,
    };
    Some(violation(rule, text, &[event]))
}
