//! Servers of ZooKeeper.

use std::path::Path;

use super::*;
use support::{Ensemble, Fault, ZooKeeper, wait_until};

const NO_NODE: i32 = -101;
/// What a call is told whose connection was closed before the answer came.
const CONNECTION_LOSS: i32 = -4;
/// Flags of nodes.
const STAYS: i32 = 0;
const EPHEMERAL: i32 = 1;
const NUMBERED: i32 = 2;

#[test]
fn server_keeps_nodes_until_their_session_ends() {
    let server = ZooKeeper::start();
    assert_eq!(server.mode().as_deref(), Some("standalone"));
    let mut one = server.session();
    assert_eq!(one.timeout(), Duration::from_secs(2), "20 ticks");
    assert_eq!(one.create("/a", "data", STAYS).unwrap(), "/a");
    let path = one.create("/a/x-", "", EPHEMERAL + NUMBERED).unwrap();
    assert_eq!(path, "/a/x-0000000000");
    let mut two = server.session();
    assert_eq!(two.get("/a").unwrap(), "data");
    two.set("/a", "other").unwrap();
    assert_eq!(two.children("/a").unwrap(), ["x-0000000000"]);
    assert_eq!(server.nodes(), ["/a", "/a/x-0000000000"]);
    one.close();
    assert!(!two.exists(&path) && two.exists("/a"));
    two.delete("/a").unwrap();
    assert_eq!(two.delete("/a"), Err(NO_NODE));
    two.close();
    assert!(server.nodes().is_empty());
}

#[test]
fn session_of_another_is_ended() {
    let server = ZooKeeper::start();
    let mut session = server.session();
    session.create("/a", "", EPHEMERAL).unwrap();
    assert_eq!(server.sessions(), [session.id()]);
    server.expire(session.id());
    assert!(server.nodes().is_empty());
    wait_until("its connection to end", PATIENCE, || {
        server.sessions().is_empty()
    });
}

#[test]
fn silent_session_ends() {
    let server = ZooKeeper::start();
    let brief = Duration::from_millis(1);
    let mut session = support::RawSession::open(server.addr(), brief);
    assert_eq!(session.timeout(), Duration::from_millis(200), "two ticks");
    session.create("/a", "", EPHEMERAL).unwrap();
    wait_until("its node to go", PATIENCE, || server.nodes().is_empty());
}

#[test]
fn stopped_server_is_silent_and_restarted_one_has_its_nodes() {
    let server = ZooKeeper::start();
    server.session().create("/a", "", STAYS).unwrap();
    server.stop();
    assert!(!server.is_running() && server.mode().is_none());
    TcpStream::connect(server.addr()).expect("the system accepts");
    server.go_on();
    assert_eq!(server.nodes(), ["/a"]);
    server.kill();
    assert!(TcpStream::connect(server.addr()).is_err());
    server.restart();
    assert_eq!(server.nodes(), ["/a"]);
}

#[test]
fn ensemble_elects_another_leader_and_takes_the_old_one_back() {
    let ensemble = Ensemble::of(3);
    let old = ensemble.leader();
    let mut session = ensemble.member(old).session();
    session.create("/a", "", STAYS).unwrap();
    ensemble.kill(old);
    let new = ensemble.wait_for_other_leader(old);
    let mut session = ensemble.member(new).session();
    session.create("/b", "", STAYS).unwrap();
    ensemble.restart(old);
    assert_eq!(ensemble.member(old).nodes(), ["/a", "/b"]);
    assert_eq!(ensemble.member(old).mode().as_deref(), Some("follower"));
    ensemble.stop(new);
    let third = ensemble.wait_for_other_leader(new);
    ensemble.go_on(new);
    assert_eq!(ensemble.member(third).nodes(), ["/a", "/b"]);
    assert_eq!(ensemble.url().matches("127.0.0.1:").count(), 3);
}

