//! A process of `benches/record.sh`, which does what the lines of its input say. `benches/compare/measure.py` describes
//! the lines; the workers in other languages understand the same.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::contended::monotonic;
use crate::delay;
use crate::files::{FdLock, Flock, Program};
use crate::subject::{Client, Subject};

/// A lock whose guard may borrow it.
pub trait Lock {
    /// Calls `held` under the lock.
    fn with(&mut self, held: &mut dyn FnMut());
}

impl<C: Client + ?Sized> Lock for Box<C> {
    fn with(&mut self, held: &mut dyn FnMut()) {
        self.lock();
        held();
        self.unlock();
    }
}

/// Works until its input ends if this process is a worker, and returns whether it was one.
pub fn serve(arguments: &[String]) -> bool {
    let [role, subject, place, ttl] = arguments else {
        return false;
    };
    if role != "worker" {
        return false;
    }
    let ttl = Duration::from_millis(number(ttl));
    let mut locks: HashMap<String, Box<dyn Lock>> = HashMap::new();
    let mut input = io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line).expect("a line") > 0 {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        line.clear();
        if words[0] == "late" {
            let url = url(subject, place);
            answer(&delay::late(&url, &words[1], ttl, number(&words[2])));
            continue;
        }
        let lock = locks
            .entry(words[1].clone())
            .or_insert_with(|| open(subject, place, &words[1], ttl));
        let lines = match words[0].as_str() {
            "free" => free(lock.as_mut(), number(&words[2])),
            "contend" => contend(lock.as_mut(), number(&words[2]), number(&words[3])),
            "take" => take(lock.as_mut(), &mut input),
            other => panic!("what is {other}?"),
        };
        answer(&lines);
    }
    true
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// An empty line ends the answer.
fn answer(lines: &str) {
    let mut output = io::stdout().lock();
    writeln!(output, "{lines}")
        .and_then(|()| output.flush())
        .expect("a reader");
}

/// Of crosslock.
fn url(subject: &str, place: &str) -> String {
    if subject == Subject::CrosslockFile.name() {
        format!("file://{place}")
    } else {
        place.to_owned()
    }
}

/// `place`: a URL, or a directory.
fn open(subject: &str, place: &str, name: &str, ttl: Duration) -> Box<dyn Lock> {
    let file = Path::new(place).join(format!("{name}.{subject}"));
    match subject {
        "flock(2)" => boxed(Flock::new(&file)),
        "fd-lock" => Box::new(FdLock::new(&file)),
        "flock(1)" => boxed(Program::new(&["flock", &file.display().to_string()])),
        "crosslock run" => {
            let program = std::env::var("CROSSLOCK_PROGRAM").expect("the path of crosslock");
            let url = format!("file://{place}");
            boxed(Program::new(&[&program, "--url", &url, "run", name, "--"]))
        }
        _ => {
            let subject = Subject::parse(subject).expect("a subject");
            Box::new(subject.client(place, Path::new(place), name, ttl))
        }
    }
}

fn boxed(client: impl Client + 'static) -> Box<dyn Lock> {
    Box::new(Box::new(client))
}

fn free(lock: &mut dyn Lock, count: u64) -> String {
    let mut lines = String::new();
    for _ in 0..count {
        let [mut had, mut released] = [0; 2];
        let asked = monotonic();
        lock.with(&mut || {
            had = monotonic();
            released = monotonic();
        });
        writeln!(lines, "{} {}", had - asked, monotonic() - released).expect("a text");
    }
    lines
}

fn contend(lock: &mut dyn Lock, until: u64, hold: u64) -> String {
    let mut lines = String::new();
    while monotonic() < until {
        let [mut had, mut released] = [0; 2];
        let asked = monotonic();
        lock.with(&mut || {
            had = monotonic();
            thread::sleep(Duration::from_nanos(hold));
            released = monotonic();
        });
        writeln!(lines, "{asked} {had} {released}").expect("a text");
    }
    lines
}

/// Answers when it has the lock, and releases it at the next line.
fn take(lock: &mut dyn Lock, input: &mut impl BufRead) -> String {
    lock.with(&mut || {
        answer(&format!("{}\n", monotonic()));
        input.read_line(&mut String::new()).expect("a line");
    });
    String::new()
}
