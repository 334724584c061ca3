//! How sessions begin, go on and end, at the real server and at the simulated one.

use std::time::Duration;

use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_servers::zookeeper::jute::Writer;
use support::{Ensemble, ZooKeeper as RealZooKeeper};

use super::records::{Asked as _, Come, Until, Welcome, node, shown};
use crate::peers::{Both, Peer, Side};

/// What was sent and what came of it, without what differs each time.
struct Script<'a> {
    server: &'a mut dyn Peer,
    sessions: Vec<i64>,
    lines: Vec<String>,
}

impl Script<'_> {
    fn note(&mut self, what: &str, come: &Come) {
        let frames = come.frames.iter();
        // The number of a request is its kind.
        let frames: Vec<_> = frames
            .map(|frame| shown(frame, |xid| xid, &self.sessions))
            .collect();
        let line = format!("{what}: {frames:?}, closed: {}", come.closed);
        self.lines.push(line);
    }

    fn greet(&mut self, what: &str, at: usize, hello: &[u8]) -> (u64, Welcome) {
        let connection = self.server.connect(at);
        self.server.send(connection, hello);
        let come = self.server.receive(connection, Until::Frames(1));
        let welcome = come.frames.first().and_then(|frame| Welcome::of(frame));
        let welcome = welcome.unwrap_or(Welcome::new(-1));
        let is_known = self.sessions.contains(&welcome.session);
        let is_any = welcome.session > 0;
        if is_any && !is_known {
            self.sessions.push(welcome.session);
        }
        let closed = !is_any && self.server.receive(connection, Until::Closed).closed;
        let timeout = welcome.timeout;
        let line = format!("{what}: {timeout} ms, {is_any}, known: {is_known}, closed: {closed}");
        self.lines.push(line);
        (connection, welcome)
    }

    fn open(&mut self, what: &str, at: usize, timeout: i32) -> (u64, Welcome) {
        self.greet(what, at, &Welcome::new(timeout).asked(0))
    }

    fn resume(&mut self, what: &str, at: usize, welcome: &Welcome) -> u64 {
        self.greet(what, at, &welcome.asked(0)).0
    }

    /// Sends one request, whose number is that of its kind.
    fn ask(&mut self, connection: u64, kind: i32, body: &mut Writer) {
        let mut record = Writer::default();
        record.int(kind).int(kind).raw(&body.take());
        self.server.send(connection, &record.frame());
        let xid = if kind == PING { -2 } else { kind };
        let mut come = self.server.receive(connection, Until::Answer(xid));
        // It may be closed before all is read, or behind that.
        come.closed &= !Until::Answer(xid).has_come(&come);
        self.note(&format!("{kind}"), &come);
    }

    fn make(&mut self, connection: u64, path: &str, flags: i32) {
        let kind = if flags == 4 { 19 } else { 15 };
        self.ask(connection, kind, node(&mut Writer::default(), path, flags));
    }

    fn look(&mut self, connection: u64, path: &str) {
        self.ask(connection, 3, Writer::default().text(path).flag(true));
    }

    fn sync(&mut self, connection: u64) {
        self.ask(connection, 9, Writer::default().text("/"));
    }

    fn close(&mut self, connection: u64) {
        self.ask(connection, CLOSE, &mut Writer::default());
    }

    fn finish(&mut self, connection: u64) {
        let come = self.server.receive(connection, Until::Closed);
        self.note("the end", &come);
    }

    /// Waits, and keeps that session. Notes of which nodes it is told that they were deleted, or changed.
    fn keep(&mut self, connection: u64, time: Duration) {
        let slice = Duration::from_millis(200);
        for _ in 0..time.as_millis() / slice.as_millis() {
            self.server.wait(slice);
            let ping = Writer::default().int(-2).int(PING).frame();
            self.server.send(connection, &ping);
        }
        self.server.wait(slice);
        let mut come = self.server.receive(connection, Until::Answer(-2));
        come.frames
            .retain(|frame| frame.starts_with(&[255; 4]) && frame[19] != 4);
        self.note("kept", &come);
    }
}

/// That of the real servers.
const TICK: Duration = Duration::from_millis(100);
const PING: i32 = 11;
const CLOSE: i32 = -11;

