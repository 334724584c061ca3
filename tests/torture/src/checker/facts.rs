//! What a history tells, put together.

use std::collections::HashMap;

use crate::history::{Event, Mode, What};

/// What a history tells, put together.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) events: &'a [Event],
    /// By the time of their beginning.
    pub(crate) holdings: Vec<Holding<'a>>,
}

/// A lock that a thread had, or a command.
#[derive(Clone, Debug)]
pub(crate) struct Holding<'a> {
    pub(crate) held: &'a Event,
    pub(crate) mode: Mode,
    pub(crate) token: u64,
    /// The last event that shows that it was valid.
    pub(crate) last: &'a Event,
    /// Until when its holder could believe in it: until its lease ended, or it began to release, or was killed.
    pub(crate) until: u64,
    /// The value that it found.
    pub(crate) found: Option<u64>,
    /// Whether it increased that, if it began to release.
    pub(crate) increased: Option<bool>,
    pub(crate) released: Option<&'a str>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Self {
        let mut holdings: Vec<Holding<'a>> = Vec::new();
        let mut by_call = HashMap::new();
        let mut killed = HashMap::new();
        for event in events {
            match &event.what {
                What::Held { mode, token, until } => {
                    by_call.insert((event.process, event.call), holdings.len());
                    holdings.push(Holding::new(event, *mode, *token, *until));
                }
                What::Killed => drop(killed.insert(event.process, event.at)),
                _ => {
                    if let Some(at) = by_call.get(&(event.process, event.call)) {
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
        Facts { events, holdings }
    }

    /// The holdings of each name that were valid when they began, by that time.
    pub(super) fn by_name(&self) -> HashMap<&'a str, Vec<&Holding<'a>>> {
        let mut names: HashMap<_, Vec<_>> = HashMap::new();
        for holding in self.holdings.iter().filter(|one| one.until > one.from()) {
            names.entry(holding.name()).or_default().push(holding);
        }
        names
    }
}

impl<'a> Holding<'a> {
    fn new(held: &'a Event, mode: Mode, token: u64, until: u64) -> Self {
        Holding {
            held,
            mode,
            token,
            last: held,
            until,
            found: None,
            increased: None,
            released: None,
        }
    }

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

    pub(crate) fn name(&self) -> &'a str {
        &self.held.name
    }

    pub(crate) fn from(&self) -> u64 {
        self.held.at
    }

    pub(super) fn is_exclusive(&self) -> bool {
        matches!(self.mode, Mode::Exclusive | Mode::Command)
    }

    pub(super) fn is_command(&self) -> bool {
        self.mode == Mode::Command
    }
}
