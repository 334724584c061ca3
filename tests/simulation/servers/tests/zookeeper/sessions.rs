//! How sessions begin, go on and end, at the real server and at the simulated one.

use std::time::Duration;

use crosslock_servers::zookeeper::ZooKeeper;
use support::{Ensemble, ZooKeeper as RealZooKeeper};

use crate::records::{Record, Welcome, handshake, shown};
use crate::servers::{Come, Real, Server, Simulated, Until};

/// What was sent and what came of it, without what differs each time.
struct Script<'a> {
    server: &'a mut dyn Server,
    sessions: Vec<i64>,
    lines: Vec<String>,
    /// Whether the numbers of transactions are the same each time.
    is_alone: bool,
}

impl Script<'_> {
    fn note(&mut self, what: &str, come: &Come) {
        let frames = come.frames.iter();
        let shown = frames.map(|frame| shown(frame, self.is_alone, kind, &self.sessions));
        let frames: Vec<_> = shown.collect();
        let line = format!("{what}: {frames:?}, closed: {}", come.closed);
        self.lines.push(line);
    }

    fn greet(&mut self, what: &str, at: usize, hello: &[u8]) -> (u64, Welcome) {
        let connection = self.server.connect(at);
        self.server.send(connection, hello);
        let come = self.server.receive(connection, Until::Frames(1));
        let welcome = come.frames.first().map(|frame| Welcome::of(frame));
        let welcome = welcome.unwrap_or(Welcome {
            timeout: -1,
            session: -1,
            password: Vec::new(),
        });
        let is_known = self.sessions.contains(&welcome.session);
        let is_any = welcome.session > 0;
        if is_any && !is_known {
            self.sessions.push(welcome.session);
        }
        let closed = !is_any && self.server.receive(connection, Until::Closed).closed;
        let timeout = welcome.timeout;
        self.lines.push(format!(
            "{what}: {timeout} ms, session: {is_any}, known: {is_known}, closed: {closed}"
        ));
        (connection, welcome)
    }

    fn open(&mut self, what: &str, at: usize, timeout: i32) -> (u64, Welcome) {
        self.greet(what, at, &handshake(0, timeout, 0, &[0; 16]))
    }

    fn resume(&mut self, what: &str, at: usize, welcome: &Welcome) -> u64 {
        let hello = handshake(0, welcome.timeout, welcome.session, &welcome.password);
        self.greet(what, at, &hello).0
    }

    /// Sends one request, whose number is that of its kind.
    fn ask(&mut self, connection: u64, kind: i32, body: Record) {
        let record = Record::default().int(kind).int(kind).raw(&body.0);
        self.server.send(connection, &record.frame());
        let xid = if kind == PING { -2 } else { kind };
        let mut come = self.server.receive(connection, Until::Answer(xid));
        // It may be closed before all is read, or behind that.
        come.closed &= !Until::Answer(xid).has_come(&come);
        self.note(&format!("{kind}"), &come);
    }

    fn ping(&mut self, connection: u64) {
        self.ask(connection, PING, Record::default());
    }

    fn make(&mut self, connection: u64, path: &str, flags: i32) {
        let body = Record::default().text(path).text("data").int(1);
        let body = body.int(31).text("world").text("anyone").int(flags);
        self.ask(connection, if flags == 4 { 19 } else { 15 }, body);
    }

    fn look(&mut self, connection: u64, path: &str) {
        self.ask(connection, 3, Record::default().text(path).flag(true));
    }

    fn finish(&mut self, connection: u64) {
        let come = self.server.receive(connection, Until::Closed);
        self.note("the end", &come);
    }

    /// Waits, and keeps that session.
    fn keep(&mut self, connection: u64, time: Duration) {
        let slice = Duration::from_millis(200);
        let mut slept = Duration::ZERO;
        while slept < time {
            self.server.wait(slice);
            slept += slice;
            self.server
                .send(connection, &Record::default().int(-2).int(PING).frame());
        }
        self.server.wait(slice);
    }
}

const PING: i32 = 11;
const CLOSE: i32 = -11;

/// The kind of a request by its number.
fn kind(xid: i32) -> i32 {
    xid
}

