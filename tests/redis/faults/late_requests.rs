//! A request comes to the server long after it was given up.

use super::*;
use support::{Proxy, RedisServer};

#[cfg(feature = "value")]
#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    /// The digest of `1`, by which its removal knows it.
    const SEEN: &str = "356a192b7913b04c54574d18c28d46e6395428ab";
    let server = RedisServer::start();
    let detour = Proxy::start(server.addr());
    let url = detour.url();
    let counter = open(&url).mutex(NAME, 0).unwrap();
    // Has the server know the script.
    counter.set(7).unwrap();
    counter.remove().unwrap();
    for newer in [2, 1] {
        counter.set(1).unwrap();
        // One that sends a script in full isn't meant.
        detour.cut_off_next(|request| request.contains(SEEN) || request.contains("\r\nDEL\r\n"));
        counter.remove().unwrap();
        detour.await_held();
        assert_eq!(counter.peek().unwrap(), 0);
        counter.set(newer).unwrap();
        detour.deliver();
        assert_eq!(counter.peek().unwrap(), newer);
        counter.remove().unwrap();
    }
    assert_eq!(counter.peek().unwrap(), 0);
}
