//! URLs that lead nowhere, or to something else.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crosslock::{Error, Locker};

use super::*;
use support::RedisServer;

#[track_caller]
fn refused(url: &str) -> Error {
    within(millis(500), || Locker::open(url)).expect_err(url)
}

#[track_caller]
fn assert_unavailable(url: &str, place: &str) {
    let error = refused(url);
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains(place), "{error}");
}

#[test]
fn parts_of_a_url_that_mean_nothing_are_named() {
    let server = RedisServer::start();
    let url = server.url();
    for (url, part) in [
        (format!("{url}?timeout=3"), "`timeout`"),
        (format!("{url}0?db=1"), "`db`"),
        (format!("{url}x"), "database"),
        (format!("{url}-1"), "database"),
        (format!("{url}1/2"), "database"),
        (format!("{url}99999999999999"), "database"),
        (format!("{url}#0"), "#"),
        ("redis://127.0.0.1:port/".to_owned(), "port"),
        ("redis://127.0.0.1:99999/".to_owned(), "port"),
        ("redis:///".to_owned(), "host"),
        ("redis://a:1,b:2/".to_owned(), "several addresses"),
        ("redis://u:p@a,b/".to_owned(), "several addresses"),
    ] {
        let error = refused(&url);
        assert!(matches!(error, Error::InvalidUrl { .. }), "{url}: {error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(server.connected_clients(), 0);
}

#[test]
fn scheme_may_be_that_of_valkey() {
    let server = RedisServer::start();
    let url = server.url().replace("redis://", "valkey://");
    assert_works(&open(&url));
    let error = refused(&format!("{url}99"));
    assert!(error.to_string().contains("valkey://127"), "{error}");
    assert_no_clients(&server);
}

#[test]
fn databases_are_kept_apart() {
    let server = RedisServer::start();
    let zero = open(&server.url());
    let three = open(&format!("{}3", server.url()));
    let (one, other) = (held(&zero), held(&three));
    // Also on a connection that replaces another.
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    one.verify().unwrap();
    other.verify().unwrap();
    one.unlock().unwrap();
    other.unlock().unwrap();
    assert_released(&server);
}

#[test]
fn database_that_the_server_does_not_have_is_told_at_open() {
    let server = RedisServer::start();
    let error = refused(&format!("{}99", server.url()));
    assert!(
        matches!(error, Error::Engine { .. } | Error::InvalidUrl { .. }),
        "{error}"
    );
    let text = shown(&error);
    assert!(error.to_string().contains("/99"), "{text}");
    assert!(text.contains("DB index is out of range"), "{text}");
    assert_no_clients(&server);
}

/// Something that answers whatever it reads by `words`, and hangs up.
fn answering(words: &'static [u8]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind a free port");
    let url = format!("redis://{}/", listener.local_addr().expect("the port"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(words);
        }
    });
    url
}

#[test]
fn something_that_is_no_redis_server_is_told_at_once() {
    for words in [
        &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>"[..],
        b"220 mail.example.org ESMTP\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"\xff\xfe\xfd\r\n",
        b"$99999999999999999999\r\n",
        b"*1000000000\r\n",
        b"$-5\r\n",
        b"\r\n",
        b"",
    ] {
        let outcome = within(millis(500), || Locker::open(&answering(words)));
        let error = outcome.expect_err(&words.escape_ascii().to_string());
        assert!(
            matches!(error, Error::Engine { .. } | Error::Unavailable { .. }),
            "{words:?}: {error}"
        );
    }
}

/// Answers with `start`, and then with `then` again and again; gives its URL, and how many bytes it got rid of.
fn answering_without_end(start: &str, then: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let (start, then) = (start.to_owned(), then.repeat(10_000));
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.write_all(start.as_bytes());
        while peer.write_all(then.as_bytes()).is_ok() {
            counter.fetch_add(then.len(), Ordering::SeqCst);
        }
    });
    (url, sent)
}