/// The leader, which the others don't elect again when they hear nothing of it but its votes: all have the same data,
/// of which a leader that has written nothing yet has more, and among those the one with the highest number wins. It
/// has no sessions.
fn leader_that_loses_elections(ensemble: &Ensemble) -> usize {
    const LAST: usize = 2;
    let mut leader = ensemble.leader();
    if leader == LAST {
        ensemble.kill(LAST);
        leader = ensemble.wait_for_other_leader(LAST);
        ensemble.restart(LAST);
    }
    let mut session = ensemble.member(leader).session();
    session.create("/first", "", STAYS).unwrap();
    session.close();
    // The end of each session is written, by the leader first: nobody else would know of one that ends while it is
    // alone.
    wait_until("all sessions to end", PATIENCE, || {
        let sessions = ensemble.member(leader).word("dump");
        sessions.is_some_and(|sessions| !sessions.contains("\t0x"))
    });
    wait_until("all to have the same data", PATIENCE, || {
        let [first, others @ ..] = [0, 1, LAST].map(|index| last_change(ensemble.member(index)));
        first.is_some() && others.iter().all(|other| *other == first)
    });
    leader
}

/// The number of the last change that a server knows of.
fn last_change(server: &ZooKeeper) -> Option<String> {
    let answer = server.word("srvr")?;
    let mut lines = answer.lines();
    lines.find_map(|line| line.strip_prefix("Zxid: ").map(str::to_owned))
}

#[test]
fn leader_that_only_clients_reach_is_replaced() {
    let ensemble = ZooKeeper::setup().proxies().ensemble(3);
    let old = leader_that_loses_elections(&ensemble);
    ensemble.isolate(old);
    let new = ensemble.wait_for_other_leader(old);
    let mut session = ensemble.member(new).session();
    session.create("/a", "", STAYS).unwrap();
    let member = ensemble.member(old);
    assert_ne!(member.mode().as_deref(), Some("leader"));
    ensemble.take_back(old);
    wait_until("it to follow", PATIENCE, || {
        member.mode().as_deref() == Some("follower")
    });
    assert_eq!(member.nodes(), ["/a", "/first"]);
}

#[test]
fn follower_that_is_cut_off_from_its_leader_serves_reads_for_a_while() {
    let setup = ZooKeeper::setup().proxies();
    // The early session sends nothing until it is asked.
    let setup = setup.config("maxSessionTimeout", "60000");
    let ensemble = setup.config("syncLimit", "100").ensemble(3);
    let leader = ensemble.leader();
    let follower = (leader + 1) % 3;
    let mut early = support::RawSession::open(ensemble.member(follower).addr(), PATIENCE);
    ensemble.cut(follower, leader);
    let mut session = ensemble.member(leader).session();
    session.create("/a", "", STAYS).unwrap();
    assert_eq!(early.children("/").unwrap(), ["zookeeper"]);
    ensemble.join(follower, leader);
    let member = ensemble.member(follower);
    wait_until("it to follow again", PATIENCE, || {
        member.mode().as_deref() == Some("follower") && member.nodes() == ["/a"]
    });
}

#[test]
fn proxy_counts_requests_and_loses_a_reply() {
    let server = ZooKeeper::setup().proxies().start();
    let proxy = server.proxy();
    // Anyone's, and the first of a session.
    let hello = [0, 0, 0, 4, 0, 0, 0, 0];
    proxy.lose_next_reply("/a", true);
    let mut wire = Wire::to(proxy);
    wire.0.write_all(&hello).unwrap();
    wait_until("it to arrive", PATIENCE, || proxy.requests() == 1);
    proxy.set(Fault::Refuse);
    assert!(wire.is_ended());
    proxy.set(Fault::None);
    let mut session = support::RawSession::open(proxy.addr(), PATIENCE);
    let before = proxy.requests();
    session.create("/a", "", STAYS).unwrap();
    assert_eq!(proxy.requests(), before + 1);
    proxy.lose_next_reply("/b", true);
    assert_eq!(session.create("/b", "", STAYS), Err(CONNECTION_LOSS));
    assert_eq!(proxy.lost_replies(), 1);
    assert_eq!(server.nodes(), ["/a", "/b"]);
}

#[test]
fn dropped_ensemble_leaves_nothing() {
    let ensemble = Ensemble::of(3);
    let members = ensemble.members().iter();
    let left: Vec<_> = members
        .map(|one| (one.pid(), one.dir().to_owned()))
        .collect();
    drop(ensemble);
    assert!(
        !left
            .iter()
            .any(|(pid, dir)| is_running(*pid) || Path::exists(dir))
    );
}
