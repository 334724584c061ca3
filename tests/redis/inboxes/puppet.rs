//! What a puppet of this suite can be told: to take a lock, tell of it, and let it go.

use crosslock::Locker;
use support::puppet::{is_puppet, orders, place, say_holding};
use support::say;

#[test]
fn child_obeys() {
    if !is_puppet() {
        return;
    }
    let (url, ttl) = place();
    let locker = Locker::builder(&url).ttl(ttl).build().expect("open");
    for order in orders() {
        let name = order.strip_prefix("pass ").expect("nothing else is told");
        let guard = locker.lock(name).expect("lock");
        say_holding(guard.fencing_token(), guard.was_abandoned());
        guard.unlock().expect("unlock");
        say("unlocked");
    }
}
