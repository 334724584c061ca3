//! The same requests by chance, and the same answers and events.

use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_servers::zookeeper::ZooKeeper;
use fastrand::Rng;
use support::ZooKeeper as RealZooKeeper;

use super::records::{Asked as _, Record, Until, Welcome, shown};
use crate::peers::{Peer, Real};

const CLIENTS: usize = 3;
/// Long sessions: a busy machine ends none.
const TICK: Duration = Duration::from_secs(1);

/// The errors that are to be seen: a multi's for what it hasn't tried, no node, a bad version, children of ephemeral
/// nodes, a node that exists, and one with children.
const CODES: [i32; 6] = [-2, -101, -103, -108, -110, -111];

/// So many steps are at the same nodes: some can't be deleted by anybody.
const ROUND: usize = 200;

/// The same clients of one server.
struct Clients<S> {
    server: S,
    connections: Vec<u64>,
    sessions: Vec<i64>,
}

impl<S: Peer> Clients<S> {
    fn new(mut server: S) -> Self {
        let connections: Vec<_> = (0..CLIENTS).map(|_| server.connect(0)).collect();
        let open = |connection: &u64| {
            server.send(*connection, &Welcome::new(20_000).asked(0));
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
        let shown = frames.map(|frame| shown(frame, &kind, &self.sessions));
        let closed = come.closed.then(|| "closed".into());
        shown.chain(closed).collect()
    }
}

fn has_all(seen: &str) -> bool {
    let mut codes = CODES.iter();
    codes.all(|code| seen.contains(&format!(" {code}")))
}

#[test]
fn random_requests_are_answered_as_by_zookeeper() {
    let real = RealZooKeeper::setup().tick(TICK).start();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut real = Clients::new(Real::new(vec![real.own_addr()]));
    let mut simulated = Clients::new(Desk::new(ZooKeeper::with_tick(1, TICK), seed));
    let mut random = Rng::with_seed(seed);
    let mut seen = String::new();
    for step in 0..20_000 {
        if step >= 1_500 && has_all(&seen) {
            break;
        }
        let client = random.usize(..CLIENTS);
        let kinds = (0..random.usize(1..5)).map(|_| KINDS[random.usize(..KINDS.len())]);
        let kinds: Vec<_> = kinds.collect();
        let asked = (1..).zip(&kinds);
        let bytes: Vec<_> = asked
            .flat_map(|(xid, kind)| request(&mut random, step / ROUND, xid, *kind))
            .collect();
        let last = i32::try_from(kinds.len()).expect("a few");
        let kind = |xid: i32| kinds[usize::try_from(xid - 1).expect("not negative")];
        let expected = real.ask(client, &bytes, last, kind);
        let found = simulated.ask(client, &bytes, last, kind);
        assert_eq!(found, expected, "step {step}, {kinds:?}");
        seen.push_str(&expected.join("\n"));
        // All watchers were told when they are answered.
        let ping = Record::default().int(-2).int(11).frame();
        for client in 0..CLIENTS {
            let expected = real.ask(client, &ping, -2, |_| 11);
            let found = simulated.ask(client, &ping, -2, |_| 11);
            assert_eq!(
                found, expected,
                "step {step}, {kinds:?}, events of {client}"
            );
        }
    }
    assert!(has_all(&seen), "too little was refused");
}

const KINDS: &[i32] = &[2, 3, 4, 5, 9, 12, 14, 14, 14, 15, 15, 19];
const CHANGES: &[i32] = &[2, 2, 5, 13, 13, 15, 15, 19];

fn request(random: &mut Rng, round: usize, xid: i32, kind: i32) -> Vec<u8> {
    let record = Record::default().int(xid).int(kind);
    let record = match kind {
        9 => record.text(&path(random, round)),
        3 | 4 | 12 => record.text(&path(random, round)).flag(random.bool()),
        14 => {
            let mut record = record;
            for _ in 0..random.usize(..5) {
                let kind = CHANGES[random.usize(..CHANGES.len())];
                record = change(random, round, record.int(kind).flag(false).int(-1), kind);
            }
            record.int(-1).flag(true).int(-1)
        }
        _ => change(random, round, record, kind),
    };
    record.frame()
}

fn change(random: &mut Rng, round: usize, record: Record, kind: i32) -> Record {
    let path = &path(random, round);
    let version = if random.u8(..3) == 0 {
        random.i32(0..3)
    } else {
        -1
    };
    match kind {
        2 | 13 => record.text(path).int(version),
        5 => record
            .text(path)
            .text(["", "data"][random.usize(..2)])
            .int(version),
        19 => record.node(path, 4),
        _ => record.node(path, [0, 0, 0, 1, 1, 3, 3][random.usize(..7)]),
    }
}

fn path(random: &mut Rng, round: usize) -> String {
    let paths = ["/a", "/b", "/a/x", "/a/y-", "/b/x", "/a/x/z", "/a/x/z/w"];
    paths[random.usize(..7)].replace("/a", &format!("/a{round}"))
}
