//! Servers that are no place for locks: what they are is told when they are opened.

use crosslock::{Error, Locker};

use super::*;
use support::{Proxy, RedisServer, wait_until};

#[track_caller]
fn refused(url: &str, words: [&str; 2]) -> Error {
    let error = Locker::open(url).unwrap_err();
    let text = shown(&error);
    for word in words {
        assert!(text.contains(word), "{word:?} isn't in {text}");
    }
    error
}

#[test]
fn node_of_a_cluster_is_told_at_open() {
    let server = RedisServer::builder()
        .config("cluster-enabled", "yes")
        .start();
    let url = format!("redis+cluster://{}", server.addr());
    let error = refused(
        &server.url(),
        ["a node of a cluster", &format!("use {url}")],
    );
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_no_clients(&server);
}

#[test]
fn sentinel_is_told_at_open() {
    if is_old(&RedisServer::start()) {
        // Its Sentinel doesn't know what the tests ask of a server that starts.
        return;
    }
    let primary = RedisServer::start();
    let sentinel = RedisServer::builder().sentinel().start();
    let url = format!("redis+sentinel://{}", sentinel.addr());
    let monitor = |name: &str| {
        let port = primary.port().to_string();
        let ask = ["SENTINEL", "MONITOR", name, "127.0.0.1", &port, "1"];
        sentinel.query::<()>(&ask);
    };
    for (words, next) in [("/NAME, with a name that", "one"), ("/one", "two")] {
        let error = refused(
            &sentinel.url(),
            ["a Sentinel", &format!("use {url}{words}")],
        );
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        monitor(next);
    }
    refused(&sentinel.url(), ["/NAME, where NAME is one of", "two"]);
}

#[test]
fn replica_is_told_at_open_until_it_is_promoted() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(primary.port()).start();
    wait_until("the replica to follow", PATIENCE, || {
        replica.info("master_link_status").as_deref() == Some("up")
    });
    let url = format!("use {}0", primary.url());
    let error = refused(&replica.url(), ["which grants no locks", &url]);
    // It may be the primary soon.
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    replica.query::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert_works(&open(&replica.url()));
    assert_no_clients(&replica);
}

/// As KeyDB answers HELLO: `src/networking.cpp` of its version 6.3.
const ACTIVE_REPLICA: &str = "*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n\
                              $14\r\nactive-replica\r\n";

#[test]
fn active_replica_is_told_at_open() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    proxy.replace_next_reply("HELLO", ACTIVE_REPLICA);
    let words = ["a KeyDB with active-replica", "use a server"];
    let error = refused(&proxy.url(), words);
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_works(&open(&proxy.url()));
}
