//! A cluster by TLS, also between its nodes.

use std::thread;

use crosslock::{Error, Locker};
use support::{Setup, wait_until};

use super::{PATIENCE, cause, held, key, name_on, open, slot};

#[test]
fn locks_are_held_and_moved_by_tls_where_the_certificate_is_trusted() {
    let cluster = Setup::new()
        .calm()
        .tls()
        .password("swordfish-7c1d")
        .cluster();
    assert!(cluster.url().starts_with("rediss+cluster://"));
    let (locker, other) = (open(&cluster), open(&cluster));
    let name = name_on(&cluster, 0, 0);
    let guard = held(&locker, &name);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_for(&name, PATIENCE));
        wait_until("the waiter", PATIENCE, || {
            !locker.inspect(&name).expect("inspect").waiters.is_empty()
        });
        // Redirections tell the ports with TLS.
        cluster.move_slot(slot(&name), 1);
        guard.verify().expect("it is held");
        let token = guard.fencing_token();
        guard.unlock().expect("it was held");
        let next = waiting.join().expect("no panic").expect("lock");
        assert!(next.expect("in time").fencing_token() > token);
    });
    let names = [0, 1, 2].map(|node| name_on(&cluster, node, 1));
    let all = locker.lock_all(&names).expect("lock_all");
    all.verify().expect("it is held");
    all.unlock().expect("it was held");
    cluster.failover(5);
    cluster.wait_until_ok();
    drop(held(&locker, &names[2]));
    assert_eq!(cluster.owner(&key(&names[2])), 5);
    let url = format!("rediss+cluster://{}", cluster.hosts());
    let error = Locker::open(&url).expect_err("nobody vouches for it");
    assert!(!matches!(error, Error::Unavailable { .. }), "{error:?}");
    let told = format!("{error}: {}", cause(&error));
    assert!(told.contains("certificate"), "{told}");
    // Nor are connections without TLS mistaken for something else.
    let url = format!("redis+cluster://{}", cluster.hosts());
    let error = Locker::open(&url).expect_err("it speaks TLS");
    assert!(cause(&error).contains("TLS"), "{error:?}");
}
