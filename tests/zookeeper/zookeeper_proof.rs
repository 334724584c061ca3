//! A lease lasts no longer than the leader is known to keep the session.

use super::*;
use std::thread;

#[test]
fn reader_after_a_downgrade_counts_no_longer_than_the_session_is_proven() {
    let tick = millis(500);
    let server = ZooKeeper::setup().tick(tick).start();
    let ttl = tick * 8;
    let locker = builder(&server.url()).ttl(ttl).build().expect("open");
    let writing = locker.write(NAME).expect("write");
    // A new session counts at once. What is proven later is more than a tick old.
    thread::sleep(tick * 4);
    let reading = writing.downgrade().expect("downgrade");
    let left = reading.remaining();
    assert!(left <= ttl - tick, "{left:?}");
    assert!(reading.is_held());
}
