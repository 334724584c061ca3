//! A server that answers, and refuses to write for a while.

use std::fs;
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
