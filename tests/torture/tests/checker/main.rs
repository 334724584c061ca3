//! The checker of the torture program, on histories that are written by hand: a history in, the rules that it breaks
//! out.
//!
//! A history is a text, with `;` between its events. Each event is a time in milliseconds, the number of a call where
//! it is one of a call, what happened, and what belongs to that in the order of [`event_of`]. Call 21 is of process 1,
//! as are all whose number ends so. Words are joined by `_`, names by `+`, and `-` stands for nothing.

#![cfg(target_os = "linux")]

mod bounds;
mod breaks;
mod lateness;
mod losses;
mod meetings;
mod passing;
mod places;
mod server;
mod tokens;
mod values;

use std::time::Duration;

use crosslock_torture::checker::{Rules, judge};
use crosslock_torture::history::{ALL, DRIVER, Event, Mode, PROGRAM, SERVER};
use crosslock_torture::kinds::Class;

const MS: u64 = 1_000_000;

fn rules() -> Rules {
    Rules {
        class: Class::Safe,
        ttl: Duration::from_millis(400),
        io_timeout: Duration::from_millis(150),
        replica_timeout: None,
        slack: Duration::from_millis(50),
        acquisitions: 0,
        of_each_sort: 0,
        commands: 0,
        permits: 3,
        stale_writes: 0,
        faults: Vec::new(),
    }
}

fn unsafe_rules() -> Rules {
    Rules {
        class: Class::Unsafe,
        ..rules()
    }
}

/// More of a history, and the rules that it breaks then.
type Case = (&'static str, &'static str);

/// Judges a history with more events, those of each case.
#[track_caller]
fn check(what: &str, history: &str, cases: &[Case]) {
    check_by(&rules(), what, history, cases);
}

#[track_caller]
fn check_by(rules: &Rules, what: &str, history: &str, cases: &[Case]) {
    for (more, expected) in cases {
        let found = broken(&format!("{history}; {more}"), rules);
        assert_eq!(found, *expected, "{what}: {history}; {more}");
    }
}

fn broken(history: &str, rules: &Rules) -> String {
    let violations = judge(&events(history), rules);
    let mut found: Vec<_> = violations.iter().map(|one| one.rule).collect();
    found.dedup();
    found.join(" ")
}

fn events(history: &str) -> Vec<Event> {
    let texts = history.split(';').filter(|text| !text.trim().is_empty());
    let mut events: Vec<_> = texts.flat_map(read).collect();
    events.sort_by_key(|event| event.at);
    events
}

/// What a text tells of one moment, or of a fault or a close from its begin to its end.
fn read(text: &str) -> Vec<Event> {
    let is_option = |word: &&str| word.contains('=');
    let (options, words): (Vec<_>, Vec<_>) = text.split_whitespace().partition(is_option);
    let (at, rest) = words.split_first().expect("a time");
    let (id, rest) = match rest[0].parse::<u64>() {
        Ok(id) => (id, &rest[1..]),
        Err(_) => (0, rest),
    };
    let args = Args(&rest[1..]);
    let process = u32::try_from(id % 10).expect("one digit");
    let of = Event {
        at: millis(at),
        op: rest[0].into(),
        id,
        name: "a".into(),
        process,
        pid: process,
        ..Event::default()
    };
    let mut all = match rest[0] {
        "fault" => fault(of, &args),
        "closes" => close(of, &args),
        "has" => value(of, &args),
        _ => vec![event_of(of, &args)],
    };
    for (name, value) in options.iter().filter_map(|option| option.split_once('=')) {
        all.iter_mut().for_each(|event| set(event, name, value));
    }
    all
}

/// What stands behind the name of an event.
struct Args<'a>(&'a [&'a str]);

impl Args<'_> {
    fn text(&self, at: usize) -> String {
        match self.0.get(at) {
            None | Some(&"-") => String::new(),
            Some(word) => word.replace('_', " "),
        }
    }

    fn number(&self, at: usize) -> u64 {
        self.0[at].parse().expect("a number")
    }

    /// A time, or zero where none is told.
    fn time(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| millis(word))
    }

    fn process(&self, at: usize) -> u32 {
        process(self.0[at])
    }
}

fn millis(word: &str) -> u64 {
    match word {
        "ever" => u64::MAX / MS * MS,
        number => number.parse::<u64>().expect("milliseconds") * MS,
    }
}

