//! Sessions that end.

use std::thread;

use crosslock::Locker;
use support::{Fault, ZooKeeper, eventually};

use crate::{PATIENCE, line, locker, setup};

/// Ends sessions while their lockers can't take them up again.
#[track_caller]
fn expire(server: &ZooKeeper, sessions: &[i64]) {
    server.proxy().set(Fault::Refuse);
    assert!(eventually(PATIENCE, || server.proxy().connections() == 0));
    sessions.iter().for_each(|id| server.expire(*id));
}

/// Another locker, and what sessions it has.
fn locker_and_sessions(server: &ZooKeeper) -> (Locker, Vec<i64>) {
    let before = server.sessions();
    let locker = locker(server);
    let mut sessions = server.sessions();
    sessions.retain(|id| !before.contains(id));
    (locker, sessions)
}

#[test]
fn waiter_whose_session_ends_waits_in_another() {
    let server = setup().proxies().start();
    let holder = locker(&server);
    let guard = holder.lock("a").unwrap();
    let (other, sessions) = locker_and_sessions(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| other.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let node = line(&server, "a").pop().unwrap();
        expire(&server, &sessions);
        server.proxy().set(Fault::None);
        assert!(eventually(PATIENCE, || {
            let line = line(&server, "a");
            line.len() == 2 && !line.contains(&node)
        }));
        guard.unlock().unwrap();
        assert!(waits.join().unwrap().unwrap().is_some());
    });
    assert!(line(&server, "a").is_empty());
}

/// It would end with that session, at any time.
#[test]
fn node_of_another_session_is_not_taken_for_ones_own() {
    let server = setup().proxies().start();
    let guard = locker(&server).lock("a").unwrap();
    let (other, sessions) = locker_and_sessions(&server);
    thread::scope(|scope| {
        let waits = scope.spawn(|| other.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let node = line(&server, "a").pop().unwrap();
        // While nobody gets through, another session has a node of that name, as an earlier one of the waiter's would.
        expire(&server, &sessions);
        let mut earlier = server.session();
        let path = format!("/locks/ns/a/{node}");
        assert!(eventually(PATIENCE, || !earlier.exists(&path)));
        assert_eq!(earlier.create(&path, "", 1).as_deref(), Ok(&*path));
        server.proxy().set(Fault::None);
        assert!(eventually(PATIENCE, || !earlier.exists(&path)));
        earlier.close();
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        guard.unlock().unwrap();
        let next = waits.join().unwrap().unwrap().expect("it was released");
        next.verify().unwrap();
    });
}

/// Nor any that has lost its connection, and isn't over.
fn has_no_sessions(server: &ZooKeeper) -> bool {
    let found = server.word("mntr").unwrap_or_default();
    found.contains("zk_global_sessions\t0\n")
}

#[test]
fn session_of_a_locker_that_ends_is_closed_unless_its_lease_goes_on() {
    let server = setup().start();
    let lock = locker(&server);
    drop((lock.lock("a").unwrap(), lock));
    assert!(eventually(PATIENCE / 10, || has_no_sessions(&server)));

    let (giver, taker) = (locker(&server), locker(&server));
    let guard = giver.lock("a").unwrap();
    let token = guard.fencing_token();
    let ticket = guard.into_ticket().expect("a ticket");
    drop(giver);
    assert_eq!(line(&server, "a").len(), 1);
    let guard = taker.adopt(ticket).unwrap();
    assert!(guard.fencing_token() > token);
    guard.unlock().unwrap();
    assert!(line(&server, "a").is_empty());
}

#[test]
fn session_of_a_locker_that_has_adopted_its_own_lease_is_closed() {
    let server = setup().start();
    let lock = locker(&server);
    let ticket = lock.lock("a").unwrap().into_ticket().expect("a ticket");
    lock.adopt(ticket).unwrap().unlock().unwrap();
    drop(lock);
    assert!(eventually(PATIENCE / 10, || has_no_sessions(&server)));
}

/// What an earlier session has sent may be carried out late, between the waiter's last look and its new node.
#[test]
fn older_node_of_the_same_owner_lets_nobody_in() {
    let server = setup().start();
    let (lock, mut earlier) = (locker(&server), server.session());
    drop(lock.lock("a").unwrap());
    let holder = format!("/locks/ns/a/x-{}-lock-", "0".repeat(36));
    let holder = earlier.create(&holder, "", 3).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let node = line(&server, "a").pop().unwrap();
        let uuid = &node[2..38];
        let older = format!("/locks/ns/a/x-{uuid}-lock--000000001");
        earlier.create(&older, "", 1).unwrap();
        // The waiter looks again.
        earlier.set(&holder, "").unwrap();
        let got_in = eventually(PATIENCE / 10, || waits.is_finished());
        assert!(!got_in, "another has the lock");
        earlier.close();
        assert!(waits.join().unwrap().unwrap().is_some());
    });
}

/// The same of a lease that is passed on, whose new node would end with that session.
#[test]
fn adopted_node_of_another_session_is_made_anew() {
    let server = setup().proxies().start();
    let giver = locker(&server);
    let (taker, sessions) = locker_and_sessions(&server);
    let guard = giver.lock("a").unwrap();
    let old = line(&server, "a");
    let ticket = guard.into_ticket().expect("a ticket");
    server.proxy().lose_next_reply("/x-", false);
    let (adopted, earlier) = thread::scope(|scope| {
        let adopts = scope.spawn(|| taker.adopt(&ticket));
        assert!(eventually(PATIENCE, || line(&server, "a") != old));
        let path = format!("/locks/ns/a/{}", line(&server, "a")[0]);
        let mut earlier = server.session();
        let content = earlier.get(&path).unwrap();
        expire(&server, &sessions);
        assert!(eventually(PATIENCE, || !earlier.exists(&path)));
        earlier.create(&path, &content, 1).unwrap();
        server.proxy().set(Fault::None);
        (adopts.join().unwrap(), earlier)
    });
    // Perhaps it has learnt of its session's end only by what it asked.
    let guard = adopted.or_else(|_| taker.adopt(&ticket)).unwrap();
    earlier.close();
    assert_eq!(line(&server, "a").len(), 1);
    guard.verify().unwrap();
}
