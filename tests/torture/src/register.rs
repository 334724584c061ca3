//! What the locks protect: a number for each name, which takes a write only with a token that isn't stale.
//!
//! Those that share a lock have their tokens in no order: none of them makes the other stale, but all make those stale
//! that had the lock for themselves before, and are made so by those that have it after.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::history::{DRIVER, Event, History, now};
use super::worker;

/// A moment at which a fault can be fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Somebody has just got a lock, and keeps it for so long at least.
    Has(Duration),
    /// The same, for itself.
    Holds(Duration),
    /// Somebody is about to release.
    Releases,
    /// Somebody has just passed a lease on.
    Passes,
}

/// Whom a fault hits.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) process: u32,
    pub(crate) name: String,
}

/// The register of a run.
#[derive(Debug)]
pub(crate) struct Register(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    history: History,
    state: Mutex<State>,
    /// Notified when somebody was let in.
    seen: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cells: HashMap<String, Cell>,
    /// Who was let in last, to which name, and how often anybody was.
    last: Option<(Target, Moment)>,
    count: u64,
    /// Tickets that were passed on, and how often each may still be taken.
    passed: VecDeque<Event>,
}

/// So many tickets are kept: an older one is of a lease that is over.
const TICKETS: usize = 8;

/// What is known of one name.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) value: u64,
    /// Of who had it last for itself.
    token: u64,
    owner: u64,
    /// The largest of all.
    seen: u64,
}

impl Register {
    pub(crate) fn start(dir: &Path, uid: Option<u32>) -> io::Result<Self> {
        let listener = UnixListener::bind(worker::socket(dir))?;
        chown(worker::socket(dir), uid, uid)?;
        let shared = Arc::new(Shared {
            history: History::open(dir, "register.jsonl", DRIVER)?,
            state: Mutex::default(),
            seen: Condvar::new(),
        });
        let theirs = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = theirs.clone();
                // It ends with its worker.
                thread::spawn(move || shared.serve(&stream));
            }
        });
        Ok(Register(shared))
    }

    /// Waits for such a moment, and says whose it is, and with which lock.
    pub(crate) fn await_moment(&self, moment: Moment, timeout: Duration) -> Option<Target> {
        let deadline = Instant::now() + timeout;
        let mut state = self.0.state.lock().expect("no panics");
        let mut count = state.count;
        loop {
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self.0.seen.wait_timeout(state, left).expect("no panics").0;
            if state.count == count {
                continue;
            }
            count = state.count;
            let (target, last) = state.last.as_ref()?;
            let is_it = match (*last, moment) {
                (Moment::Holds(planned), Moment::Has(least) | Moment::Holds(least))
                | (Moment::Has(planned), Moment::Has(least)) => planned >= least,
                (last, moment) => last == moment,
            };
            if is_it {
                return Some(target.clone());
            }
        }
    }
}

impl Shared {
    fn serve(&self, stream: &UnixStream) -> Option<()> {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let hello = lines.next()?;
        let mut numbers = hello.split(' ').map_while(|word| word.parse::<u32>().ok());
        let of = Event {
            process: numbers.next()?,
            pid: numbers.next()?,
            thread: numbers.next()?,
            ..Event::default()
        };
        for line in lines {
            let answer = self.answer(&of, &line)?;
            writeln!(&*stream, "{answer}").ok()?;
        }
        Some(())
    }

    /// `read name token owner micros` or `write name token owner value`; of who shares the lock `peek name token owner
    /// micros` and `leave name token owner 0`.
    ///
    /// `post ticket` passes a lease on, and `take other` or `take any` takes one.
    fn answer(&self, of: &Event, line: &str) -> Option<String> {
        match line.split_once(' ')? {
            ("post", passed) => return Some(self.post(Event::from_json(passed)?)),
            ("take", whose) => return Some(self.take(of.process, whose == "any")),
            _ => {}
        }
        let words: Vec<_> = line.split(' ').collect();
        let [verb, name, token, owner, number] = words[..] else {
            return None;
        };
        let (token, owner) = (token.parse().ok()?, owner.parse().ok()?);
        let number: u64 = number.parse().ok()?;
        let mut state = self.state.lock().expect("no panics");
        let cell = state.cells.entry(name.to_owned()).or_default();
        let is_stale = cell.is_stale(verb, token, owner);
        if !is_stale {
            cell.accept(verb, token, owner, number);
        }
        let value = cell.value;
        let outcome = if is_stale { "stale" } else { "accepted" };
        self.history.tell(&Event {
            at: now(),
            op: "register".to_owned(),
            id: owner,
            name: name.to_owned(),
            outcome: outcome.to_owned(),
            token,
            until: value,
            detail: verb.to_owned(),
            ..of.clone()
        });
        if is_stale {
            return Some(outcome.to_owned());
        }
        self.tell_moment(&mut state, of.process, name, moment_of(verb, number));
        Some(value.to_string())
    }

    fn tell_moment(&self, state: &mut State, process: u32, name: &str, moment: Moment) {
        let name = name.to_owned();
        state.last = Some((Target { process, name }, moment));
        state.count += 1;
        self.seen.notify_all();
    }

    fn post(&self, passed: Event) -> String {
        let mut state = self.state.lock().expect("no panics");
        self.tell_moment(&mut state, passed.process, &passed.name, Moment::Passes);
        state.passed.push_back(passed);
        if state.passed.len() > TICKETS {
            state.passed.pop_front();
        }
        String::new()
    }

    /// Gives a ticket, or an empty line.
    fn take(&self, process: u32, takes_own: bool) -> String {
        let mut state = self.state.lock().expect("no panics");
        let mut passed = state.passed.iter();
        let at = passed.position(|one| takes_own || one.process != process);
        let Some(at) = at else {
            return String::new();
        };
        let taken = state.passed[at].clone();
        state.passed[at].until -= 1;
        if taken.until == 1 {
            state.passed.remove(at);
        }
        taken.to_json()
    }
}

impl Cell {
    pub(crate) fn is_stale(&self, verb: &str, token: u64, owner: u64) -> bool {
        if shares(verb) {
            token < self.token
        } else {
            token < self.seen || (token == self.seen && owner != self.owner)
        }
    }

    pub(crate) fn accept(&mut self, verb: &str, token: u64, owner: u64, number: u64) {
        self.seen = self.seen.max(token);
        if !shares(verb) {
            (self.token, self.owner) = (token, owner);
        }
        if verb == "write" {
            self.value = number;
        }
    }
}

fn moment_of(verb: &str, number: u64) -> Moment {
    match verb {
        "read" => Moment::Holds(Duration::from_micros(number)),
        "peek" => Moment::Has(Duration::from_micros(number)),
        _ => Moment::Releases,
    }
}

fn shares(verb: &str) -> bool {
    matches!(verb, "peek" | "leave")
}
