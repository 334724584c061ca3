//! What is logged about replicas that are missing.

use std::time::Duration;

use crosslock::Locker;
use support::{Replicated, wait_until};

use super::{Level, lines_with, listen};

const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_millis(1_500);

#[test]
fn too_few_replicas_are_warned_of_once_by_a_lease_that_can_not_be_renewed() {
    listen();
    let set = Replicated::start(1);
    let url = format!("{}?min_replicas=1&replica_timeout=20ms", set.url(0));
    let builder = Locker::builder(&url).ttl(TTL).outage_timeout(PATIENCE);
    let locker = builder.build().unwrap();
    let guard = locker.lock("too-few").unwrap();
    set.member(1).stop();
    let told = |level| {
        let mut lines = lines_with("\"too-few\"");
        lines.retain(|line| line.level == level && line.text.contains("min_replicas is 1"));
        lines.len()
    };
    wait_until("several renewals that fail", PATIENCE, || {
        told(Level::Debug) > 1
    });
    assert_eq!(told(Level::Warn), 1);
    set.member(1).cont();
    drop(guard);
}