#[test]
fn answer_without_end_is_given_up_before_it_fills_the_memory() {
    for (start, then) in [
        ("+", "x"),
        ("$9000000000\r\n", "x"),
        ("*1000000000\r\n", ":1\r\n"),
        ("", "*1\r\n"),
    ] {
        let (url, sent) = answering_without_end(start, then);
        let error = Locker::open(&url).expect_err(start);
        assert!(matches!(error, Error::Engine { .. }), "{start:?}: {error}");
        // The sockets on both sides hold some of it.
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent < 64 << 20, "{start:?}: {sent} bytes");
    }
}

#[test]
fn plain_url_to_a_tls_port_is_told_at_once() {
    let server = RedisServer::builder().tls().start();
    for login in ["", ":secret@"] {
        let error = refused(&format!("redis://{login}127.0.0.1:{}/", server.tls_port()));
        assert!(
            matches!(error, Error::Engine { .. } | Error::Unavailable { .. }),
            "{error}"
        );
        let text = shown(&error);
        assert!(text.contains("has TLS, use rediss://"), "{text}");
    }
    assert_no_clients(&server);
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_url_without_the_feature_is_unsupported() {
    let error = refused("rediss://localhost/");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("`tls`"), "{error}");
}

#[test]
fn port_where_nothing_listens_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let place = listener.local_addr().unwrap().to_string();
    drop(listener);
    assert_unavailable(&format!("redis://{place}/"), &place);
}

// Unix sockets

#[test]
fn unix_socket_carries_the_whole_of_a_locks_life() {
    let server = RedisServer::builder().unix_socket().start();
    let builder = Locker::builder(&server.unix_url()).ttl(millis(3_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    let guard = held(&locker);
    assert!(open(&server.url()).try_lock(NAME).unwrap().is_none());
    wait_for_renewal(&guard);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(&server);
    let three = open(&format!("{}?db=3", server.unix_url()));
    assert_works(&three);
    drop((locker, three));
    assert_no_clients(&server);
}

#[test]
fn unix_socket_that_is_gone_is_unavailable() {
    let server = RedisServer::builder().unix_socket().start();
    let path = server.unix_path();
    let locker = open(&server.unix_url());
    std::fs::remove_file(&path).unwrap();
    assert_unavailable(&server.unix_url(), &path.display().to_string());
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = within(millis(100), || locker.try_lock(NAME)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let timeout = millis(150);
    let error = within(timeout, || locker.try_lock_for(NAME, timeout)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[test]
fn unix_socket_of_a_dead_server_is_unavailable_until_it_is_back() {
    let server = RedisServer::builder().unix_socket().start();
    let locker = open(&server.unix_url());
    let guard = held(&locker);
    server.kill();
    within(RELEASE, || guard.unlock()).unwrap_err();
    let error = within(millis(100), || locker.try_lock(NAME)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    server.restart();
    assert_works(&locker);
}

#[test]
fn path_that_is_no_unix_socket_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [file.as_path(), dir.path(), &dir.path().join("none/s")] {
        let place = path.display().to_string();
        assert_unavailable(&format!("unix://{place}"), &place);
    }
}

#[test]
fn unix_socket_that_the_user_may_not_use_is_denied() {
    use rustix::process::{Uid, geteuid};
    use std::os::unix::fs::PermissionsExt;

    let server = RedisServer::builder().unix_socket().start();
    let nobody = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(server.unix_path(), nobody).unwrap();
    let url = server.unix_url();
    let body = move || {
        // Nothing is forbidden to root. The id is one of this thread alone.
        if geteuid().is_root() {
            rustix::thread::set_thread_uid(Uid::from_raw(65_534)).expect("become nobody");
        }
        Locker::open(&url).map(drop)
    };
    let error = thread::spawn(body).join().unwrap().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(error.to_string().contains("redis.sock"), "{error}");
}
