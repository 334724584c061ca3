//! A server that answers, and refuses to write for a while.

use std::fs;
use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker};

use super::*;
use support::{RedisServer, wait_until};

/// Why a server refuses to write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    /// It has fewer replicas than it must have.
    NoReplicas,
    /// It was made a replica.
    ReadOnly,
    /// It couldn't save what it holds.
    Misconf,
    /// It has no memory left. It still renews and releases.
    Oom,
}

use Refusal::{Misconf, NoReplicas, Oom, ReadOnly};

/// Servers that will refuse for one of these reasons, each with its reason.
fn servers<const N: usize>(refusals: [Refusal; N]) -> impl Iterator<Item = (Refusal, RedisServer)> {
    let servers = refusals.map(|refusal| (refusal, refusal.start()));
    // Before 7.0 scripts write whatever replicas there are.
    let writes =
        |(refusal, server): &(Refusal, RedisServer)| *refusal == NoReplicas && is_old(server);
    servers.into_iter().filter(move |server| !writes(server))
}

impl Refusal {
    fn start(self) -> RedisServer {
        let builder = RedisServer::builder();
        match self {
            // Only a server that is to save refuses to write when it can't.
            Misconf => builder.config("save", "3600 1").start(),
            _ => builder.start(),
        }
    }

    fn begin(self, server: &RedisServer) {
        match self {
            NoReplicas => server.query(&["CONFIG", "SET", "min-replicas-to-write", "1"]),
            // Nobody listens there, so that it keeps its data.
            ReadOnly => server.query(&["REPLICAOF", "127.0.0.1", "1"]),
            Misconf => {
                fs::create_dir(server.dir().join("dump.rdb")).unwrap();
                server.query::<()>(&["BGSAVE"]);
                wait_until("the save to fail", PATIENCE, || {
                    server.info("rdb_last_bgsave_status").as_deref() == Some("err")
                });
            }
            Oom => server.query(&["CONFIG", "SET", "maxmemory", "1"]),
        }
    }

    fn end(self, server: &RedisServer) {
        let words: &[&str] = match self {
            NoReplicas => &["CONFIG", "SET", "min-replicas-to-write", "0"],
            ReadOnly => &["REPLICAOF", "NO", "ONE"],
            Misconf => &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"],
            Oom => &["CONFIG", "SET", "maxmemory", "0"],
        };
        server.query::<()>(words);
    }

    fn word(self) -> &'static str {
        match self {
            NoReplicas => "NOREPLICAS",
            ReadOnly => "READONLY",
            Misconf => "MISCONF",
            Oom => "OOM",
        }
    }
}

/// A locker whose leases don't end within a test.
fn slow(server: &RedisServer) -> Locker {
    let builder = Locker::builder(&server.url()).ttl(millis(600_000));
    builder.outage_timeout(PATIENCE).build().unwrap()
}

fn refused(server: &RedisServer) -> u64 {
    let failed = |command| server.failed_calls(command) + server.rejected_calls(command);
    failed("evalsha") + failed("eval")
}

/// Waits until some more attempts were refused.
fn wait_for_refusals(server: &RedisServer) {
    let before = refused(server);
    wait_until("attempts to be refused", PATIENCE, || {
        refused(server) > before + 3
    });
}

#[test]
fn release_that_is_refused_for_a_while_is_made_later() {
    for (refusal, server) in servers([NoReplicas, ReadOnly, Misconf]) {
        let locker = slow(&server);
        let (one, two) = (held(&locker), locker.lock("m").unwrap());
        refusal.begin(&server);
        let error = within(RELEASE, || one.unlock()).unwrap_err();
        assert!(shown(&error).contains(refusal.word()), "{}", shown(&error));
        within(RELEASE, || drop(two));
        wait_for_refusals(&server);
        refusal.end(&server);
        wait_until("both to be released", PATIENCE, || {
            server.get(LOCK).is_none() && server.get("{crosslock:m}").is_none()
        });
        assert_released(&server);
        assert!(!held(&locker).was_abandoned());
        drop(locker);
        assert_no_clients(&server);
    }
}

#[test]
fn waiter_that_gave_up_while_the_server_refused_leaves_the_line_later() {
    for (refusal, server) in servers([NoReplicas, ReadOnly, Misconf]) {
        let (locker, other) = (slow(&server), slow(&server));
        let guard = held(&locker);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| other.try_lock_for(NAME, millis(400)));
            wait_for_line(&server, 1);
            refusal.begin(&server);
            assert!(!matches!(waiter.join().unwrap(), Ok(Some(_))));
        });
        wait_for_refusals(&server);
        refusal.end(&server);
        wait_until("it to leave the line", PATIENCE, || {
            server.query::<u64>(&["LLEN", QUEUE]) == 0
        });
        guard.unlock().unwrap();
        assert_released(&server);
    }
}

#[test]
fn calls_ride_over_a_server_that_refuses_to_write_for_a_while() {
    for (refusal, server) in servers([NoReplicas, ReadOnly, Misconf, Oom]) {
        let (locker, holder) = (slow(&server), held(&slow(&server)));
        // It asks every second.
        let builder = Locker::builder(&server.url()).ttl(millis(3_000));
        let asking = builder.outage_timeout(PATIENCE).build().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| asking.lock(NAME));
            wait_for_inbox(&server);
            refusal.begin(&server);
            let calls = [
                scope.spawn(|| locker.lock("l")),
                scope.spawn(|| Ok(locker.try_lock_for("m", PATIENCE)?.unwrap())),
            ];
            wait_for_refusals(&server);
            let is_over = calls.iter().any(|call| call.is_finished());
            assert!(!is_over && !waiter.is_finished(), "{refusal:?}");
            refusal.end(&server);
            holder.unlock().unwrap();
            let next = waiter.join().unwrap().unwrap();
            assert!(!next.was_abandoned());
            next.unlock().unwrap();
            for call in calls {
                call.join().unwrap().unwrap().unlock().unwrap();
            }
        });
        assert_released(&server);
    }
}

#[test]
fn error_names_why_a_server_refuses_to_write() {
    for (refusal, server) in servers([NoReplicas, ReadOnly, Misconf, Oom]) {
        let patience = millis(1_000);
        let builder = Locker::builder(&server.url()).outage_timeout(patience);
        let locker = builder.build().unwrap();
        refusal.begin(&server);
        let start = Instant::now();
        for outcome in [
            locker.lock(NAME).map(Some),
            locker.try_lock(NAME),
            locker.try_lock_for(NAME, patience),
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            assert!(shown(&error).contains(refusal.word()), "{}", shown(&error));
        }
        assert!(start.elapsed() >= patience, "lock gave up at once");
        refusal.end(&server);
        assert_works(&locker);
    }
}

#[test]
fn guard_survives_a_server_that_refuses_to_write_for_less_than_the_ttl() {
    for (refusal, server) in servers([NoReplicas, ReadOnly, Misconf]) {
        let builder = Locker::builder(&server.url()).ttl(millis(8_000));
        let locker = builder.renew_every(millis(100)).build().unwrap();
        let guard = held(&locker);
        refusal.begin(&server);
        wait_for_refusals(&server);
        assert!(guard.is_held());
        refusal.end(&server);
        wait_for_renewal(&guard);
        guard.unlock().unwrap();
        assert_released(&server);
    }
}
