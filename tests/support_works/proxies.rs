//! Proxies, and a port that nobody answers at.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use redis::cmd;

use super::*;
use support::{BlackHole, Child, Fault, wait_until};

#[test]
fn proxy_passes_everything() {
    let (server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    let value = "x".repeat(1_000_000);
    assert_eq!(wire.ask(&["SET", "key", &value]), "+OK");
    assert_eq!(wire.ask(&["GET", "key"]), "$1000000");
    assert_eq!(wire.line(), value);
    assert_eq!(server.get("key"), Some(value));
    assert_eq!((proxy.requests(), proxy.lost_replies()), (2, 0));
    assert_eq!((proxy.accepted(), proxy.connections()), (1, 1));
    drop(wire);
    wait_until("the proxy to hang up", PATIENCE, || {
        proxy.connections() == 0 && server.connected_clients() == 0
    });
    redis::Client::open(proxy.url())
        .unwrap()
        .get_connection()
        .unwrap();
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn proxy_ends_connections_of_a_dead_server() {
    let (server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    server.kill();
    assert!(wire.is_ended());
    assert!(Wire::to(&proxy).is_ended());
    server.restart();
    assert_eq!(Wire::to(&proxy).ask(&["PING"]), "+PONG");
}

#[test]
fn delay_holds_back_both_directions() {
    let (_server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    proxy.set(Fault::Delay(Duration::from_millis(50)));
    let start = Instant::now();
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[test]
fn delay_of_messages_lets_replies_pass() {
    let (server, proxy) = server_with_proxy();
    let (mut asks, mut hears) = (Wire::to(&proxy), Wire::to(&proxy));
    assert_eq!(hears.ask(&["SUBSCRIBE", "news"]), "*3");
    for _ in 0..5 {
        hears.line();
    }
    proxy.set(Fault::DelayMessages(PATIENCE));
    server.query::<()>(&["PUBLISH", "news", "late"]);
    assert_eq!(asks.ask(&["PING"]), "+PONG");
    assert!(hears.is_silent());
    proxy.set(Fault::None);
    assert_eq!(hears.line(), "*3");
}

#[test]
fn delay_ends_when_it_is_lifted() {
    let (_server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    proxy.set(Fault::Delay(PATIENCE * 100));
    wire.send(&["PING"]);
    assert!(wire.is_silent());
    proxy.set(Fault::None);
    assert_eq!(wire.line(), "+PONG");
}

#[test]
fn refusal_closes_open_and_new_connections() {
    let (_server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    proxy.set(Fault::Refuse);
    assert!(wire.is_ended());
    assert!(Wire::to(&proxy).is_ended());
    wait_until("the proxy to hang up", PATIENCE, || {
        proxy.connections() == 0
    });
    proxy.set(Fault::None);
    assert_eq!(Wire::to(&proxy).ask(&["PING"]), "+PONG");
}

#[test]
fn black_hole_swallows_and_tells_nothing() {
    let (server, proxy) = server_with_proxy();
    let (mut hit, mut idle) = (Wire::to(&proxy), Wire::to(&proxy));
    assert_eq!(hit.ask(&["PING"]), "+PONG");
    assert_eq!(idle.ask(&["PING"]), "+PONG");
    proxy.set(Fault::BlackHole);
    let mut new = Wire::to(&proxy);
    hit.send(&["SET", "key", "value"]);
    new.send(&["SET", "key", "value"]);
    wait_until("both requests", PATIENCE, || proxy.requests() == 4);
    assert!(hit.is_silent() && new.is_silent());
    assert_eq!(server.get("key"), None);
    assert_eq!(server.connected_clients(), 2);

    proxy.set(Fault::None);
    assert!(hit.is_ended() && new.is_ended());
    assert_eq!(idle.ask(&["PING"]), "+PONG");
}

#[test]
fn black_hole_hides_an_end() {
    let (server, proxy) = server_with_proxy();
    let (mut left, mut gone) = (Wire::to(&proxy), Wire::to(&proxy));
    assert_eq!(left.ask(&["PING"]), "+PONG");
    assert_eq!(gone.ask(&["PING"]), "+PONG");
    proxy.set(Fault::BlackHole);
    drop(gone);
    wait_until("the client to go", PATIENCE, || proxy.connections() == 1);
    assert_eq!(server.connected_clients(), 2);
    server.kill();
    assert!(left.is_silent());
    proxy.set(Fault::None);
    assert!(left.is_ended());
}

#[test]
fn truncated_reply_is_followed_by_an_end() {
    let (server, proxy) = server_with_proxy();
    server.query::<()>(&["SET", "key", "0123456789"]);
    let mut wire = Wire::to(&proxy);
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    proxy.set(Fault::Truncate(9));
    assert_eq!(wire.ask(&["GET", "key"]), "$10");
    assert_eq!(wire.line(), "0123");
    assert!(wire.is_ended());
    assert_eq!(Wire::to(&proxy).ask(&["GET", "key"]), "$10");
}

#[test]
fn half_closed_connection_carries_requests_only() {
    let (server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    proxy.set(Fault::HalfClose);
    assert!(wire.is_ended());
    wire.send(&["SET", "key", "value"]);
    wait_until("the request", PATIENCE, || server.get("key").is_some());
    let mut new = Wire::to(&proxy);
    assert!(new.is_ended());
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn lost_reply_is_of_an_executed_request() {
    let (server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    proxy.set(Fault::LoseReply { then_close: false });
    wire.send(&["SET", "key", "value"]);
    wait_until("the reply", PATIENCE, || proxy.lost_replies() == 1);
    assert_eq!(server.get("key").as_deref(), Some("value"));
    assert!(wire.is_silent());
    wire.send(&["INCR", "count"]);
    wait_until("the reply", PATIENCE, || proxy.lost_replies() == 2);
    assert_eq!(server.get("count").as_deref(), Some("1"));
    proxy.set(Fault::None);
    assert!(wire.is_ended());
}

#[test]
fn connection_is_closed_only_after_the_lost_reply() {
    let (server, proxy) = server_with_proxy();
    proxy.set(Fault::LoseReply { then_close: true });
    let mut wire = Wire::to(&proxy);
    wire.send(&["SET", "key", "value"]);
    assert!(wire.is_ended());
    assert_eq!(server.get("key").as_deref(), Some("value"));
    assert_eq!(proxy.lost_replies(), 1);
}

#[test]
fn only_the_matching_reply_is_lost() {
    for then_close in [false, true] {
        let (server, proxy) = server_with_proxy();
        let (mut wire, mut other) = (Wire::to(&proxy), Wire::to(&proxy));
        proxy.lose_next_reply("incr", then_close);
        assert_eq!(other.ask(&["PING"]), "+PONG");
        // In one write, so that the replies to both come together.
        let mut both = cmd("PING").get_packed_command();
        both.extend(cmd("INCR").arg("count").get_packed_command());
        wire.0.write_all(&both).unwrap();
        assert_eq!(wire.line(), "+PONG");
        if then_close {
            assert!(wire.is_ended());
        } else {
            assert!(wire.is_silent());
            wire.send(&["INCR", "count"]);
            wait_until("the second", PATIENCE, || {
                server.get("count").as_deref() == Some("2")
            });
            assert!(wire.is_silent());
        }
        assert_eq!(proxy.lost_replies(), 1);
        let so_far = if then_close { ":2" } else { ":3" };
        assert_eq!(other.ask(&["INCR", "count"]), so_far);
        assert_eq!(Wire::to(&proxy).ask(&["PING"]), "+PONG");
        assert_eq!(server.command_calls("incr"), if then_close { 2 } else { 3 });
    }
}

#[test]
fn lost_reply_is_taken_back() {
    let (_server, proxy) = server_with_proxy();
    proxy.lose_next_reply("ping", true);
    proxy.set(Fault::None);
    assert_eq!(Wire::to(&proxy).ask(&["PING"]), "+PONG");
}

#[test]
fn trickle_passes_single_bytes() {
    let (_server, proxy) = server_with_proxy();
    let mut wire = Wire::to(&proxy);
    let every = Duration::from_millis(10);
    proxy.set(Fault::Trickle { every });
    let start = Instant::now();
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    assert!(start.elapsed() >= every * 7);
}

#[test]
fn proxy_drops_without_leaks_whatever_hangs() {
    let mut child = Child::spawn("has hanging proxies", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn connecting_to_a_black_hole_hangs() {
    let hole = BlackHole::start();
    let patience = Duration::from_millis(300);
    let error = TcpStream::connect_timeout(&hole.addr(), patience).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
