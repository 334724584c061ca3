//! Very many acquisitions by many threads of several processes, with all kinds of timeouts.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::watch::{FENCE, assert_nothing_left};
use super::*;
use support::{Child, RedisServer};

const FILE: &str = "TEST_FILE";
const HAND_OVER: &str = "TEST_HAND_OVER_US";
/// How many times a process is to hold the lock.
const HOLDS: &str = "TEST_HOLDS";

const PROCESSES: usize = 4;

/// A token, and a time in which it was held, and valid.
#[derive(Clone, Copy, Debug)]
struct Hold {
    token: u64,
    from: Duration,
    until: Duration,
}

/// Processes that contend for "a", and write down when they held it.
struct Crowd {
    children: Vec<Child>,
    files: Vec<PathBuf>,
    _dir: TempDir,
}

impl Crowd {
    fn start(server: &RedisServer, ttl: Duration, hand_over: Duration, holds: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = (0..PROCESSES).map(|at| dir.path().join(at.to_string()));
        let files: Vec<_> = files.collect();
        let spawn = |file: &PathBuf| {
            let args = [
                (URL, server.url()),
                (TTL, ttl.as_millis().to_string()),
                (HAND_OVER, hand_over.as_micros().to_string()),
                (HOLDS, (holds / PROCESSES).to_string()),
                (FILE, file.display().to_string()),
            ];
            let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
            Child::spawn("contends", &args)
        };
        let mut children: Vec<_> = files.iter().map(spawn).collect();
        for child in &mut children {
            child.wait_for("ready", PATIENCE);
        }
        children.iter_mut().for_each(|child| child.tell("go"));
        Crowd {
            children,
            files,
            _dir: dir,
        }
    }

    /// Waits until all are done; returns what they have written down, in the order of time.
    fn holds(&mut self) -> Vec<Hold> {
        // It depends on the machine.
        const MINUTES: Duration = Duration::from_secs(300);
        let in_vain = self.children.iter_mut().map(|child| {
            let count = child.wait_for("done", MINUTES);
            count.parse::<u64>().unwrap()
        });
        report("calls that gave up", in_vain.sum::<u64>());
        let mut holds: Vec<_> = self.files.iter().flat_map(|file| read(file)).collect();
        holds.sort_unstable_by_key(|hold| hold.from);
        holds
    }
}

fn read(file: &Path) -> Vec<Hold> {
    let lines = fs::read_to_string(file).unwrap();
    let hold = |line: &str| {
        let mut numbers = line.split(' ').map(|word| word.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        Hold {
            token: next(),
            from: Duration::from_nanos(next()),
            until: Duration::from_nanos(next()),
        }
    };
    lines.lines().map(hold).collect()
}

#[track_caller]
fn assert_one_at_a_time(holds: &[Hold]) {
    for pair in holds.windows(2) {
        assert!(pair[0].until <= pair[1].from, "two holders: {pair:?}");
        assert!(
            pair[0].token < pair[1].token,
            "tokens don't increase: {pair:?}"
        );
    }
}

/// Lets a crowd hold the lock so many times, and judges what they have written down.
fn acquisitions_never_overlap(count: usize, hand_over: Duration) {
    const TTL: Duration = Duration::from_secs(10);
    let server = RedisServer::start();
    let mut crowd = Crowd::start(&server, TTL, hand_over, count);
    let begun = now();
    let holds = crowd.holds();
    report(
        &format!("{count} contended acquisitions took"),
        now() - begun,
    );
    report("EVALSHA", server.command_calls("evalsha"));
    assert!(holds.len() >= count, "{}", holds.len());
    assert_one_at_a_time(&holds);
    wait_until("nothing but the counter", PATIENCE, || {
        server.keys() == [FENCE]
    });
}

#[test]
fn hundred_thousand_acquisitions_never_overlap_and_their_tokens_increase() {
    acquisitions_never_overlap(100_000, millis(1));
}

#[test]
fn acquisitions_without_hand_over_never_overlap_and_their_tokens_increase() {
    acquisitions_never_overlap(15_000, Duration::ZERO);
}

#[test]
fn processes_that_are_stopped_again_and_again_never_hold_together() {
    // Often shorter than a stop.
    const TTL: Duration = millis(150);
    let server = RedisServer::start();
    let mut crowd = Crowd::start(&server, TTL, millis(1), 40_000);
    let end = now() + Duration::from_secs(4);
    while now() < end {
        let child = &crowd.children[usize::try_from(fastrand::u64(..4)).unwrap()];
        child.stop();
        thread::sleep(millis(fastrand::u64(..250)));
        child.cont();
        thread::sleep(millis(fastrand::u64(..30)));
    }
    let holds = crowd.holds();
    report(
        "acquisitions of processes that were stopped now and then",
        holds.len(),
    );
    assert_one_at_a_time(&holds);
    drop(crowd);
    drop(Locker::open(&server.url()).unwrap().lock("a").unwrap());
    wait_until("nothing but the counter", PATIENCE, || {
        server.keys() == [FENCE]
    });
}

#[test]
fn processes_that_are_killed_at_random_stall_nobody_for_long() {
    const TTL: Duration = millis(300);
    let server = RedisServer::start();
    let lock = Locker::builder(&server.url()).ttl(TTL).build().unwrap();
    let watch = Stopwatch::start();
    let (mut waits, end) = (Vec::new(), now() + Duration::from_secs(4));
    while now() < end {
        let crowd = Crowd::start(&server, TTL, millis(1), usize::MAX / 2);
        let until = now() + millis(20 + fastrand::u64(..200));
        while now() < until {
            let begun = now();
            drop(lock.lock("a").unwrap());
            waits.push(now() - begun);
        }
        // Killed one by one, in whatever they are at.
        drop(crowd);
    }
    let longest = *waits.iter().max().unwrap();
    report(
        "longest wait while 4 processes after the other were killed",
        longest,
    );
    // One lease of each that died at the same time, at most.
    watch.assert_took(longest, 4 * TTL + millis(250));
    drop(lock.lock("a").unwrap());
    assert_nothing_left(&server);
}
