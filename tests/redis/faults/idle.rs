//! How many connections stay open while nobody uses them.

use std::sync::Barrier;
use std::thread;

use crosslock::Locker;

use super::*;
use support::{Proxy, RedisServer, wait_until};

/// Has so many calls use a connection each at a time.
fn call_together(locker: &Locker, count: usize) {
    let together = Barrier::new(count);
    thread::scope(|scope| {
        for n in 0..count {
            let together = &together;
            scope.spawn(move || {
                let guard = locker.lock(&format!("fill-{n}")).expect("a free lock");
                together.wait();
                guard.verify().expect("a held lock");
            });
        }
    });
}

#[test]
fn many_calls_at_a_time_leave_few_idle_connections() {
    const MOST: usize = 32;
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = open(&proxy.url());
    while proxy.accepted() < 3 * MOST as u64 {
        call_together(&locker, 3 * MOST);
    }
    wait_until("the others to be closed", PATIENCE, || {
        server.connected_clients() <= MOST
    });
    // Those that are left are used.
    let accepted = proxy.accepted();
    for n in 0..3 * MOST {
        locker.lock(&n.to_string()).unwrap().unlock().unwrap();
    }
    assert_eq!(proxy.accepted(), accepted);
}
