//! The tests' own tools do what the other tests rely on.

mod support;

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use redis::cmd;
use support::{
    BlackHole, Child, Fault, Proxy, RedisServer, eventually, hear, is_child, open_files_under,
    resident_bytes, say, sockets, threads_named, wait_until,
};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough to notice an answer that shouldn't come.
const SILENCE: Duration = Duration::from_millis(150);

/// A client that shows every byte.
struct Wire<S>(S);

impl Wire<TcpStream> {
    fn to(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.addr()).expect("the proxy accepts");
        stream.set_nodelay(true).expect("set nodelay");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("set a timeout");
        Self(stream)
    }

    fn is_silent(&mut self) -> bool {
        self.0
            .set_read_timeout(Some(SILENCE))
            .expect("set a timeout");
        let read = self.0.read(&mut [0]);
        self.0
            .set_read_timeout(Some(PATIENCE))
            .expect("set a timeout");
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

impl<S: Read + Write> Wire<S> {
    fn ask(&mut self, request: &[&str]) -> String {
        self.send(request);
        self.line()
    }

    fn send(&mut self, request: &[&str]) {
        let packed = cmd(request[0]).arg(&request[1..]).get_packed_command();
        self.0.write_all(&packed).expect("the connection is open");
    }

    /// Returns the next line without its end, or what came before the connection ended.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") && self.0.read(&mut byte).expect("a reply or an end") == 1 {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text").trim_end().to_owned()
    }

    /// An error is as good as an end: the peer may have closed with requests unread.
    fn is_ended(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(len) => len == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

fn is_running(pid: u32) -> bool {
    // A dead process stays in the table until whoever inherited it reaps it.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

// Waiting

#[test]
fn condition_that_never_holds_is_named() {
    let waiting = || wait_until("the moon", Duration::from_millis(5), || false);
    let panic = catch_unwind(waiting).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("the moon"));
}

#[test]
fn condition_is_tried_without_any_time() {
    assert!(eventually(Duration::ZERO, || true));
}

// Servers

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
    let mut child = Child::spawn(
        "child_with_a_server",
        &[("TMPDIR", dir.path().to_str().unwrap())],
    );
    let pid = child.wait_for("server", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    child.kill();
    wait_until("the server to die", PATIENCE, || !is_running(pid));
}

#[test]
fn child_with_a_server() {
    if !is_child("child_with_a_server") {
        return;
    }
    let server = RedisServer::start();
    say(&format!("server {}", server.pid()));
    hear();
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

// Proxies

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
    let mut child = Child::spawn("child_with_hanging_proxies", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_with_hanging_proxies() {
    if !is_child("child_with_hanging_proxies") {
        return;
    }
    let server = RedisServer::start();
    let before = sockets();
    let hour = Duration::from_secs(3600);
    for fault in [
        Fault::None,
        Fault::Delay(hour),
        Fault::BlackHole,
        Fault::LoseReply { then_close: false },
        Fault::Trickle { every: hour },
    ] {
        let proxy = Proxy::start(server.addr());
        proxy.set(fault);
        let mut wires = [(); 3].map(|()| Wire::to(&proxy));
        wires.iter_mut().for_each(|wire| wire.send(&["PING"]));
        wait_until("the requests", PATIENCE, || proxy.requests() == 3);
        assert_eq!(proxy.connections(), 3);
        drop(proxy);
        // A joined thread stays listed for a moment.
        wait_until("the threads' end", PATIENCE, || threads_named("proxy") == 0);
        drop(wires);
        assert_eq!(sockets(), before, "{fault:?}");
    }
}

#[test]
fn connecting_to_a_black_hole_hangs() {
    let hole = BlackHole::start();
    let patience = Duration::from_millis(300);
    let error = TcpStream::connect_timeout(&hole.addr(), patience).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

// Children

#[test]
fn parent_and_child_talk() {
    let mut child = Child::spawn("echo", &[("GREETING", "good day")]);
    assert_eq!(child.wait_for("pid", PATIENCE), child.pid().to_string());
    assert_eq!(child.wait_for("greeting", PATIENCE), "good day");
    child.tell("one two");
    // Not in the order in which they were said.
    assert_eq!(child.wait_for("done", PATIENCE), "");
    assert!(child.has_said("heard"));
    assert_eq!(child.wait_for("heard", PATIENCE), "one two");
    assert!(!child.has_said("heard"));
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn echo() {
    if !is_child("echo") {
        return;
    }
    say(&format!("pid {}", std::process::id()));
    say(&format!("greeting {}", std::env::var("GREETING").unwrap()));
    while let Some(line) = hear() {
        say(&format!("heard {line}"));
        say("done");
    }
}

#[test]
fn silent_child_fails_the_wait_with_its_story() {
    let panic = catch_unwind(|| {
        let mut child = Child::spawn("echo", &[("GREETING", "good day")]);
        child.hang_up();
        child.wait_for("never", PATIENCE)
    });
    let story = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(story.contains("never") && story.contains("greeting good day"));
}

#[test]
fn killed_child_is_reaped() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.kill();
    assert!(!Path::new(&format!("/proc/{}", child.pid())).exists());
    assert!(!child.wait(PATIENCE).success());
}

#[test]
fn stopped_child_goes_on_when_continued() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.stop();
    child.tell("are you there");
    thread::sleep(SILENCE);
    assert!(!child.has_said("heard"));
    child.cont();
    assert_eq!(child.wait_for("heard", PATIENCE), "are you there");
}

#[test]
fn dropped_child_is_gone_even_if_stopped() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.stop();
    let pid = child.pid();
    drop(child);
    assert!(!is_running(pid));
}

#[test]
fn child_dies_with_its_parent() {
    let mut parent = Child::spawn("child_with_a_child", &[]);
    let pid = parent.wait_for("grandchild", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    parent.kill();
    wait_until("the grandchild to die", PATIENCE, || !is_running(pid));
}

#[test]
fn child_with_a_child() {
    if !is_child("child_with_a_child") {
        return;
    }
    let mut child = Child::spawn("sleeper", &[]);
    child.wait_for("asleep", PATIENCE);
    say(&format!("grandchild {}", child.pid()));
    hear();
}

#[test]
fn sleeper() {
    if !is_child("sleeper") {
        return;
    }
    say("asleep");
    loop {
        thread::park();
    }
}

// Resources

#[test]
fn resources_are_counted() {
    // Alone in a process, because other tests open things as well.
    let mut child = Child::spawn("child_counting_resources", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_counting_resources() {
    if !is_child("child_counting_resources") {
        return;
    }
    let before = sockets();
    let pair = UnixStream::pair().unwrap();
    assert_eq!(sockets(), before + 2);
    drop(pair);
    assert_eq!(sockets(), before);

    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("file")).unwrap();
    assert_eq!(open_files_under(dir.path()), 1);
    drop(file);
    assert_eq!(open_files_under(dir.path()), 0);

    let (sender, receiver) = mpsc::channel::<()>();
    let named = thread::Builder::new().name("crosslock-renewal".into());
    let handle = named.spawn(move || receiver.recv()).unwrap();
    wait_until("the thread's name", PATIENCE, || {
        threads_named("crosslock-renew") == 1
    });
    assert_eq!(threads_named("crosslock-renewal"), 1);
    drop(sender);
    handle.join().unwrap().unwrap_err();
    wait_until("the thread's end", PATIENCE, || {
        threads_named("crosslock") == 0
    });

    let before = resident_bytes();
    let memory = vec![1_u8; 64 << 20];
    assert!(resident_bytes() >= before + (60 << 20), "{}", memory.len());
}