fn handshakes(script: &mut Script<'_>) {
    for timeout in [-1, 1, 250, 1_999, i32::MAX] {
        let (connection, _) = script.open("timeout", 0, timeout);
        script.ask(connection, CLOSE, Record::default());
        script.finish(connection);
    }
    let (first, welcome) = script.open("to be taken up", 0, 2_000);
    script.make(first, "/mine", 1);
    let second = script.resume("taken up", 0, &welcome);
    script.finish(first);
    script.look(second, "/mine");
    let mut wrong = welcome.clone();
    wrong.password[3] ^= 1;
    script.resume("wrong password", 0, &wrong);
    script.finish(second);
    let third = script.resume("taken up again", 0, &welcome);
    let ahead = handshake(1 << 40, 2_000, welcome.session, &welcome.password);
    script.greet("has seen more", 0, &ahead);
    script.look(third, "/mine");
    script.ask(third, CLOSE, Record::default());
    script.finish(third);
    script.resume("closed before", 0, &welcome);
    script.resume(
        "never there",
        0,
        &Welcome {
            session: 77,
            ..welcome
        },
    );
}

fn expiries(script: &mut Script<'_>) {
    let (watcher, _) = script.open("a watcher", 0, 2_000);
    for _ in 0..2 {
        let (silent, welcome) = script.open("to be silent", 0, 200);
        script.make(silent, "/silent", 1);
        script.make(silent, "/number-", 3);
        script.look(watcher, "/silent");
        script.ask(watcher, 12, Record::default().text("/").flag(true));
        script.keep(watcher, Duration::from_millis(800));
        let come = script.server.receive(watcher, Until::Answer(-2));
        script.note(
            "expired",
            &Come {
                frames: come
                    .frames
                    .into_iter()
                    .filter(|frame| frame.starts_with(&[255; 4]) && frame[19] != 4)
                    .collect(),
                closed: come.closed,
            },
        );
        script.finish(silent);
        script.resume("expired before", 0, &welcome);
    }
    let (one, _) = script.open("to be closed", 0, 2_000);
    script.make(one, "/one", 1);
    script.look(watcher, "/one");
    script.ask(one, CLOSE, Record::default());
    script.ping(watcher);
}

fn login(scheme: &str) -> Vec<u8> {
    let record = Record::default().int(100).int(100).int(0);
    record.text(scheme).text("ann:secret").frame()
}

fn logins(script: &mut Script<'_>) {
    // All at once, before the session is there.
    let mut all = handshake(0, 2_000, 0, &[0; 16]);
    all.extend(login("digest"));
    let connection = script.server.connect(0);
    script.server.send(connection, &all);
    let come = script.server.receive(connection, Until::Frames(2));
    script.note(
        "a login",
        &Come {
            frames: come.frames[1..].to_vec(),
            ..come
        },
    );
    let body = Record::default().text("/creators").text("data").int(1);
    script.ask(connection, 15, body.int(31).text("auth").text("").int(0));
    script.make(connection, "/creators/child", 0);
    strangers(script);
}

fn strangers(script: &mut Script<'_>) {
    let (stranger, _) = script.open("a stranger", 0, 2_000);
    script.ask(stranger, 4, Record::default().text("/creators").flag(true));
    script.ask(stranger, 12, Record::default().text("/creators").flag(true));
    script.ask(
        stranger,
        5,
        Record::default().text("/creators").text("x").int(-1),
    );
    script.ask(
        stranger,
        2,
        Record::default().text("/creators/child").int(-1),
    );
    script.make(stranger, "/creators/other", 0);
    let check = Record::default()
        .int(13)
        .flag(false)
        .int(-1)
        .text("/creators")
        .int(-1);
    script.ask(stranger, 14, check.int(-1).flag(true).int(-1));
    script.server.send(stranger, &login("nonsense"));
    script.finish(stranger);
}

fn nonsense(script: &mut Script<'_>) {
    for bytes in [
        Record::default().int(7).int(999).frame(),
        Record::default().int(-1).0,
        Record::default().int(0x10_0000).0,
        Record::default().int(7).frame(),
    ] {
        let (connection, _) = script.open("to say nonsense", 0, 2_000);
        script.server.send(connection, &bytes);
        script.finish(connection);
    }
    let connection = script.server.connect(0);
    script.server.send(connection, b"srvr");
    script.finish_words(connection);
}

fn containers(script: &mut Script<'_>, time: Duration) {
    let (connection, _) = script.open("makes containers", 0, 2_000);
    for path in ["/used", "/unused"] {
        script.make(connection, path, 4);
    }
    script.make(connection, "/used/child", 0);
    script.make(connection, "/used/child/deep", 0);
    script.keep(connection, time);
    script.server.receive(connection, Until::Answer(-2));
    for path in ["/used/child/deep", "/used/child"] {
        script.ask(connection, 2, Record::default().text(path).int(-1));
    }
    script.look(connection, "/used");
    script.keep(connection, time);
    let come = script.server.receive(connection, Until::Answer(-2));
    let events = come
        .frames
        .into_iter()
        .filter(|frame| frame.starts_with(&[255; 4]));
    script.note(
        "swept",
        &Come {
            frames: events.collect(),
            closed: false,
        },
    );
    script.ask(connection, 8, Record::default().text("/").flag(false));
}

