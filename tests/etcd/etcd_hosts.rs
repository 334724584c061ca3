//! Hosts of a URL that don't answer, can't serve, or hang.

use std::thread;

use super::*;
use support::{BlackHole, ClosedPort, Etcd, Fault, within};

/// How long the first host that swallows connections may delay the call that finds it.
const FIRST_DELAY: Duration = millis(250);

#[test]
fn hosts_that_do_not_answer_are_passed_over() {
    let (server, hole, closed) = (Etcd::start(), BlackHole::start(), ClosedPort::reserve());
    let url = format!(
        "etcd://{},{},{}/",
        hole.addr(),
        closed.addr(),
        server.addr()
    );
    // Any of the three may be its first.
    for _ in 0..10 {
        // Its share of the time would be seconds.
        let builder = Locker::builder(&url).connect_timeout(millis(20_000));
        let locker = within(FIRST_DELAY + millis(200), || builder.build().unwrap());
        // The one that has answered is asked first.
        within(millis(200), || assert_works(&locker));
    }
}

/// Its keepalives have found that its host hangs, and go to another since then.
#[test]
fn waiter_whose_host_hangs_for_long_hears_by_another() {
    let server = Etcd::setup().proxies().start();
    let ttl = millis(3_000);
    let direct = server.own_addr();
    let holder = open(&format!("etcd://{direct}/"));
    let url = format!("etcd://{},{direct}/", server.addr());
    let builder = Locker::builder(&url).ttl(ttl).io_timeout(millis(300));
    let waiter = server.proxy();
    let waiter = waiter.asked_first_by(|| builder.clone().build().expect("open"));
    assert_served(&holder, &waiter, |guard| {
        server.proxy().set(Fault::BlackHole);
        thread::sleep(ttl);
        guard.unlock().expect("unlock");
    });
}
