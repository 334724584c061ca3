//! A server that answers, and refuses to write, or to accept anybody else.

use std::fs;
use std::time::Instant;

use crosslock::{Error, Locker};

use super::*;
use support::{RedisServer, wait_until};

/// Which server refuses to write, by which word, how it comes to that, and how it ends.
const REFUSALS: [(&str, &[&str], &[&str]); 4] = [
    // Before 7.0 scripts write whatever replicas there are.
    (
        "NOREPLICAS",
        &["CONFIG", "SET", "min-replicas-to-write", "1"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
    ),
    // Nobody listens there, so that it keeps its data.
    (
        "READONLY",
        &["REPLICAOF", "127.0.0.1", "1"],
        &["REPLICAOF", "NO", "ONE"],
    ),
    // Only a server that is to save refuses to write when it can't.
    (
        "MISCONF",
        &["BGSAVE"],
        &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"],
    ),
    // It still renews and releases.
    (
        "OOM",
        &["CONFIG", "SET", "maxmemory", "1"],
        &["CONFIG", "SET", "maxmemory", "0"],
    ),
];

#[test]
fn error_names_why_a_server_refuses_to_write() {
    for (word, begin, end) in REFUSALS {
        let server = RedisServer::builder().config("save", "3600 1").start();
        if word == "NOREPLICAS" && is_old(&server) {
            continue;
        }
        let patience = millis(1_000);
        let builder = Locker::builder(&server.url()).outage_timeout(patience);
        let locker = builder.build().unwrap();
        fs::create_dir(server.dir().join("dump.rdb")).unwrap();
        server.query::<()>(begin);
        wait_until("a save to fail", PATIENCE, || {
            let status = server.info("rdb_last_bgsave_status");
            word != "MISCONF" || status.as_deref() == Some("err")
        });
        let start = Instant::now();
        for outcome in [
            locker.lock(NAME).map(Some),
            locker.try_lock(NAME),
            locker.try_lock_for(NAME, patience),
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            assert!(shown(&error).contains(word), "{}", shown(&error));
        }
        assert!(start.elapsed() >= patience, "lock gave up at once");
        server.query::<()>(end);
        assert_works(&locker);
    }
}

#[test]
fn server_that_accepts_nobody_else_is_told_as_it_is() {
    let server = RedisServer::builder().config("maxclients", "1").start();
    let error = {
        let _only = server.connection();
        Locker::open(&server.url()).unwrap_err()
    };
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(shown(&error).contains("max number of clients"), "{error}");
    wait_until("a free place", PATIENCE, || {
        Locker::open(&server.url()).is_ok()
    });
}
