//! Who is let in next, on one server.

use std::sync::mpsc;
use std::thread;

use crosslock::{LockGuard, Locker, Prefer, Result};

use super::*;
use support::RedisServer;

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

    /// Who was let in next.
    #[track_caller]
    fn next(&self) -> (&'static str, LockGuard) {
        self.told
            .recv_timeout(PATIENCE)
            .expect("somebody is let in")
    }

    #[track_caller]
    fn assert_next(&self, who: &str) -> LockGuard {
        let (next, guard) = self.next();
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

fn preferring(server: &RedisServer, prefer: Prefer) -> Locker {
    let builder = Locker::builder(&server.url()).prefer(prefer);
    builder.build().unwrap()
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
fn readers_that_are_preferred_pass_writers_that_wait() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let open = || preferring(&server, Prefer::Readers);
    let mut inside = open().read(NAME).unwrap();
    turns.wait("writer", open(), write);
    for _ in 0..50 {
        // The next one comes before the one before it leaves: while that goes on the writer starves.
        let next = open().read(NAME).unwrap();
        std::mem::replace(&mut inside, next).unlock().unwrap();
    }
    turns.assert_nobody();
    inside.unlock().unwrap();
    let writer = turns.assert_next("writer");
    turns.wait("second writer", open(), write);
    turns.wait("reader", open(), read);
    writer.unlock().unwrap();
    let reader = turns.assert_next("reader");
    turns.assert_nobody();
    reader.unlock().unwrap();
    drop(turns.assert_next("second writer"));
    assert_nothing_left(&server);
}

#[test]
fn writers_that_are_preferred_pass_readers_that_wait() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let open = || preferring(&server, Prefer::Writers);
    let mut inside = open().write(NAME).unwrap();
    turns.wait("reader", open(), read);
    turns.wait("reader", open(), read);
    for _ in 0..20 {
        turns.wait("writer", open(), write);
        inside.unlock().unwrap();
        inside = turns.assert_next("writer");
    }
    turns.assert_nobody();
    inside.unlock().unwrap();
    let readers = [turns.assert_next("reader"), turns.assert_next("reader")];
    drop(readers);
    assert_nothing_left(&server);
}

#[test]
fn neither_starves_where_nobody_is_preferred() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let open = || preferring(&server, Prefer::Fair);
    let mut inside = open().write(NAME).unwrap();
    for _ in 0..10 {
        // Always one more of each than there is room for.
        turns.wait("writer", open(), write);
        turns.wait("reader", open(), read);
        turns.wait("reader", open(), read);
        inside.unlock().unwrap();
        let readers = [turns.assert_next("reader"), turns.assert_next("reader")];
        turns.wait("late reader", open(), read);
        drop(readers);
        inside = turns.assert_next("writer");
        turns.wait("writer", open(), write);
        inside.unlock().unwrap();
        drop(turns.assert_next("late reader"));
        inside = turns.assert_next("writer");
    }
    drop(inside);
    assert_nothing_left(&server);
}

#[test]
fn large_request_is_served_in_its_turn() {
    let server = RedisServer::start();
    let turns = Turns::on(&server);
    let permits = |count| {
        move |lock: &Locker| {
            let semaphore = lock.semaphore(NAME, 3)?;
            semaphore.acquire_many(count)
        }
    };
    let first = permits(1)(&open(&server)).unwrap();
    let second = permits(1)(&open(&server)).unwrap();
    turns.wait("large", open(&server), permits(3));
    turns.wait("small", open(&server), permits(1));
    turns.wait("middle", open(&server), permits(2));
    turns.wait("last", open(&server), permits(1));
    first.unlock().unwrap();
    turns.assert_nobody();
    second.unlock().unwrap();
    let large = turns.assert_next("large");
    turns.assert_nobody();
    large.unlock().unwrap();
    let (one, two) = (turns.next(), turns.next());
    let mut names = [one.0, two.0];
    names.sort_unstable();
    assert_eq!(names, ["middle", "small"]);
    turns.assert_nobody();
    drop((one, two));
    drop(turns.assert_next("last"));
    assert_nothing_left(&server);
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
