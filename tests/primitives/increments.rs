//! A shared counter, and what becomes of its increments when processes are killed and stopped.
//!
//! Each process notes in a file, a byte each, when it is about to unlock and what came of it: a byte that was written
//! outlives the process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use super::*;
use support::{Child, RedisServer};

const NOTES: &str = "TEST_NOTES";

/// What processes note.
const BEGUN: u8 = b'b';
const OK: u8 = b'o';
const LOST: u8 = b'l';

/// Processes that increment, and what they have noted.
struct Counters<'a> {
    server: &'a RedisServer,
    ttl: Duration,
    notes: tempfile::TempDir,
    started: usize,
}

/// What became of increments.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    ok: u64,
    lost: u64,
    unseen: u64,
}

impl Counters<'_> {
    fn start(&mut self, turns: u64) -> Child {
        self.started += 1;
        let notes = self.path(self.started);
        File::create(&notes).unwrap();
        let (url, ttl) = (self.server.url(), self.ttl.as_millis().to_string());
        let notes = notes.to_str().unwrap();
        let args = [(URL, &*url), (TTL, &ttl), (NOTES, notes)];
        let mut child = Child::spawn("increments and notes", &args);
        child.tell(&turns.to_string());
        child
    }

    fn path(&self, which: usize) -> PathBuf {
        self.notes.path().join(which.to_string())
    }

    fn outcomes(&self) -> Outcomes {
        let all = (1..=self.started).map(|which| outcomes_of(&self.path(which)));
        all.reduce(|one, other| Outcomes {
            ok: one.ok + other.ok,
            lost: one.lost + other.lost,
            unseen: one.unseen + other.unseen,
        })
        .unwrap()
    }
}

fn outcomes_of(notes: &Path) -> Outcomes {
    let notes = fs::read(notes).unwrap();
    let count = |word: u8| notes.iter().filter(|note| **note == word).count() as u64;
    let (ok, lost) = (count(OK), count(LOST));
    // An outcome that wasn't known, or wasn't noted any more.
    let unseen = count(BEGUN) - ok - lost;
    Outcomes { ok, lost, unseen }
}

fn counters(server: &RedisServer, ttl: Duration) -> Counters<'_> {
    Counters {
        server,
        ttl,
        notes: tempfile::tempdir().unwrap(),
        started: 0,
    }
}

#[test]
fn every_increment_of_four_processes_counts_once() {
    const EACH: u64 = 2_500;
    let server = RedisServer::start();
    let mut counters = counters(&server, Duration::from_secs(10));
    let mut children: Vec<_> = (0..4).map(|_| counters.start(EACH)).collect();
    for child in &mut children {
        child.wait_for("done", 4 * PATIENCE);
    }
    let outcomes = counters.outcomes();
    assert_eq!(
        (outcomes.ok, outcomes.lost, outcomes.unseen),
        (4 * EACH, 0, 0)
    );
    assert_eq!(server.get(VALUE), Some((4 * EACH).to_string()));
    drop(children);
    assert_nothing_left(&server);
}

#[test]
fn increments_that_were_committed_count_although_processes_are_killed_and_stopped() {
    const INCREMENTS: u64 = 10_000;
    const TTL: Duration = millis(300);
    let server = RedisServer::start();
    let mut counters = counters(&server, TTL);
    let start = |counters: &mut Counters<'_>| counters.start(u64::MAX);
    let mut children: Vec<_> = (0..4).map(|_| start(&mut counters)).collect();
    let mut random = fastrand::Rng::new();
    let (begun, mut kills) = (Instant::now(), 0);
    while counters.outcomes().ok < INCREMENTS {
        thread::sleep(millis(random.u64(500..1000)));
        let one = random.usize(..children.len());
        if random.bool() {
            children[one].kill();
            children[one] = start(&mut counters);
            kills += 1;
        } else {
            children[one].stop();
            thread::sleep(TTL + millis(150));
            children[one].cont();
        }
        assert!(begun.elapsed() < 10 * PATIENCE, "{:?}", counters.outcomes());
    }
    for child in &mut children {
        child.kill();
        kills += 1;
    }
    let Outcomes { ok, lost, unseen } = counters.outcomes();
    let value: u64 = server.get(VALUE).unwrap().parse().unwrap();
    let story = format!("{value} with {ok} committed, {lost} lost, {unseen} unseen, {kills} kills");
    assert!((ok..=ok + unseen).contains(&value), "{story}");
    // So the upper bound says something.
    assert!(unseen <= kills, "{story}");
    // The next one finds it as it is, and clears the line of the dead.
    let counter = open(&server).mutex(NAME, 0).unwrap();
    assert_eq!(*counter.lock().unwrap(), value);
    assert_nothing_left(&server);
}
