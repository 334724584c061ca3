//! Servers.

use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::process::Command;
use std::thread;

use redis::cmd;

use super::*;
use support::{Child, Proxy, RedisServer, wait_until};

#[test]
fn servers_have_ports_and_data_of_their_own() {
    let (one, two) = (RedisServer::start(), RedisServer::start());
    assert_ne!(one.port(), two.port());
    one.query::<()>(&["SET", "key", "one"]);
    assert_eq!(one.get("key").as_deref(), Some("one"));
    assert_eq!(two.get("key"), None);
    redis::Client::open(two.url())
        .unwrap()
        .get_connection()
        .unwrap();
}

#[test]
fn dropped_server_leaves_nothing() {
    let (pid, dir) = {
        let server = RedisServer::start();
        (server.pid(), server.dir().to_owned())
    };
    assert!(!is_running(pid));
    assert!(!dir.exists());
}

#[test]
fn server_of_a_panicking_test_is_killed() {
    let panic = catch_unwind(|| {
        let server = RedisServer::start();
        std::panic::panic_any(server.pid());
    });
    assert!(!is_running(*panic.unwrap_err().downcast::<u32>().unwrap()));
}

#[test]
fn server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(RedisServer::start).join().unwrap();
    let restarted = &server;
    thread::scope(|scope| scope.spawn(|| restarted.restart()).join().unwrap());
    assert!(server.keys().is_empty());
}

#[test]
fn server_dies_with_the_process_that_started_it() {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return;
    }
    // Nobody is left to remove the server's directory but this test.
    let dir = tempfile::tempdir().unwrap();
    let mut child = Child::spawn("has a server", &[("TMPDIR", dir.path().to_str().unwrap())]);
    let pid = child.wait_for("server", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    child.kill();
    wait_until("the server to die", PATIENCE, || !is_running(pid));
}

#[test]
fn password_is_demanded() {
    let server = RedisServer::builder().password("secret").start();
    let mut wire = Wire(TcpStream::connect(server.addr()).unwrap());
    assert!(wire.ask(&["PING"]).starts_with("-NOAUTH"));
    assert_eq!(wire.ask(&["AUTH", "secret"]), "+OK");
    redis::Client::open(server.url_as(":secret"))
        .unwrap()
        .get_connection()
        .unwrap();
    server.restart();
    assert!(server.keys().is_empty());
}

#[test]
fn users_have_the_rights_of_the_rules() {
    let rules = [
        "user default off",
        "user lock on >secret ~* +@all",
        "user guest on >guest ~* +ping",
    ];
    let server = RedisServer::builder().acl(&rules).start();
    let mut wire = Wire(TcpStream::connect(server.addr()).unwrap());
    assert!(wire.ask(&["PING"]).starts_with("-NOAUTH"));
    assert_eq!(wire.ask(&["AUTH", "guest", "guest"]), "+OK");
    assert!(wire.ask(&["SET", "key", "value"]).starts_with("-NOPERM"));
    assert_eq!(wire.ask(&["AUTH", "lock", "secret"]), "+OK");
    assert_eq!(wire.ask(&["SET", "key", "value"]), "+OK");
    assert_eq!(server.keys(), ["key"]);
    assert_eq!(server.command_calls("set"), 1);
    assert_eq!(server.rejected_calls("set"), 1);
}

#[test]
fn tls_server_has_a_port_and_an_authority() {
    let server = RedisServer::builder().tls().start();
    TcpStream::connect(("127.0.0.1", server.tls_port())).unwrap();
    let authority = fs::read_to_string(server.ca_file()).unwrap();
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    let wanted = format!("rediss://localhost:{}/?ca=/", server.tls_port());
    assert!(server.tls_url().starts_with(&wanted));
    server.restart();
    assert_eq!(authority, fs::read_to_string(server.ca_file()).unwrap());
    TcpStream::connect(("127.0.0.1", server.tls_port())).unwrap();
}

#[test]
fn unix_socket_answers() {
    let server = RedisServer::builder().unix_socket().start();
    let mut wire = Wire(UnixStream::connect(server.unix_path()).unwrap());
    assert_eq!(wire.ask(&["PING"]), "+PONG");
    assert!(server.unix_url().starts_with("unix:///"));
}

#[test]
fn configuration_line_is_applied() {
    let builder = RedisServer::builder().config("maxmemory", "1mb");
    let limit: (String, u64) = builder.start().query(&["CONFIG", "GET", "maxmemory"]);
    assert_eq!(limit.1, 1024 * 1024);
}

#[test]
#[should_panic(expected = "nonsense")]
fn server_that_does_not_start_tells_why() {
    RedisServer::builder().config("nonsense", "1").start();
}

#[test]
fn killed_server_forgets() {
    let server = RedisServer::start();
    let (pid, port) = (server.pid(), server.port());
    server.query::<()>(&["SET", "key", "value"]);
    server.kill();
    assert!(TcpStream::connect(server.addr()).is_err());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.get("key"), None);
}

#[test]
fn append_only_server_remembers() {
    let server = RedisServer::builder().append_only().start();
    server.query::<()>(&["SET", "key", "value"]);
    server.kill();
    server.restart();
    assert_eq!(server.get("key").as_deref(), Some("value"));
}

#[test]
fn replica_follows() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(primary.port()).start();
    primary.query::<()>(&["SET", "key", "value"]);
    wait_until("the replica to follow", PATIENCE, || {
        replica.get("key").is_some()
    });
    assert_eq!(replica.info("master_link_status").as_deref(), Some("up"));
    assert_eq!(primary.connected_clients(), 0);
}

#[test]
fn stopped_server_accepts_and_is_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    server.stop();
    let mut wire = Wire::to(&proxy);
    wire.send(&["PING"]);
    assert!(wire.is_silent());
    server.cont();
    assert_eq!(wire.line(), "+PONG");
    server.stop();
}

#[test]
fn calls_are_counted_by_their_outcome() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for _ in 0..3 {
        cmd("SET")
            .arg(&["key", "value"])
            .exec(&mut connection)
            .unwrap();
    }
    cmd("LPUSH")
        .arg(&["key", "value"])
        .exec(&mut connection)
        .unwrap_err();
    let missing = ["0123456789012345678901234567890123456789", "0"];
    cmd("EVALSHA")
        .arg(&missing)
        .exec(&mut connection)
        .unwrap_err();
    assert_eq!(server.command_calls("SET"), 3);
    assert_eq!(server.command_calls("lpush"), 0);
    assert_eq!(server.failed_calls("lpush"), 1);
    assert_eq!(server.failed_calls("evalsha"), 1);
    assert_eq!(server.command_calls("evalsha"), 0);
    server.reset_stats();
    assert_eq!(server.command_calls("set"), 0);
}

#[test]
fn keys_are_seen() {
    let server = RedisServer::start();
    server.query::<()>(&["SET", "b", "1"]);
    server.query::<()>(&["SET", "a", "2", "PX", "60000"]);
    assert_eq!(server.keys(), ["a", "b"]);
    assert_eq!(server.pttl("b"), -1);
    assert_eq!(server.pttl("c"), -2);
    assert!((1..=60_000).contains(&server.pttl("a")));
}

#[test]
fn own_connections_are_not_counted() {
    let server = RedisServer::start();
    let _admin = server.connection();
    assert_eq!(server.connected_clients(), 0);
    let mut wire = Wire(TcpStream::connect(server.addr()).unwrap());
    wire.ask(&["PING"]);
    assert_eq!(server.connected_clients(), 1);
    drop(wire);
    wait_until("the client to go", PATIENCE, || {
        server.connected_clients() == 0
    });
}
