//! URLs that lead nowhere, or to something else.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use crosslock::{Error, Locker};

use super::*;
use support::{BlackHole, Fault, Proxy, RedisServer};

#[track_caller]
fn refused(url: &str) -> Error {
    Locker::open(url).expect_err(url)
}

#[track_caller]
fn assert_unavailable(url: &str, place: &str) {
    let error = refused(url);
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains(place), "{error}");
}

#[test]
fn databases_are_kept_apart_and_one_that_is_missing_is_told_at_open() {
    let server = RedisServer::start();
    for scheme in ["redis", "valkey"] {
        let url = server.url().replace("redis", scheme);
        let (one, other) = (held(&open(&url)), held(&open(&format!("{url}3"))));
        // Also on a connection that replaces another.
        server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
        one.unlock().unwrap();
        other.unlock().unwrap();
        let text = shown(&refused(&format!("{url}99")));
        assert!(
            text.contains(&format!("{scheme}://{}/99", server.addr())),
            "{text}"
        );
        assert!(text.contains("DB index is out of range"), "{text}");
    }
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
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\xff\xfe\xfd\r\n",
        b"$99999999999999999999\r\n",
        b"*1000000000\r\n",
        b"$-5\r\n",
        b"\r\n",
        b"",
    ] {
        let outcome = Locker::open(&answering(words));
        let error = outcome.expect_err(&words.escape_ascii().to_string());
        assert!(
            matches!(error, Error::Engine { .. } | Error::Unavailable { .. }),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn plain_url_to_a_tls_port_is_told_at_once() {
    let server = RedisServer::builder().tls().start();
    for login in ["", ":secret@"] {
        let error = refused(&format!("redis://{login}127.0.0.1:{}/", server.tls_port()));
        let text = shown(&error);
        assert!(text.contains("has TLS, use rediss://"), "{text}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_url_without_the_feature_is_unsupported() {
    let error = refused("rediss://localhost/");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("`tls`"), "{error}");
}

#[test]
fn unix_socket_of_a_server_that_is_gone_is_unavailable_until_it_is_back() {
    let server = RedisServer::builder().unix_socket().start();
    let url = format!("{}?db=3", server.unix_url());
    let locker = open(&url);
    let guard = held(&locker);
    assert!(held(&open(&server.url())).is_held(), "of another database");
    server.kill();
    guard.unlock().unwrap_err();
    let _ = std::fs::remove_file(server.unix_path());
    assert_unavailable(&url, &server.unix_path().display().to_string());
    let error = locker.try_lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    // Nor are files and directories sockets.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [file.as_path(), dir.path(), &dir.path().join("none/s")] {
        let place = path.display().to_string();
        assert_unavailable(&format!("unix://{place}"), &place);
    }
    server.restart();
    assert_works(&locker);
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

#[test]
fn opening_ends_in_time_where_connecting_or_a_handshake_or_logging_in_hangs() {
    let hole = BlackHole::start();
    let server = RedisServer::builder().tls().start();
    let silent = Proxy::start(server.addr());
    silent.set(Fault::BlackHole);
    for url in [
        hole.url(),
        format!("redis://:secret@{}/", hole.addr()),
        format!("redis://:secret@{}/", silent.addr()),
        format!("{}3", silent.url()),
        #[cfg(feature = "tls")]
        format!(
            "rediss://{}/?ca={}",
            silent.addr(),
            server.ca_file().display()
        ),
    ] {
        let builder = Locker::builder(&url).connect_timeout(millis(300));
        let builder = builder.io_timeout(LONG);
        let error = within(millis(300), || builder.build()).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
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
