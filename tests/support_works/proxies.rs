//! Proxies, and a port that nobody answers at.

use super::*;
use support::{BlackHole, Fault, RawSession, ZooKeeper, wait_until};

#[test]
fn black_hole_swallows_requests_and_hides_ends() {
    let (server, proxy) = server_with_proxy();
    let (mut hit, mut idle, gone) = (Wire::open(&proxy), Wire::open(&proxy), Wire::open(&proxy));
    proxy.set(Fault::BlackHole);
    let mut new = Wire::to(&proxy);
    hit.send(&["SET", "key", "value"]);
    new.send(&["SET", "key", "value"]);
    wait_until("both requests", PATIENCE, || proxy.requests() == 5);
    assert!(hit.is_silent() && new.is_silent());
    assert_eq!(server.get("key"), None);
    drop(gone);
    wait_until("the client to go", PATIENCE, || proxy.connections() == 3);
    assert_eq!(server.connected_clients(), 3);
    server.kill();
    assert!(idle.is_silent());
    proxy.set(Fault::None);
    assert!(hit.is_ended() && new.is_ended() && idle.is_ended());
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
            wire.send(&["INCR", "other"]);
            wait_until("the second", PATIENCE, || server.get("other").is_some());
            assert!(wire.is_silent());
        }
        assert_eq!(proxy.lost_replies(), 1);
        assert_eq!(other.ask(&["INCR", "count"]), ":2");
    }
}

#[test]
fn reply_of_zookeeper_is_lost() {
    const CONNECTION_LOSS: i32 = -4;
    let server = ZooKeeper::setup().proxies().start();
    let proxy = server.proxy();
    let mut session = RawSession::open(proxy.addr(), PATIENCE);
    let before = proxy.requests();
    session.create("/a", "", 0).unwrap();
    assert_eq!(proxy.requests(), before + 1);
    proxy.lose_next_reply("/b", true);
    assert_eq!(session.create("/b", "", 0), Err(CONNECTION_LOSS));
    assert_eq!(proxy.lost_replies(), 1);
    assert_eq!(server.nodes(), ["/a", "/b"]);
}

#[test]
fn connecting_to_a_black_hole_hangs() {
    let hole = BlackHole::start();
    let patience = Duration::from_millis(300);
    let error = TcpStream::connect_timeout(&hole.addr(), patience).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