fn process(word: &str) -> u32 {
    match word {
        "all" => ALL,
        "driver" => DRIVER,
        "program" => PROGRAM,
        "server" => SERVER,
        number => number.parse().expect("a process"),
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn event_of(mut of: Event, args: &Args<'_>) -> Event {
    match of.op.as_str() {
        "held" => {
            (of.op, of.outcome) = ("answer".into(), "held".into());
            (of.token, of.until) = (args.number(0), args.time(1));
        }
        "ask" | "release" => (of.detail, of.until) = (args.text(0), args.time(1)),
        // The lease of the call with this number.
        "adopts" => {
            (of.op, of.detail) = ("ask".into(), "adopt".into());
            of.until = args.number(0);
        }
        "answer" | "released" | "met" => of.outcome = args.text(0),
        "lost" | "left" => of.detail = args.text(0),
        "look" | "down" => of.until = args.time(0),
        "value" | "stored" => of.until = args.number(0),
        "register" => {
            (of.token, of.detail) = (args.number(0), args.text(1));
            (of.outcome, of.until) = (args.text(2), args.number(3));
        }
        "key" => {
            (of.detail, of.token) = (args.text(0), args.number(1));
            of.until = args.time(2);
        }
        "line" | "sharers" | "broken" => of.detail = args.0.join(" "),
        "broke" => {
            (of.id, of.token) = (100, args.number(0));
            (of.pid, of.until) = (args.process(1), args.time(2));
        }
        "late" => {
            (of.until, of.process, of.pid) = (args.time(0), args.process(1), args.process(1));
            (of.detail, of.name) = (args.text(2), String::new());
        }
        "kept" => (of.pid, of.until) = (args.process(0), args.time(1)),
        "run" => {
            (of.outcome, of.detail) = (args.text(0), "safe".into());
            of.until = 400 * MS;
        }
        "cancel" | "bare" | "meet" => {}
        op => panic!("{op:?}"),
    }
    of
}

/// Its kind, its end, and whom it hits.
fn fault(of: Event, args: &Args<'_>) -> Vec<Event> {
    let begun = Event {
        process: args.process(2),
        token: args.process(2).into(),
        id: of.at / MS,
        detail: args.text(0),
        name: String::new(),
        ..of
    };
    let done = Event {
        op: "faulted".into(),
        at: args.time(1),
        outcome: "holder".into(),
        ..begun.clone()
    };
    vec![begun, done]
}

/// The first locker of process 1 is closed, until then.
fn close(of: Event, args: &Args<'_>) -> Vec<Event> {
    let begun = Event {
        op: "ask".into(),
        id: 901,
        process: 1,
        pid: 1,
        token: 1,
        detail: "close".into(),
        name: String::new(),
        ..of
    };
    let done = Event {
        op: "answer".into(),
        at: args.time(0),
        outcome: "closed".into(),
        ..begun.clone()
    };
    vec![begun, done]
}

/// Somebody finds a value, releases the lock in this way, and is told that.
fn value(of: Event, args: &Args<'_>) -> Vec<Event> {
    let (at, id, token) = (of.at / MS, of.id, 4 * of.id + 1);
    let [how, told] = [args.0[1], args.0[2]];
    let all = format!(
        "{at} {id} held {token} {}; {at} {id} value {}; {} {id} release {how}; {} {id} released {told}",
        at + 300,
        args.number(0),
        at + 1,
        at + 2
    );
    events(&all)
}

fn set(event: &mut Event, name: &str, value: &str) {
    match name {
        "name" => event.name = value.replace('+', " "),
        "detail" => event.detail = value.replace('_', " "),
        "process" => event.process = process(value),
        "token" => event.token = value.parse().expect("a number"),
        "mode" if value == "read" => event.mode = Mode::Read,
        "mode" => event.mode = Mode::Permits(value.parse().expect("permits")),
        name => panic!("{name:?}"),
    }
}

#[test]
fn idle_run_breaks_c9() {
    let idle = Rules {
        acquisitions: 1,
        stale_writes: 1,
        faults: vec![("flushall", 1)],
        ..rules()
    };
    assert_eq!(judge(&[], &idle).len(), 3);
    let busy = "1 fault flushall 2 all; 3 2 register 9 read accepted 0; 4 1 register 5 write stale 0; \
                10 1 held 5 400";
    let mut busy = events(busy);
    assert_eq!(judge(&busy, &idle).len(), 0);
    // Nobody was hit.
    let faulted = busy.iter_mut().find(|event| event.op == "faulted");
    faulted.expect("it is over").outcome.clear();
    assert_eq!(judge(&busy, &idle).len(), 1);
}

#[test]
fn run_without_readers_or_permits_breaks_c9() {
    let each = Rules {
        of_each_sort: 1,
        ..rules()
    };
    assert_eq!(judge(&[], &each).len(), 10);
    let readers = "10 1 held 4 400 mode=read; 11 2 held 8 400 mode=read";
    let permits = "12 3 held 4 400 name=p mode=1; 13 4 held 8 400 name=p mode=2";
    let ended = "14 5 held 5 400 name=q; 15 5 release downgrade; 16 6 held 5 400 name=r; 17 6 release commit";
    let both = "10 8 held 5 400 name=c+d";
    let adopted = "18 17 ask adopt name=s; 19 17 held 5 400 name=s";
    let cancelled = "20 18 ask lock; 21 18 cancel; 22 18 answer cancelled";
    let busy = [readers, permits, ended, both, adopted, cancelled].join(";");
    assert_eq!(broken(&busy, &each), "");
}
