//! Hosts that hang, or aren't there.

use crosslock::{Error, Locker};

use super::*;
use support::{BlackHole, Fault, Proxy, RedisServer};

fn assert_opening_is_bounded(url: &str) {
    let builder = Locker::builder(url)
        .connect_timeout(millis(300))
        .io_timeout(LONG);
    let error = within(millis(300), || builder.build()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[test]
fn opening_ends_in_time_where_connecting_hangs() {
    let hole = BlackHole::start();
    assert_opening_is_bounded(&hole.url());
    assert_opening_is_bounded(&format!("redis://:secret@{}/", hole.addr()));
}

#[test]
fn logging_in_ends_in_time_where_the_server_accepts_and_is_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    proxy.set(Fault::BlackHole);
    assert_opening_is_bounded(&proxy.url().replace("//", "//:secret@"));
    assert_opening_is_bounded(&format!("{}3", proxy.url()));
}

#[test]
fn host_that_does_not_exist_is_unavailable_and_named() {
    let builder = Locker::builder("redis://no-such-host.invalid/").connect_timeout(millis(2_000));
    // The lookup may be repeated once.
    let error = within(millis(4_000), || builder.build()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains("no-such-host.invalid"),
        "{error}"
    );
}
