//! Hosts of a URL that don't answer, can't serve, or hang.

use std::thread;

use super::*;
use support::{Etcd, Fault};

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
