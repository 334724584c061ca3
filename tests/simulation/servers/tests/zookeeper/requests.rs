//! The same requests by chance, and the same answers and events.

use std::time::Duration;

use crosslock_servers::zookeeper::ZooKeeper;
use fastrand::Rng;
use support::ZooKeeper as RealZooKeeper;

use crate::records::{Record, Welcome, handshake, shown};
use crate::servers::{Real, Server, Simulated, Until};

const CLIENTS: usize = 3;
/// Long sessions: a busy machine ends none.
const TICK: Duration = Duration::from_secs(1);

/// The errors that are to be seen: a multi's for what it hasn't tried, bad arguments, no node, no right, a bad version,
/// children of ephemeral nodes, a node that exists, one with children, and rights of nobody.
const CODES: [i32; 9] = [-2, -8, -101, -102, -103, -108, -110, -111, -114];

/// So many steps are at the same nodes: some can't be deleted by anybody.
const ROUND: usize = 200;

/// The same clients of one server.
struct Clients<S> {
    server: S,
    connections: Vec<u64>,
    sessions: Vec<i64>,
}

impl<S: Server> Clients<S> {
    fn new(mut server: S) -> Self {
        let connections: Vec<_> = (0..CLIENTS).map(|_| server.connect(0)).collect();
        let open = |connection: &u64| {
            server.send(*connection, &handshake(0, 20_000, 0, &[0; 16]));
            let come = server.receive(*connection, Until::Frames(1));
            Welcome::of(&come.frames[0]).session
        };
        let sessions = connections.iter().map(open).collect();
        Clients {
            server,
            connections,
            sessions,
        }
    }

    /// What comes up to an answer.
    fn ask(
        &mut self,
        client: usize,
        bytes: &[u8],
        last: i32,
        kind: impl Fn(i32) -> i32,
    ) -> Vec<String> {
        let connection = self.connections[client];
        self.server.send(connection, bytes);
        let come = self.server.receive(connection, Until::Answer(last));
        let frames = come.frames.iter();
        let mut all: Vec<_> = frames
            .map(|frame| shown(frame, true, &kind, &self.sessions))
            .collect();
        if come.closed {
            all.push("closed".into());
        }
        all
    }
}

fn has_all(seen: &str) -> bool {
    let mut codes = CODES.iter();
    codes.all(|code| seen.contains(&format!(" {code}")))
}

#[test]
fn random_requests_are_answered_as_by_zookeeper() {
    let real = RealZooKeeper::setup().tick(TICK).start();
    let real = Real::new(vec![real.own_addr()]);
    let seed = fastrand::u64(..);
    let simulated = Simulated::new(ZooKeeper::with_tick(1, TICK), seed);
    let (mut real, mut simulated) = (Clients::new(real), Clients::new(simulated));
    let mut random = Rng::with_seed(seed);
    let mut seen = String::new();
    for step in 0..20_000 {
        if step >= 1_500 && has_all(&seen) {
            break;
        }
        let client = random.usize(..CLIENTS);
        let mut kinds: Vec<_> = (0..random.usize(1..5))
            .map(|_| *random.choice(KINDS).expect("one"))
            .collect();
        // A login may be answered before what stands in front of it.
        if kinds.contains(&100) {
            kinds = vec![100];
        }
        let mut bytes = Vec::new();
        for (xid, kind) in (1..).zip(&kinds) {
            bytes.extend(request(&mut random, step / ROUND, xid, *kind));
        }
        let last = i32::try_from(kinds.len()).expect("a few");
        let kind = |xid: i32| kinds[usize::try_from(xid - 1).expect("not negative")];
        let expected = real.ask(client, &bytes, last, kind);
        let found = simulated.ask(client, &bytes, last, kind);
        assert_eq!(found, expected, "seed {seed}, step {step}, {kinds:?}");
        seen.push_str(&expected.join("\n"));
        // All watchers were told when they are answered.
        let ping = Record::default().int(-2).int(11).frame();
        for client in 0..CLIENTS {
            let expected = real.ask(client, &ping, -2, |_| 11);
            let found = simulated.ask(client, &ping, -2, |_| 11);
            assert_eq!(
                found, expected,
                "seed {seed}, step {step}, {kinds:?}, events of {client}"
            );
        }
    }
    assert!(has_all(&seen), "seed {seed}: too little was refused");
}

const KINDS: &[i32] = &[1, 2, 3, 4, 5, 8, 9, 12, 14, 14, 14, 15, 15, 19, 100];
const CHANGES: &[i32] = &[1, 2, 2, 5, 13, 13, 15, 15, 19];

fn request(random: &mut Rng, round: usize, xid: i32, kind: i32) -> Vec<u8> {
    let record = Record::default().int(xid).int(kind);
    let record = match kind {
        11 => record,
        9 => record.text(&path(random, round)),
        3 | 4 | 8 | 12 => record.text(&path(random, round)).flag(random.bool()),
        14 => multi(random, round, record),
        100 => {
            let user = *random.choice(&["ann:a", "bob:b"]).expect("one");
            record.int(0).text("digest").text(user)
        }
        _ => change(random, round, record, kind),
    };
    record.frame()
}

fn multi(random: &mut Rng, round: usize, mut record: Record) -> Record {
    for _ in 0..random.usize(..5) {
        let kind = *random.choice(CHANGES).expect("one");
        record = change(random, round, record.int(kind).flag(false).int(-1), kind);
    }
    record.int(-1).flag(true).int(-1)
}

fn change(random: &mut Rng, round: usize, record: Record, kind: i32) -> Record {
    let record = record.text(&path(random, round));
    let data = match random.u8(..4) {
        0 => None,
        1 => Some(&b""[..]),
        _ => Some(&b"data"[..]),
    };
    let version = match random.u8(..3) {
        0 => random.i32(0..3),
        _ => -1,
    };
    match kind {
        2 | 13 => record.int(version),
        5 => record.buffer(data).int(version),
        19 => acl(random, record.buffer(data)).int(4),
        _ => {
            let flags = *random.choice(&[0, 0, 0, 1, 1, 2, 3, 3, 4, 9]).expect("one");
            acl(random, record.buffer(data)).int(flags)
        }
    }
}

fn acl(random: &mut Rng, record: Record) -> Record {
    match random.u8(..12) {
        0 => record.int(1).int(31).text("auth").text(""),
        1 => record.int(0),
        2 => record
            .int(1)
            .int(random.i32(1..32))
            .text("world")
            .text("anyone"),
        3 => record.int(1).int(31).text("nobody").text("knows"),
        _ => record.int(1).int(31).text("world").text("anyone"),
    }
}

fn path(random: &mut Rng, round: usize) -> String {
    const GOOD: &[&str] = &["/a", "/b", "/a/x", "/a/y-", "/b/x", "/a/x/z", "/a/x/z/w"];
    const BAD: &[&str] = &[
        "",
        "/",
        "a",
        "/a/",
        "/a//x",
        "/a/../b",
        "/a/.",
        "/a/\u{1}",
        "/zookeeper",
    ];
    let paths = if random.u8(..12) == 0 { BAD } else { GOOD };
    let path = random.choice(paths).expect("one");
    path.replace("/a", &format!("/a{round}"))
}
