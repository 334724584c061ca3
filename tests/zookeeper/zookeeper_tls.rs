//! `zks://`, and certificates by which servers know us.

use super::*;
use crosslock::Error;
use std::thread;

#[test]
fn locks_are_held_and_waited_for_over_tls() {
    let server = setup().tls().start();
    let (locker, other) = (open(&server.url()), open(&server.url()));
    let guard = held(&locker);
    thread::scope(|scope| {
        let waits = scope.spawn(|| held(&other));
        wait_until("the waiter's node", PATIENCE, || {
            let seen = locker.inspect(NAME).expect("inspect");
            seen.waiters.len() == 1
        });
        // For longer than its lease would last by itself.
        thread::sleep(TTL * 5 / 4);
        guard.verify().expect("verify");
        // Dropped, not unlocked: a busy machine may be late with an answer.
        drop(guard);
        waits.join().expect("no panic").verify().expect("verify");
    });
}

#[test]
fn server_that_wants_a_certificate_gets_it() {
    let [server, stranger] = [(); 2].map(|()| setup().client_certificates().start());
    let url = server.url();
    let (without, own) = url.split_once("&cert=").expect("a certificate");
    assert_works(&open(&url));
    let theirs = stranger.url();
    let (_, theirs) = theirs.split_once("&cert=").expect("a certificate");
    for url in [without.to_owned(), url.replace(own, theirs)] {
        let error = builder(&url).build().expect_err("it isn't trusted");
        assert!(matches!(error, Error::Denied { .. }), "{}", shown(&error));
        assert!(
            shown(&error).contains("?cert=FILE&key=FILE"),
            "{}",
            shown(&error)
        );
    }
}

#[test]
fn encrypted_and_plain_ports_are_told_apart() {
    let server = setup().tls().start();
    let plain = builder(&format!("zk://{}/", server.addr())).build();
    let plain = shown(&plain.expect_err("it has TLS"));
    assert!(plain.contains("zks://"), "{plain}");
    let url = server.url();
    let (_, ca) = url.split_once('?').expect("a CA");
    let url = format!("zks://{}/?{ca}", server.own_addr());
    let encrypted = shown(&builder(&url).build().expect_err("it has no TLS"));
    assert!(encrypted.contains("use zk://"), "{encrypted}");
    let untrusted = builder(&format!("zks://{}/", server.addr())).build();
    let untrusted = shown(&untrusted.expect_err("nobody knows its authority"));
    assert!(untrusted.contains("?ca=FILE"), "{untrusted}");
}