impl Script<'_> {
    fn finish_words(&mut self, connection: u64) {
        let come = self.server.receive(connection, Until::Closed);
        self.lines.push(format!("words, closed: {}", come.closed));
    }
}

fn play(server: &mut dyn Server, is_alone: bool, scene: impl Fn(&mut Script<'_>)) -> Vec<String> {
    let mut script = Script {
        server,
        sessions: Vec::new(),
        lines: Vec::new(),
        is_alone,
    };
    scene(&mut script);
    script.lines
}

#[track_caller]
fn assert_same(found: &[String], expected: &[String]) {
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "line {place} of {expected:#?}");
    }
    assert_eq!(found.len(), expected.len());
}

#[track_caller]
fn compare(real: &RealZooKeeper, sweep: Duration, scene: impl Fn(&mut Script<'_>, Duration)) {
    let mut server = Real::new(vec![real.own_addr()]);
    let expected = play(&mut server, true, |script| {
        scene(script, Duration::from_secs(1))
    });
    let mut server = Simulated::new(ZooKeeper::new(1), fastrand::u64(..));
    let found = play(&mut server, true, |script| scene(script, sweep));
    assert_same(&found, &expected);
}

#[test]
fn handshakes_are_those_of_zookeeper() {
    compare(&RealZooKeeper::start(), Duration::ZERO, |script, _| {
        handshakes(script)
    });
}

#[test]
fn sessions_expire_as_in_zookeeper() {
    compare(&RealZooKeeper::start(), Duration::ZERO, |script, _| {
        expiries(script)
    });
}

#[test]
fn logins_are_those_of_zookeeper() {
    compare(&RealZooKeeper::start(), Duration::ZERO, |script, _| {
        logins(script)
    });
}

#[test]
fn nonsense_is_answered_as_by_zookeeper() {
    compare(&RealZooKeeper::start(), Duration::ZERO, |script, _| {
        nonsense(script)
    });
}

#[test]
fn empty_containers_are_deleted_as_in_zookeeper() {
    let real = RealZooKeeper::setup()
        .property("znode.container.checkIntervalMs", "300")
        .start();
    compare(&real, Duration::from_secs(61), containers);
}

/// At a leader and two followers.
fn moves(script: &mut Script<'_>, [leader, one, other]: [usize; 3]) {
    let (watcher, _) = script.open("a watcher", other, 2_000);
    script.look(watcher, "/made");
    for (from, to) in [(one, other), (leader, one), (one, leader)] {
        let (before, welcome) = script.open("to move", from, 2_000);
        script.make(before, "/made", 1);
        script.look(before, "/made");
        script.ask(watcher, 9, Record::default().text("/made"));
        script.look(watcher, "/made");
        let behind = script.resume("moved", to, &welcome);
        script.ask(behind, 9, Record::default().text("/"));
        script.look(behind, "/made");
        script.ping(before);
        let (before, behind) = match from == leader {
            true => (behind, script.resume("moved again", other, &welcome)),
            false => (before, behind),
        };
        script.look(before, "/made");
        script.ask(before, 9, Record::default().text("/"));
        script.make(before, "/made-2", 0);
        script.ask(behind, CLOSE, Record::default());
        script.finish(behind);
        script.ask(watcher, 9, Record::default().text("/made"));
        script.look(watcher, "/made");
    }
    let (before, welcome) = script.open("to move and close", one, 2_000);
    let behind = script.resume("moved", other, &welcome);
    script.ask(before, CLOSE, Record::default());
    script.finish(behind);
}

#[test]
fn sessions_move_as_in_zookeeper() {
    let real = Ensemble::of(3);
    let leader = real.leader();
    let places = |leader: usize| [leader, (leader + 1) % 3, (leader + 2) % 3];
    let addrs = (0..3).map(|at| real.members()[at].own_addr()).collect();
    let mut server = Real::new(addrs);
    let expected = play(&mut server, false, |script| moves(script, places(leader)));
    let mut server = Simulated::new(ZooKeeper::new(3), fastrand::u64(..));
    let found = play(&mut server, false, |script| moves(script, places(2)));
    assert_same(&found, &expected);
}
