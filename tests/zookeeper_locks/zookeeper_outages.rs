//! Servers that can't be reached, or don't answer, and what `diagnose` and errors say of them.

use std::time::Duration;

use crosslock::{Error, Locker};
use support::{ClosedPort, Fault, eventually};

use crate::{PATIENCE, builder, line, setup};

/// Its session goes on, and would keep the lock from all others.
#[test]
fn lease_that_was_adopted_without_an_answer_ends_with_its_ttl() {
    let server = setup().proxies().start();
    let second = Duration::from_secs(1);
    // What it watches for is asked beside its calls, and mustn't meet the proxy.
    let url = format!("zk://{}/locks?tick=100ms", server.own_addr());
    let giver = Locker::builder(&url).namespace("ns").ttl(6 * second);
    let giver = giver.build().unwrap();
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

#[test]
fn members_are_told_with_their_version() {
    let ensemble = setup().ensemble(3);
    let url = format!("{}?tick=100ms", ensemble.url_at("locks"));
    let builder = Locker::builder(&url).outage_timeout(PATIENCE);
    let found = builder.build().unwrap().diagnose().unwrap();
    let of = |check: &str| {
        let mut all = found.iter().filter(|one| one.check == check);
        &all.next().expect("it is looked at").found
    };
    assert!(of("members").contains(" is leader"), "{found:?}");
    // Such as 3.8.0, which is the same of all.
    let version = of("version");
    assert!(version.starts_with("ZooKeeper 3.") && !version.contains(','));
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
