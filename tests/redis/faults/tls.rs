//! `rediss://`, and who is to be trusted.

#![cfg(feature = "tls")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crosslock::{Error, Locker};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::*;
use support::RedisServer;

fn url(server: &RedisServer, host: &str, ca: &Path) -> String {
    format!("rediss://{host}:{}/?ca={}", server.tls_port(), ca.display())
}

#[test]
fn connection_is_encrypted_and_replaced_by_another() {
    let server = RedisServer::builder().tls().password("secret").start();
    for host in ["localhost", "127.0.0.1"] {
        let url = url(&server, &format!(":secret@{host}"), &server.ca_file());
        let locker = open(&url.replace("rediss://", "valkeys://"));
        assert_works(&locker);
        server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
        assert_works(&locker);
    }
    assert_no_clients(&server);
}

#[test]
fn server_that_asks_for_a_certificate_is_shown_one() {
    let start = || {
        let builder = RedisServer::builder().tls();
        builder.config("tls-auth-clients", "yes").start()
    };
    let (server, other) = (start(), start());
    let bare = url(&server, "localhost", &server.ca_file());
    let with = |dir: &Path| {
        format!(
            "{bare}&cert={0}/client.pem&key={0}/client.key",
            dir.display()
        )
    };
    let own = with(server.dir());
    // Also the inbox, and what a session that is resumed shows.
    thread::scope(|scope| {
        let guard = held(&open(&own));
        let waiter = scope.spawn(|| open(&own).lock(NAME).unwrap().unlock().unwrap());
        wait_for_inbox(&server);
        guard.unlock().unwrap();
        waiter.join().unwrap();
    });
    // Redis hangs up, and doesn't say why.
    let text = shown(&Locker::open(&bare).unwrap_err());
    assert!(text.contains("?cert=FILE&key=FILE"), "{text}");
    Locker::open(&with(other.dir())).unwrap_err();
}

/// A server whose certificate for `localhost` is signed by itself, and the file with it.
fn self_signed(dir: &Path, is_ca: IsCa) -> (RedisServer, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let (certificate, secret) = (dir.join("self.pem"), dir.join("self.key"));
    fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&secret, key.serialize_pem()).unwrap();
    let server = RedisServer::builder()
        .tls()
        .config("tls-cert-file", &certificate.display().to_string())
        .config("tls-key-file", &secret.display().to_string())
        .start();
    (server, certificate)
}

#[test]
fn server_is_trusted_by_its_authority_and_name_only() {
    let builder = RedisServer::builder().tls();
    let server = builder.config("bind", "127.0.0.1 127.0.0.2").start();
    let ca = server.ca_file();
    let dir = tempfile::tempdir().unwrap();
    let (single, single_file) = self_signed(dir.path(), IsCa::NoCa);
    let another = single.ca_file();
    assert_works(&open(&url(&server, "127.0.0.1", &ca)));
    assert_works(&open(&url(&single, "localhost", &single_file)));
    // As openssl makes them, unless told otherwise.
    let (made, made_file) = self_signed(dir.path(), IsCa::Ca(BasicConstraints::Unconstrained));
    for (url, words) in [
        (format!("rediss://localhost:{}/", server.tls_port()), ""),
        (
            url(&server, "localhost", &another),
            "authority isn't trusted",
        ),
        (url(&server, "127.0.0.2", &ca), "it is for another name"),
        (url(&single, "localhost", &another), "it is self-signed"),
        (url(&made, "localhost", &another), "it is self-signed"),
        (url(&made, "localhost", &made_file), "it is self-signed"),
    ] {
        let error = Locker::open(&url).unwrap_err();
        // No outage: waiting would not help.
        assert!(matches!(error, Error::Engine { .. }), "{error}");
        let text = shown(&error);
        assert!(
            text.contains("certificate") && text.contains(words),
            "{text}"
        );
    }
}

#[test]
fn certificates_that_can_not_be_read_are_an_invalid_url() {
    let server = RedisServer::builder().tls().start();
    let dir = server.dir();
    let path = |file: &str| dir.join(file).display().to_string();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(path("empty.pem"), "").unwrap();
    fs::write(path("text.pem"), "no certificate").unwrap();
    fs::write(path("broken.pem"), broken).unwrap();
    let refused = |url: &str| {
        let error = Locker::open(url).unwrap_err();
        assert!(matches!(error, Error::InvalidUrl { .. }), "{error}");
        error.to_string()
    };
    for file in "empty.pem text.pem broken.pem missing.pem server.key .".split(' ') {
        let shown = refused(&url(&server, "localhost", &dir.join(file)));
        assert!(shown.contains(&path(file)), "{shown}");
    }
    // One's own needs both, each in its place, and TLS.
    let bare = url(&server, "localhost", &server.ca_file());
    let (cert, key) = (path("client.pem"), path("client.key"));
    refused(&format!("{bare}&cert={cert}"));
    refused(&format!("{bare}&key={key}"));
    refused(&format!("{bare}&cert={key}&key={cert}"));
    refused(&format!("{}?cert={cert}&key={key}", server.url()));
    assert_no_clients(&server);
}

#[test]
fn encrypted_url_to_a_plain_port_fails_in_time() {
    let server = RedisServer::builder().tls().start();
    let ca = server.ca_file();
    let url = format!("rediss://localhost:{}/?ca={}", server.port(), ca.display());
    let builder = Locker::builder(&url).connect_timeout(millis(300));
    // The server takes the greeting for half a line, and waits for the rest.
    let error = within(millis(300), || builder.io_timeout(LONG).build()).unwrap_err();
    assert!(
        matches!(error, Error::Unavailable { .. } | Error::Engine { .. }),
        "{error}"
    );
    let text = shown(&error);
    assert!(text.contains("has no TLS, use redis://"), "{text}");
    assert_no_clients(&server);
}
