//! Callers that wait for look-ups.

use super::*;
use crate::engine::redis::servers::heard::Nodes;
use crate::engine::redis::settings::At;
use crate::engine::redis::settings_of;

/// A cluster none of whose nodes is there.
fn nobody() -> Arc<Topology> {
    let (settings, At::Cluster { hosts }) = settings_of("redis+cluster://127.0.0.1:1") else {
        panic!("it is one")
    };
    let ask = Ask::Nodes(Nodes::new(hosts));
    Topology::new(settings, ask)
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

#[test]
fn look_up_that_panicked_is_followed_by_another() {
    let (nodes, (ended, end)) = (nobody(), bounded(0));
    // As its thread leaves it then.
    let before = Instant::now();
    *nodes.lookup.lock() = Lookup {
        began: Some(before),
        running: Some(end),
        ..Lookup::default()
    };
    drop(ended);
    let deadline = soon();
    nodes.look_up_since(Instant::now(), &deadline);
    assert!(!deadline.is_over() && nodes.lookup.lock().began > Some(before));
}

#[test]
fn who_needs_what_is_newer_than_that_has_it_looked_up_more_often() {
    let nodes = nobody();
    let began = || {
        nodes.look_up_within(Some(Duration::from_millis(20)), &soon());
        nodes.lookup.lock().began.unwrap()
    };
    // A machine that is busy may be slower now and then.
    let mut last = began();
    let mut apart = std::iter::repeat_with(|| {
        let next = began();
        next - std::mem::replace(&mut last, next)
    });
    assert!(apart.by_ref().take(100).any(|apart| apart < APART / 2));
}
