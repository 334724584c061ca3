//! Judges a history by rules that a late machine can't break.
//!
//! | rule | |
//! |---|---|
//! | C1 | holders of a name who may not share it don't have it at the same time |
//! | C2 | the value that a lock protects is what its last holder left |
//! | C3 | tokens are unique, and increase in the order of holding, but among those that share |

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::history::{Event, What};
use crate::worker::COUNTER;

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
    found.extend(unique_tokens(&holdings));
    for (name, valid) in by_name {
        found.extend(exclusion(name, &valid));
        found.extend(tokens(name, &valid));
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
    is_shared: bool,
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
            What::Held {
                is_shared,
                token,
                until,
            } => {
                by_call.insert(call, holdings.len());
                holdings.push(Holding {
                    held: event,
                    is_shared,
                    token,
                    last: event,
                    until,
                    found: None,
                    increased: None,
                    released: None,
                });
            }
            What::Killed(process) => drop(killed.insert(process, event.at)),
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
        let share = |one: &&&Holding<'_>| one.is_shared && next.is_shared;
        for before in inside.iter().filter(|one| !share(one)) {
            let overlap = Duration::from_nanos(before.until.min(next.until) - next.from());
            let text = format!("{name}: two hold it for {overlap:?}");
            let events = [before.held, before.last, next.held];
            found.push(violation("C1", text, &events));
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
    let mut earlier: Vec<&Holding<'_>> = Vec::new();
    for next in holdings {
        let is_bound = |one: &&&Holding<'_>| !(next.is_shared && one.is_shared);
        let largest = earlier.iter().filter(is_bound).max_by_key(|one| one.token);
        if let Some(before) = largest.filter(|one| one.token > next.token) {
            let text = format!("{name}: a later holder has a smaller token");
            found.push(violation("C3", text, &[before.held, next.held]));
        }
        // The largest of each kind is enough.
        earlier.retain(|one| one.token > next.token || one.is_shared != next.is_shared);
        earlier.push(next);
    }
    found
}