fn handshakes(script: &mut Script<'_>, _: Duration) {
    for timeout in [-1, 1, 250, 1_999, i32::MAX] {
        let (connection, _) = script.open("timeout", 0, timeout);
        script.close(connection);
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
    script.greet("has seen more", 0, &welcome.asked(1 << 40));
    script.look(third, "/mine");
    script.close(third);
    script.finish(third);
    script.resume("closed before", 0, &welcome);
    let session = 77;
    script.resume("never there", 0, &Welcome { session, ..welcome });
}

fn expiries(script: &mut Script<'_>, _: Duration) {
    let (watcher, _) = script.open("a watcher", 0, 2_000);
    for _ in 0..2 {
        let (silent, welcome) = script.open("to be silent", 0, 200);
        script.make(silent, "/silent", 1);
        script.make(silent, "/number-", 3);
        script.look(watcher, "/silent");
        script.keep(watcher, Duration::from_millis(800));
        script.finish(silent);
        script.resume("expired before", 0, &welcome);
    }
    let (one, _) = script.open("to be closed", 0, 2_000);
    script.make(one, "/one", 1);
    script.look(watcher, "/one");
    script.close(one);
    script.ask(watcher, PING, &mut Writer::default());
}

fn containers(script: &mut Script<'_>, sweep: Duration) {
    let (connection, _) = script.open("makes containers", 0, 2_000);
    for (path, flags) in [("/used", 4), ("/unused", 4), ("/used/child", 0)] {
        script.make(connection, path, flags);
    }
    script.keep(connection, sweep);
    let mut child = Writer::default();
    // Before it is empty: a server may look for containers at any moment.
    script.look(connection, "/used");
    script.ask(connection, 2, child.text("/used/child").int(-1));
    script.keep(connection, sweep);
    script.look(connection, "/unused");
}

fn play(server: &mut dyn Peer, scene: impl FnOnce(&mut Script<'_>)) -> Vec<String> {
    let mut script = Script {
        server,
        sessions: Vec::new(),
        lines: Vec::new(),
    };
    scene(&mut script);
    script.lines
}

/// With as much time as each needs to look for containers that are empty.
#[test]
fn sessions_begin_go_on_and_end_as_in_zookeeper() {
    let real = RealZooKeeper::setup();
    let real = real
        .property("znode.container.checkIntervalMs", "300")
        .start();
    let mut both = Both::new(vec![real.own_addr()], ZooKeeper::new(1, TICK));
    for scene in [handshakes, expiries, containers] {
        both.alike("a session", |peer, side| {
            let sweep = Duration::from_secs(if side == Side::Real { 1 } else { 61 });
            play(peer, |script| scene(script, sweep))
        });
    }
}

/// At a leader and two followers.
fn moves(script: &mut Script<'_>, [leader, one, other]: [usize; 3]) {
    let (watcher, _) = script.open("a watcher", other, 2_000);
    script.look(watcher, "/made");
    for (from, to) in [(one, other), (leader, one), (one, leader)] {
        let (before, welcome) = script.open("to move", from, 2_000);
        script.make(before, "/made", 1);
        script.sync(watcher);
        script.look(watcher, "/made");
        let behind = script.resume("moved", to, &welcome);
        script.sync(behind);
        script.look(behind, "/made");
        script.ask(before, PING, &mut Writer::default());
        let (before, behind) = match from == leader {
            true => (behind, script.resume("moved again", other, &welcome)),
            false => (before, behind),
        };
        script.look(before, "/made");
        script.sync(before);
        script.make(before, "/made-2", 0);
        script.close(behind);
        script.finish(behind);
        script.sync(watcher);
        script.look(watcher, "/made");
    }
    let (before, welcome) = script.open("to move and close", one, 2_000);
    let behind = script.resume("moved", other, &welcome);
    script.close(before);
    script.finish(behind);
}

#[test]
fn sessions_move_as_in_zookeeper() {
    let real = Ensemble::of(3);
    let leader = real.leader();
    let places = |leader: usize| [leader, (leader + 1) % 3, (leader + 2) % 3];
    let addrs = (0..3).map(|at| real.members()[at].own_addr()).collect();
    let mut both = Both::new(addrs, ZooKeeper::new(3, TICK));
    both.alike("a session that moves", |peer, side| {
        let leader = if side == Side::Real { leader } else { 2 };
        play(peer, |script| moves(script, places(leader)))
    });
}
