//! What a history tells, put together.

use std::collections::{HashMap, HashSet};

use super::breaks::Break;
use super::engine::Engine;
use super::lateness::Lateness;
use crate::history::{ALL, Event, HANDED_OVER, Mode, PROGRAM};
use crate::kinds::{self, Kind};

/// What a history tells, put together.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) events: &'a [Event],
    pub(super) engine: Engine,
    /// By the time of their beginning.
    pub(crate) holdings: Vec<Holding<'a>>,
    /// Their places, by the call's number.
    by_call: HashMap<u64, Vec<usize>>,
    pub(crate) asks: HashMap<u64, &'a Event>,
    pub(crate) answers: HashMap<u64, &'a Event>,
    pub(crate) faults: Vec<Span<'a>>,
    pub(crate) breaks: Vec<Break<'a>>,
    /// By the call's number.
    pub(crate) cancels: HashMap<u64, &'a Event>,
    /// Calls that close a locker.
    pub(crate) closes: Vec<&'a Event>,
    /// Calls that adopt a lease, by the number of the call that had it.
    pub(crate) adoptions: HashMap<u64, Vec<&'a Event>>,
    /// Names that were asked for together.
    together: HashSet<(&'a str, &'a str)>,
    pub(crate) lateness: Lateness,
    /// Children that had copies of the files of a process that was killed.
    pub(super) kept: Vec<&'a Event>,
}

/// A lock that a thread had. Of several that it had together, there is one for each.
#[derive(Clone, Debug)]
pub(crate) struct Holding<'a> {
    pub(crate) name: &'a str,
    pub(crate) ask: Option<&'a Event>,
    pub(crate) answer: &'a Event,
    /// The last event that says until when the lease was valid.
    pub(crate) last: &'a Event,
    /// Until when its holder could believe in it, if it didn't release it before.
    pub(crate) until: u64,
    /// When it was last found valid.
    pub(crate) seen: u64,
    pub(crate) release: Option<&'a Event>,
    pub(crate) released: Option<&'a Event>,
    pub(crate) lost: Option<&'a Event>,
    /// The first call that adopts it.
    pub(crate) adopted: Option<&'a Event>,
    /// The call that closes its locker.
    pub(crate) closed: Option<&'a Event>,
    /// What the lock protected.
    pub(crate) value: Option<u64>,
}

/// A fault, from before it was fired until after it was over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) event: &'a Event,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) process: u32,
    /// Whose calls may fail because of it.
    reach: u32,
    pub(crate) hit: bool,
}

impl<'a> Holding<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.answer.mode == Mode::Exclusive
    }

    pub(crate) fn from(&self) -> u64 {
        self.answer.at
    }

    pub(crate) fn token(&self) -> u64 {
        self.answer.token
    }

    /// Whether it was ever found valid.
    pub(crate) fn was_valid(&self) -> bool {
        self.until > 0
    }

    /// The end of the time in which it was valid. A lease that is passed on is nobody else's until it is adopted.
    pub(crate) fn end(&self) -> u64 {
        let ended = self.release.map(|event| match self.adopted {
            Some(ask) => ask.at,
            None if self.passed().is_some() => self.until,
            None => event.at,
        });
        // It may be over as soon as its locker is closed, but not while it is found valid.
        let closed = self.closed.map(|event| event.at.max(self.seen));
        let ends = [Some(self.until), ended, closed];
        ends.into_iter().flatten().min().unwrap_or_default()
    }

    /// Whether it is a command's, which `crosslock run` runs.
    pub(crate) fn is_of_command(&self) -> bool {
        self.answer.process == PROGRAM
    }

    /// Whether it has the lease of the holder before it, a thread of the same process.
    pub(crate) fn was_handed_over(&self) -> bool {
        self.answer.detail == HANDED_OVER
    }

    /// The calls that let its lease go. What was passed on isn't released, unless its locker was closed before.
    pub(crate) fn let_go(&self) -> [Option<&'a Event>; 2] {
        match self.passed() {
            Some(passed) => {
                let closed = self.closed.filter(|close| close.at <= passed.at);
                [self.adopted, closed]
            }
            None => [self.release, self.closed],
        }
    }

    /// The call that passed it on. A guard that is lost has no ticket: what the server may still have of its lease is
    /// released.
    pub(crate) fn passed(&self) -> Option<&'a Event> {
        let was_lost = self.released.is_some_and(|event| event.outcome == "lost");
        let passed = self.release.filter(|event| event.detail == "pass");
        passed.filter(|_| !was_lost)
    }
}

