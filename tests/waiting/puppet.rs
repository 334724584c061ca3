//! What a puppet of this suite can be told.

use crosslock::{LockGuard, Locker};

use super::{millis, wait_in_vain};
use support::puppet::{is_puppet, orders, place, say_holding};
use support::{now, say};

/// The locker that the parent's arguments describe.
pub(crate) fn locker() -> Locker {
    let (url, ttl) = place();
    Locker::builder(&url).ttl(ttl).build().unwrap()
}

#[test]
fn child_obeys() {
    if !is_puppet() {
        return;
    }
    let lock = locker();
    let mut guard = None;
    for order in orders() {
        let (verb, name) = order.split_once(' ').unwrap_or((&order, ""));
        match verb {
            "lock" => guard = Some(tell(lock.lock(name).unwrap())),
            "pass" => unlock(tell(lock.lock(name).unwrap())),
            "unlock" => unlock(guard.take().unwrap()),
            "give-up" => {
                wait_in_vain(&lock, name, millis(30));
                say("gave-up");
            }
            "turns" => take_turns(&lock, name),
            "verify" => say(&format!(
                "verified {}",
                guard.as_ref().unwrap().verify().is_ok()
            )),
            verb => panic!("{verb:?}"),
        }
    }
}

fn tell(guard: LockGuard) -> LockGuard {
    say_holding(guard.fencing_token(), guard.was_abandoned());
    guard
}

/// Takes and releases a lock many times, and tells how long each call has waited.
fn take_turns(lock: &Locker, order: &str) {
    let (turns, name) = order.split_once(' ').unwrap();
    let waits = (0..turns.parse().unwrap()).map(|_| {
        let begun = now();
        let guard = lock.lock(name).unwrap();
        let waited = now() - begun;
        guard.unlock().unwrap();
        waited.as_nanos().to_string()
    });
    let waits: Vec<_> = waits.collect();
    say(&format!("waited {}", waits.join(" ")));
}

fn unlock(guard: LockGuard) {
    guard.unlock().unwrap();
    say("unlocked");
}
