//! `zks://`, and certificates by which servers know us.

use super::*;
use crosslock::Error;
use std::thread;
use support::Fault;

/// The error with its causes.
fn shown(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        text += &format!(": {one}");
        cause = one.source();
    }
    text
}

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
        assert_outlasts_ttl(&guard);
        // Dropped, not unlocked: a busy machine may be late with an answer.
        drop(guard);
        waits.join().expect("no panic").verify().expect("verify");
    });
}

/// One thread reads what all others have asked.
#[test]
fn many_threads_share_an_encrypted_connection() {
    const THREADS: usize = 16;
    let server = setup().tls().start();
    let locker = open(&server.url());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let locker = &locker;
            scope.spawn(move || {
                for _ in 0..8 {
                    drop(held_in(locker, &format!("n{number}")));
                    drop(held(locker));
                }
            });
        }
    });
    assert_works(&locker);
}

#[test]
fn session_is_taken_up_over_another_encrypted_connection() {
    let ensemble = setup().tls().proxies().ensemble(3);
    // Each member has an authority of its own: one host is enough to lose connections.
    let locker = open(&ensemble.member(0).url());
    let guard = held(&locker);
    for fault in [Fault::Refuse, Fault::BlackHole] {
        ensemble.member(0).proxy().set(fault);
        thread::sleep(TTL / 5);
        ensemble.member(0).proxy().set(Fault::None);
        assert_outlasts_ttl(&guard);
    }
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