impl Span<'_> {
    /// Whether it may have had an effect on whoever wants this lock, or one that is locked together with it.
    pub(crate) fn concerns(&self, facts: &Facts<'_>, name: &str) -> bool {
        self.kind.name != "break" || facts.go_together(name, &self.event.name)
    }

    /// Whether it may have had an effect on `process` between the two times, if that lasts for `after`.
    pub(crate) fn touches(&self, process: u32, from: u64, until: u64, after: u64) -> bool {
        let concerns = self.reach == ALL || self.reach == process;
        concerns && self.from <= until && from <= self.until.saturating_add(after)
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Self {
        let mut facts = Facts {
            events,
            engine: engine(events),
            holdings: Vec::new(),
            by_call: HashMap::new(),
            asks: HashMap::new(),
            answers: HashMap::new(),
            faults: Vec::new(),
            breaks: Vec::new(),
            cancels: HashMap::new(),
            closes: Vec::new(),
            adoptions: HashMap::new(),
            together: HashSet::new(),
            lateness: Lateness::default(),
            kept: Vec::new(),
        };
        for event in events {
            facts.take_in(event);
        }
        if facts.engine.has_lasting_leases() {
            facts.end_with_processes();
        }
        facts
    }

    fn take_in(&mut self, event: &'a Event) {
        match event.op.as_str() {
            "ask" => self.take_in_ask(event),
            "cancel" => drop(self.cancels.insert(event.id, event)),
            "broke" => self.breaks.push(Break::of(event)),
            "answer" => {
                self.answers.insert(event.id, event);
                if event.outcome == "held" {
                    let first = self.holdings.len();
                    let names = event.name.split(' ');
                    let its: Vec<_> = names.map(|name| self.holding(name, event)).collect();
                    self.holdings.extend(its);
                    let places = (first..self.holdings.len()).collect();
                    self.by_call.insert(event.id, places);
                }
            }
            "look" | "value" | "release" | "released" | "lost" => {
                for at in self.by_call.get(&event.id).into_iter().flatten() {
                    self.holdings[*at].take_in(event);
                }
            }
            "fault" => {
                let span = span(event).map(|span| Span {
                    reach: self.engine.reach_of(span.kind, span.process),
                    ..span
                });
                self.faults.extend(span);
            }
            "kept" => self.kept.push(event),
            "faulted" => {
                let mut spans = self.faults.iter_mut().rev();
                if let Some(span) = spans.find(|span| span.event.id == event.id) {
                    span.until = event.at;
                    span.hit = !event.outcome.is_empty();
                    self.lateness.take_in_stop(span);
                }
            }
            "late" => self.lateness.take_in(event),
            _ => {}
        }
    }

    fn take_in_ask(&mut self, event: &'a Event) {
        self.asks.insert(event.id, event);
        let names = || event.name.split(' ');
        let pairs = names().flat_map(|one| names().map(move |other| (one, other)));
        self.together.extend(pairs);
        match event.detail.as_str() {
            "adopt" => {
                self.adoptions.entry(event.until).or_default().push(event);
                for at in self.by_call.get(&event.until).into_iter().flatten() {
                    let holding = &mut self.holdings[*at];
                    holding.adopted = holding.adopted.or(Some(event));
                }
            }
            "close" => {
                self.closes.push(event);
                for holding in &mut self.holdings {
                    if is_by_closed(event, holding.ask, holding.answer) && holding.until > event.at
                    {
                        holding.closed = holding.closed.or(Some(event));
                    }
                }
            }
            _ => {}
        }
    }

    fn holding(&self, name: &'a str, answer: &'a Event) -> Holding<'a> {
        let ask = self.asks.get(&answer.id).copied();
        let mut closes = self.closes.iter().rev();
        // What is read after writing has no call of its own: a locker was closed while it began, or long before.
        let is_near = |close: &Event| ask.is_some() || answer.at < close.at + CLOSES;
        let closed = closes.find(|close| is_by_closed(close, ask, answer) && is_near(close));
        Holding {
            name,
            ask,
            answer,
            adopted: None,
            closed: closed.copied(),
            last: answer,
            until: answer.until,
            seen: answer.at,
            release: None,
            released: None,
            lost: None,
            value: None,
        }
    }

    /// Whether they are the same, or somebody wanted both at once.
    pub(crate) fn go_together(&self, one: &str, other: &str) -> bool {
        one == other || self.together.contains(&(one, other))
    }

    /// The processes that asked for a lock then, or waited for it, or had it.
    pub(crate) fn askers(&self, name: &str, from: u64, until: u64) -> Vec<u32> {
        let asked = self.asks.values().filter(|ask| {
            let answered = self.answers.get(&ask.id).is_some_and(|one| one.at < from);
            let had = self.holdings_of_call(ask.id).any(|one| one.end() >= from);
            let is_over = answered && !had;
            ask.at <= until && !is_over && ask.name.split(' ').any(|one| one == name)
        });
        let mut processes: Vec<_> = asked.map(|ask| ask.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// What the call with this number got.
    pub(crate) fn holdings_of_call(&self, id: u64) -> impl Iterator<Item = &Holding<'a>> {
        let all = self.by_call.get(&id).into_iter().flatten();
        all.map(|at| &self.holdings[*at])
    }

    /// The faults that may have had an effect then, if they have one for `after`.
    pub(crate) fn faults_near(
        &self,
        process: u32,
        from: u64,
        until: u64,
        after: u64,
    ) -> impl Iterator<Item = &Span<'a>> {
        self.faults
            .iter()
            .filter(move |span| span.touches(process, from, until, after))
    }

    /// The names that occur.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<_> = self
            .events
            .iter()
            .flat_map(|event| event.name.split(' '))
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The holdings of a name, by the time of their beginning.
    pub(crate) fn holdings_of(&self, name: &str) -> impl Iterator<Item = &Holding<'a>> {
        self.holdings
            .iter()
            .filter(move |holding| holding.name() == name)
    }

    /// The valid holdings of a name, each with those that are still valid when it begins.
    pub(crate) fn together(&self, name: &str) -> Vec<(&Holding<'a>, Vec<&Holding<'a>>)> {
        let mut inside: Vec<&Holding<'a>> = Vec::new();
        let valid = self.holdings_of(name).filter(|one| one.was_valid());
        let mut together = Vec::new();
        for next in valid {
            inside.retain(|one| one.end() > next.from());
            together.push((next, inside.clone()));
            inside.push(next);
        }
        together
    }

    /// The fault by which a process died that lived at that time: numbers come again.
    pub(crate) fn death(&self, pid: u32, lived: u64) -> Option<&Span<'a>> {
        self.faults.iter().find(|span| {
            span.kind.name.contains("kill ")
                && u64::from(pid) == span.event.token
                && span.until > lived
        })
    }
}

