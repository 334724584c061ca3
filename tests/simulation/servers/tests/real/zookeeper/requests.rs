//! The same requests by chance, and the same answers and events.

use std::time::Duration;

use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_servers::zookeeper::jute::Writer;
use crosslock_world::service::Connection;
use fastrand::Rng;
use support::ZooKeeper as RealZooKeeper;

use super::records::{Asked as _, Until, Welcome, node, shown};
use crate::peers::{Both, Peer, Side};

const CLIENTS: usize = 3;
/// Long sessions: a busy machine ends none.
const TICK: Duration = Duration::from_secs(1);

/// The errors that are to be seen: a multi's for what it hasn't tried, no node, a bad version, children of ephemeral
/// nodes, a node that exists, and one with children.
const CODES: [i32; 6] = [-2, -101, -103, -108, -110, -111];

/// So many steps are at the same nodes: some can't be deleted by anybody.
const ROUND: usize = 200;

/// Opens the sessions of all clients.
fn sessions(server: &mut dyn Peer, connections: &[Connection]) -> Vec<i64> {
    let open = |connection: &Connection| {
        server.send(*connection, &Welcome::new(20_000).asked(0));
        let come = server.receive(*connection, Until::Frames(1));
        Welcome::of(&come.frames[0]).expect("a welcome").session
    };
    connections.iter().map(open).collect()
}

fn has_all(seen: &str) -> bool {
    let mut codes = CODES.iter();
    codes.all(|code| seen.contains(&format!(" {code}")))
}

#[test]
fn random_requests_are_answered_as_by_zookeeper() {
    let real = RealZooKeeper::setup().tick(TICK).start();
    let mut both = Both::new(vec![real.own_addr()], ZooKeeper::new(1, TICK));
    let mut random = both.simulated.random.fork();
    let connections = [0; CLIENTS].map(|at| both.connect(at));
    let (theirs, ours) = both.each(|peer, _| sessions(peer, &connections));
    // What comes up to an answer.
    let mut ask =
        |what: String, client: usize, bytes: &[u8], last: i32, kind: &dyn Fn(i32) -> i32| {
            both.alike(what, |peer, side| {
                let sessions = if side == Side::Real { &theirs } else { &ours };
                peer.send(connections[client], bytes);
                let come = peer.receive(connections[client], Until::Answer(last));
                let frames = come.frames.iter();
                let shown: Vec<_> = frames.map(|frame| shown(frame, kind, sessions)).collect();
                (shown, come.closed)
            })
        };
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
        let what = format!("step {step}, {kinds:?}");
        let (told, _) = ask(what, client, &bytes, last, &kind);
        seen.push_str(&told.join("\n"));
        // All watchers were told when they are answered.
        let ping = Writer::default().int(-2).int(11).frame();
        for client in 0..CLIENTS {
            let what = format!("step {step}, {kinds:?}, events of {client}");
            ask(what, client, &ping, -2, &|_| 11);
        }
    }
    assert!(has_all(&seen), "too little was refused");
}

const KINDS: &[i32] = &[2, 3, 4, 5, 9, 12, 14, 14, 14, 15, 15, 19];
const CHANGES: &[i32] = &[2, 2, 5, 13, 13, 15, 15, 19];

fn request(random: &mut Rng, round: usize, xid: i32, kind: i32) -> Vec<u8> {
    let mut record = Writer::default();
    record.int(xid).int(kind);
    match kind {
        9 => _ = record.text(&path(random, round)),
        3 | 4 | 12 => _ = record.text(&path(random, round)).flag(random.bool()),
        14 => {
            for _ in 0..random.usize(..5) {
                let kind = CHANGES[random.usize(..CHANGES.len())];
                record.int(kind).flag(false).int(-1);
                change(random, round, &mut record, kind);
            }
            record.int(-1).flag(true).int(-1);
        }
        _ => change(random, round, &mut record, kind),
    }
    record.frame()
}

fn change(random: &mut Rng, round: usize, record: &mut Writer, kind: i32) {
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
        19 => node(record, path, 4),
        _ => node(record, path, [0, 0, 0, 1, 1, 3, 3][random.usize(..7)]),
    };
}

fn path(random: &mut Rng, round: usize) -> String {
    let paths = ["/a", "/b", "/a/x", "/a/y-", "/b/x", "/a/x/z", "/a/x/z/w"];
    paths[random.usize(..7)].replace("/a", &format!("/a{round}"))
}
