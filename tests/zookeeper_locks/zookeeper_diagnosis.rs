//! What `diagnose` and errors say of hosts.

use crosslock::{Error, Finding, Locker, Verdict};
use support::{ClosedPort, wait_until};

use crate::{PATIENCE, setup};

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
