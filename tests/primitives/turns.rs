//! Who is let in next, on one server, and how long many processes wait that read beside one that writes.

use std::sync::mpsc;
use std::thread;

use crosslock::{LockGuard, Locker, Result};

use super::*;
use support::{Child, RedisServer};

/// Those that want the lock, each on a thread and a locker of its own, in the order in which they were let in.
struct Turns<'a> {
    server: &'a RedisServer,
    told: mpsc::Receiver<(&'static str, LockGuard)>,
    tell: mpsc::Sender<(&'static str, LockGuard)>,
}

impl<'a> Turns<'a> {
    fn on(server: &'a RedisServer) -> Self {
        let (tell, told) = mpsc::channel();
        Turns { server, told, tell }
    }

    /// Waits on a thread, and is in line when this returns.
    fn wait(
        &self,
        who: &'static str,
        lock: Locker,
        take: impl FnOnce(&Locker) -> Result<LockGuard> + Send + 'static,
    ) {
        let in_line = || self.server.query::<u64>(&["HLEN", "{crosslock:n}:waiters"]);
        let before = in_line();
        let tell = self.tell.clone();
        thread::spawn(move || {
            let guard = take(&lock).unwrap();
            // The test may be over.
            let _ = tell.send((who, guard));
        });
        wait_until(who, PATIENCE, || in_line() > before);
    }

    #[track_caller]
    fn assert_next(&self, who: &str) -> LockGuard {
        let next = self.told.recv_timeout(PATIENCE);
        let (next, guard) = next.expect("somebody is let in");
        assert_eq!(next, who);
        guard
    }

    #[track_caller]
    fn assert_nobody(&self) {
        assert!(self.told.recv_timeout(millis(100)).is_err());
    }
}

fn read(lock: &Locker) -> Result<LockGuard> {
    lock.read(NAME)
}

fn write(lock: &Locker) -> Result<LockGuard> {
    lock.write(NAME)
}

#[test]
fn readers_that_came_after_a_waiting_writer_go_after_it_and_together() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let inside = open(&server).read(NAME).unwrap();
    turns.wait("writer", open(&server), write);
    turns.wait("reader", open(&server), read);
    turns.wait("reader", open(&server), read);
    turns.wait("second writer", open(&server), write);
    inside.unlock().unwrap();
    let writer = turns.assert_next("writer");
    turns.assert_nobody();
    writer.unlock().unwrap();
    let readers = [turns.assert_next("reader"), turns.assert_next("reader")];
    turns.assert_nobody();
    drop(readers);
    drop(turns.assert_next("second writer"));
    assert_nothing_left(&server);
}

#[test]
fn writer_that_was_abandoned_changes_no_turns() {
    let server = RedisServer::start();
    abandon(&server, |lock| lock.write(NAME).unwrap());
    let turns = Turns::on(&server);
    let inside = open(&server).read(NAME).unwrap();
    turns.wait("writer", open(&server), write);
    turns.wait("reader", open(&server), read);
    inside.unlock().unwrap();
    let writer = turns.assert_next("writer");
    assert!(writer.was_abandoned());
    writer.unlock().unwrap();
    drop(turns.assert_next("reader"));
    assert_nothing_left(&server);
}

#[test]
fn tokens_of_readers_after_an_abandonment_do_not_outrun_the_clock() {
    let server = RedisServer::start();
    abandon(&server, |lock| lock.write(NAME).unwrap());
    let lock = open(&server);
    let mut last = 0;
    for _ in 0..2_000 {
        last = lock.read(NAME).unwrap().fencing_token();
    }
    server.query::<()>(&["FLUSHALL"]);
    let token = lock.read(NAME).unwrap().fencing_token();
    assert!(token > last, "{token} after {last}");
}

#[test]
fn all_ways_to_hold_a_name_wait_in_one_line() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let permit = |lock: &Locker| lock.semaphore(NAME, 2)?.acquire();
    let inside = open(&server).lock(NAME).unwrap();
    turns.wait("permit", open(&server), permit);
    turns.wait("lock", open(&server), |lock| lock.lock(NAME));
    turns.wait("late permit", open(&server), permit);
    turns.wait("several", open(&server), |lock| lock.lock_all(&["m", NAME]));
    inside.unlock().unwrap();
    let first = turns.assert_next("permit");
    turns.assert_nobody();
    drop(first);
    drop(turns.assert_next("lock"));
    drop(turns.assert_next("late permit"));
    drop(turns.assert_next("several"));
}

const ROLE: &str = "TEST_ROLE";
const FOR_MS: &str = "TEST_FOR_MS";

/// What all tell one another while they are inside, on the server itself.
const READING: &str = "reading";
const WRITING: &str = "writing";

fn start(server: &RedisServer, role: &str, time: Duration) -> Child {
    let (url, time) = (server.url(), time.as_millis().to_string());
    let args = [(URL, &*url), (TTL, "10000"), (ROLE, role), (FOR_MS, &time)];
    Child::spawn("reads or writes", &args)
}

/// How often it was inside, and how long it waited for that at most.
#[track_caller]
fn took(child: &mut Child) -> (u64, Duration) {
    let line = child.wait_for("took", PATIENCE);
    let (turns, longest) = line.split_once(' ').unwrap();
    (turns.parse().unwrap(), millis(longest.parse().unwrap()))
}

#[test]
fn neither_eight_readers_nor_a_writer_wait_for_long() {
    let server = RedisServer::start();
    let time = Duration::from_secs(3);
    let watch = Stopwatch::start();
    let mut readers: Vec<_> = (0..8).map(|_| start(&server, "reads", time)).collect();
    let mut writer = start(&server, "writes", time);
    let children = readers.iter_mut().chain([&mut writer]);
    let (turns, longest): (Vec<_>, Vec<_>) = children.map(took).unzip();
    assert!(turns.iter().all(|turns| *turns >= 20), "{turns:?} turns");
    // A turn of all takes some milliseconds.
    watch.assert_took(*longest.iter().max().unwrap(), millis(250));
    for key in [READING, WRITING] {
        assert_eq!(server.get(key).as_deref(), Some("0"));
        server.query::<()>(&["DEL", key]);
    }
    assert_nothing_left(&server);
}
