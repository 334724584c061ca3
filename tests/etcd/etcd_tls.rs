//! `etcds://`, and certificates by which servers know us.

#![cfg(feature = "tls")]

use std::fs;
use std::thread;

use super::*;
use support::Etcd;

#[test]
fn server_that_wants_a_certificate_gets_it() {
    let [server, other] = [(); 2].map(|()| Etcd::setup().client_certificates().start());
    let url = server.url();
    assert_works(&open(&url));
    let (without, own) = url.split_once("&cert=").unwrap();
    let theirs = other.url().split_once("&cert=").unwrap().1.to_owned();
    let error = Locker::open(&url.replace(own, &theirs)).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let error = Locker::open(without).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(&error);
    assert!(text.contains("?cert=FILE&key=FILE"), "{text}");
}

/// Where users have to log in, the gateway refuses certificates that name somebody.
#[test]
fn certificate_with_a_name_is_explained_where_users_log_in() {
    let server = Etcd::setup().client_certificates().login().start();
    let url = server.url();
    let error = Locker::open(&url).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(&error);
    assert!(text.contains("certificate without a CommonName"), "{text}");
    assert_works(&open(&url.replace("client.", "nameless.")));
}

#[test]
fn certificate_and_key_have_to_be_there_and_belong_together() {
    let server = Etcd::setup().client_certificates().start();
    let dir = server.dir();
    let (url, _) = server
        .url()
        .split_once("&cert=")
        .map(|(url, _)| (url.to_owned(), ()))
        .unwrap();
    let empty = dir.join("empty.pem");
    fs::write(&empty, "").unwrap();
    for (chain, key, named) in [
        ("missing.pem", "client.key", "missing.pem"),
        ("empty.pem", "client.key", "empty.pem"),
        ("client.pem", "missing.key", "missing.key"),
        ("client.pem", "client.pem", "key="),
        ("client.pem", "server.key", "client.pem"),
    ] {
        let [chain, key] = [chain, key].map(|name| dir.join(name).display().to_string());
        let error = Locker::open(&format!("{url}&cert={chain}&key={key}")).unwrap_err();
        assert!(matches!(error, Error::InvalidUrl { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn encrypted_and_plain_ports_are_told_apart() {
    let server = Etcd::setup().tls().start();
    assert_works(&open(&server.url()));
    let plain = format!("etcd://{}/", server.addr());
    let error = Locker::open(&plain).unwrap_err();
    assert!(shown(&error).contains("use etcds://"), "{}", shown(&error));
    let ca = server.ca_file();
    let encrypted = format!("etcds://{}/?ca={}", server.own_addr(), ca.display());
    let error = Locker::open(&encrypted).unwrap_err();
    assert!(shown(&error).contains("use etcd://"), "{}", shown(&error));
}

/// To connect to a host that hangs takes all the time that it is given.
#[test]
fn lock_without_a_timeout_ends_where_no_host_lets_in() {
    let server = Etcd::setup().tls().start();
    let (port, ca) = (server.addr().port(), server.ca_file());
    let url = format!(
        "etcds://127.0.0.1:{port},localhost:{port}/?ca={}",
        ca.display()
    );
    let builder = Locker::builder(&url).connect_timeout(millis(300));
    let builder = builder.io_timeout(millis(300));
    let locker = builder
        .outage_timeout(millis(600))
        .build()
        .expect("it opens");
    assert_works(&locker);
    // Connections end, and no other comes about.
    server.restart();
    server.stop();
    // Not scoped: one that never ends would keep the test from failing.
    let asks = thread::spawn(move || locker.lock(NAME).map(drop));
    wait_until("an answer", PATIENCE, || asks.is_finished());
    let answer = asks.join().expect("no panic");
    support::assert_like!(answer, Err(Error::Unavailable { .. }));
}
