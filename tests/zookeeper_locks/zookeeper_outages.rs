//! Servers that can't be reached, or don't answer, and what `diagnose` and errors say of them.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crosslock::{Error, Finding, Locker, Verdict};
use support::{ClosedPort, Fault, ZooKeeper, eventually, wait_until};

use crate::{PATIENCE, builder, line, setup};

/// What may be asked of a locker, without a time of the caller's own.
type Call = fn(&Locker) -> Result<(), Error>;

const CALLS: [(&str, Call); 5] = [
    ("lock", |locker| locker.lock("a").map(drop)),
    ("try_lock", |locker| locker.try_lock("a").map(drop)),
    ("lock_all", |locker| locker.lock_all(&["a", "b"]).map(drop)),
    ("inspect", |locker| locker.inspect("a").map(drop)),
    ("break_lock", |locker| locker.break_lock("a").map(drop)),
];

/// Each call ends by itself, and says that the servers can't be reached.
#[track_caller]
fn all_end(locker: &Locker, when: &str) {
    for (name, call) in CALLS {
        let (done, end) = mpsc::channel();
        let locker = locker.clone();
        thread::spawn(move || done.send(call(&locker)));
        let ended = end.recv_timeout(PATIENCE);
        let ended = ended.unwrap_or_else(|_| panic!("{name} goes on, {when}"));
        support::assert_like!(ended, Err(Error::Unavailable { .. }), "{name}, {when}");
    }
}

fn hasty(server: &ZooKeeper) -> Locker {
    let second = Duration::from_secs(1);
    let locker = builder(server).outage_timeout(second).io_timeout(second);
    locker.ttl(4 * second).build().unwrap()
}

#[test]
fn calls_end_where_no_server_can_be_reached() {
    for fault in [Fault::Refuse, Fault::BlackHole] {
        let server = setup().proxies().start();
        let locker = hasty(&server);
        let guard = locker.lock("held").unwrap();
        server.proxy().set(fault);
        all_end(&locker, &format!("{fault:?}"));
        let verified = guard.verify();
        support::assert_like!(
            verified,
            Err(Error::Unavailable { .. } | Error::Lost { .. })
        );
        guard.lost().recv_timeout(PATIENCE).unwrap();
        all_end(&locker, &format!("{fault:?}, without a session"));
    }
}

/// Its session goes on, and would keep the lock from all others.
#[test]
fn lease_that_was_adopted_without_an_answer_ends_with_its_ttl() {
    let server = setup().proxies().start();
    let second = Duration::from_secs(1);
    let giver = builder(&server).ttl(6 * second).build().unwrap();
    let taker = builder(&server).connect_timeout(second).io_timeout(second);
    let taker = taker.ttl(20 * second).build().unwrap();
    let guard = giver.lock("a").unwrap();
    let old = line(&server, "a");
    let ticket = guard.into_ticket().expect("a ticket");
    server.proxy().lose_next_reply("/x-", false);
    let _unanswered = taker.adopt(&ticket).unwrap_err();
    drop((ticket, giver));
    let adopted = line(&server, "a");
    assert!(adopted.len() == 1 && adopted != old, "{adopted:?}");
    // The connection is made anew, and the session goes on.
    server.proxy().set(Fault::None);
    assert!(eventually(PATIENCE, || taker.try_lock("b").is_ok()));
    let is_free = || line(&server, "a").is_empty();
    assert!(
        eventually(2 * PATIENCE, is_free),
        "{:?}",
        line(&server, "a")
    );
    drop(taker);
}

#[track_caller]
fn finding(locker: &Locker, check: &str) -> Finding {
    let found = locker.diagnose().unwrap();
    let one = found.iter().find(|one| one.check == check);
    one.unwrap_or_else(|| panic!("{found:?}")).clone()
}

fn is_weak(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Weak { .. })
}

#[test]
fn member_that_is_down_is_named() {
    let ensemble = setup().ensemble(3);
    let url = format!("{}?tick=100ms", ensemble.url_at("locks"));
    let builder = Locker::builder(&url).outage_timeout(PATIENCE);
    let locker = builder.build().unwrap();
    let members = finding(&locker, "members");
    assert!(!is_weak(&members), "{members:?}");
    assert!(members.found.contains(" is leader"), "{members:?}");
    // Such as 3.8.0, which is the same of all.
    let version = finding(&locker, "version").found;
    assert!(
        version.starts_with("ZooKeeper 3.") && !version.contains(','),
        "{version}"
    );
    let down = (ensemble.leader() + 1) % 3;
    ensemble.kill(down);
    let addr = ensemble.member(down).addr();
    wait_until("the others to go on", PATIENCE, || {
        locker.try_lock("a").is_ok()
    });
    let members = finding(&locker, "members");
    assert!(is_weak(&members), "{members:?}");
    let expected = format!("{addr} doesn't answer");
    assert!(members.found.contains(&expected), "{members:?}");
    assert_eq!(
        members.found.matches("doesn't answer").count(),
        1,
        "{members:?}"
    );
}

#[test]
fn hosts_that_were_tried_in_vain_are_named() {
    let closed = [(); 2].map(|()| ClosedPort::reserve());
    let [one, other] = closed.each_ref().map(ClosedPort::addr);
    let opened = Locker::open(&format!("zk://{one},{other}/"));
    let Err(Error::Unavailable { source, .. }) = &opened else {
        panic!("{opened:?}")
    };
    let text = source.to_string();
    for addr in [one, other] {
        assert!(text.contains(&format!("{addr}: ")), "{text}");
    }
}