impl<'a> Holding<'a> {
    fn take_in(&mut self, event: &'a Event) {
        match event.op.as_str() {
            "release" => self.release = Some(event),
            "released" => {
                self.released = Some(event);
                if event.outcome == "lost" {
                    self.lost = self.lost.or(Some(event));
                }
            }
            "lost" => self.lost = self.lost.or(Some(event)),
            "value" => {
                self.value = Some(event.until);
                return;
            }
            _ => {}
        }
        if event.until > 0 {
            self.until = self.until.max(event.until);
            self.seen = event.at;
            self.last = event;
        }
    }
}

/// A close takes no longer, whatever goes wrong.
const CLOSES: u64 = 1_000_000_000;

/// Whether a lock was taken by the locker that is closed.
fn is_by_closed(close: &Event, ask: Option<&Event>, answer: &Event) -> bool {
    let is_its = (close.process, close.pid) == (answer.process, answer.pid);
    is_its && ask.is_none_or(|ask| ask.token == close.token)
}

fn engine(events: &[Event]) -> Engine {
    let mut reversed = events.iter().rev();
    let run = reversed.find(|event| event.op == "run");
    run.map_or(Engine::default(), |run| Engine::named(&run.outcome))
}

fn span(event: &Event) -> Option<Span<'_>> {
    Some(Span {
        kind: kinds::kind(&event.detail)?,
        event,
        from: event.at,
        until: u64::MAX,
        process: event.process,
        reach: event.process,
        hit: false,
    })
}
