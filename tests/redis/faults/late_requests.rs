//! A request comes to the server long after it was given up, and was sent again.

use super::*;
use support::{Detour, RedisServer};

/// The digest of `1`, by which its removal knows it.
const SEEN: &str = "356a192b7913b04c54574d18c28d46e6395428ab";

/// Whether a request deletes the value. One that sends a script in full isn't meant.
fn deletes(request: &str) -> bool {
    request.contains(SEEN) || request.contains("\r\nDEL\r\n")
}

#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    let server = RedisServer::start();
    let detour = Detour::to(server.addr());
    let url = format!("redis://{}/", detour.addr());
    let counter = open(&url).mutex(NAME, 0).unwrap();
    // Has the server know the script.
    counter.set(7).unwrap();
    counter.remove().unwrap();
    for newer in [2, 1] {
        counter.set(1).unwrap();
        detour.hold(deletes);
        counter.remove().unwrap();
        detour.await_held();
        assert_eq!(counter.get().unwrap(), 0);
        counter.set(newer).unwrap();
        detour.deliver();
        assert_eq!(counter.get().unwrap(), newer);
        counter.remove().unwrap();
    }
    assert_eq!(counter.get().unwrap(), 0);
}
