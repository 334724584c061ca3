//! A server that answers, and refuses to write for a while.

use std::fs;
use std::thread;

use crosslock::Locker;

use super::support::{RedisServer, wait_until};
use super::*;

/// Why a server refuses to write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Refusal {
    /// It has fewer replicas than it must have.
    NoReplicas,
    /// It was made a replica.
    ReadOnly,
    /// It couldn't save what it holds.
    Misconf,
}

use Refusal::{Misconf, NoReplicas, ReadOnly};

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
        }
    }

    fn end(self, server: &RedisServer) {
        let words: &[&str] = match self {
            NoReplicas => &["CONFIG", "SET", "min-replicas-to-write", "0"],
            ReadOnly => &["REPLICAOF", "NO", "ONE"],
            Misconf => &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"],
        };
        server.query::<()>(words);
    }

    fn word(self) -> &'static str {
        match self {
            NoReplicas => "NOREPLICAS",
            ReadOnly => "READONLY",
            Misconf => "MISCONF",
        }
    }
}

/// A locker whose leases don't end within a test.
fn slow(server: &RedisServer) -> Locker {
    let builder = Locker::builder(&server.url()).ttl(millis(600_000));
    builder.unavailable_for(PATIENCE).build().unwrap()
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
    for refusal in [NoReplicas, ReadOnly, Misconf] {
        let server = refusal.start();
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
        assert!(!held(&locker).abandoned());
        drop(locker);
        assert_no_clients(&server);
    }
}

#[test]
fn waiter_that_gave_up_while_the_server_refused_leaves_the_line_later() {
    for refusal in [NoReplicas, ReadOnly, Misconf] {
        let server = refusal.start();
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
