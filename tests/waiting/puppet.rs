//! A process that does what it is told.

// Each engine needs its own part.
#![allow(dead_code)]

use std::time::Duration;

use crosslock::{LockGuard, Locker};

use super::{PATIENCE, TTL, URL, arg, millis, now, wait_in_vain};
use support::{Child, hear, is_child, say};

/// A process with a locker of its own; dropping it kills it.
pub(crate) struct Puppet(Child);

/// What a process tells of a lock that it has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) token: u64,
    pub(crate) abandoned: bool,
    pub(crate) since: Duration,
}

/// The locker that the parent's arguments describe.
pub(crate) fn locker() -> Locker {
    let ttl = millis(arg(TTL).parse().unwrap());
    Locker::builder(&arg(URL)).ttl(ttl).build().unwrap()
}

#[test]
fn child_obeys() {
    if !is_child("puppet::child_obeys") {
        return;
    }
    let lock = locker();
    let mut guard = None;
    say("ready");
    while let Some(order) = hear() {
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
    let since = now();
    let (token, abandoned) = (guard.fencing_token(), guard.abandoned());
    say(&format!("holds {token} {abandoned} {}", since.as_nanos()));
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

impl Puppet {
    pub(crate) fn start(url: &str, ttl: Duration) -> Self {
        let ttl = ttl.as_millis().to_string();
        Puppet(Child::spawn(
            "puppet::child_obeys",
            &[(URL, url), (TTL, &ttl)],
        ))
    }

    /// Starts so many, and waits until they have connected.
    pub(crate) fn start_many(count: usize, url: &str, ttl: Duration) -> Vec<Self> {
        let mut many: Vec<_> = (0..count).map(|_| Puppet::start(url, ttl)).collect();
        for one in &mut many {
            one.0.wait_for("ready", PATIENCE);
        }
        many
    }

    /// Takes a lock, and keeps it.
    pub(crate) fn lock(&mut self, name: &str) {
        self.0.tell(&format!("lock {name}"));
    }

    /// Takes a lock and releases it at once.
    pub(crate) fn pass(&mut self, name: &str) {
        self.0.tell(&format!("pass {name}"));
    }

    /// Waits for a moment for a lock that is taken.
    pub(crate) fn give_up(&mut self, name: &str) {
        self.0.tell(&format!("give-up {name}"));
        self.0.wait_for("gave-up", PATIENCE);
    }

    /// Takes and releases a lock so many times.
    pub(crate) fn take_turns(&mut self, name: &str, turns: usize) {
        self.0.tell(&format!("turns {turns} {name}"));
    }

    /// Returns how long each call of its turns has waited.
    #[track_caller]
    pub(crate) fn waits(&mut self) -> Vec<Duration> {
        // A thousand turns take as long as the machine needs.
        let waits = self.0.wait_for("waited", 10 * PATIENCE);
        let waits = waits.split(' ').map(|nanos| nanos.parse().unwrap());
        waits.map(Duration::from_nanos).collect()
    }

    pub(crate) fn unlock(&mut self) {
        self.0.tell("unlock");
        self.unlocked();
    }

    /// Waits until it has the lock.
    #[track_caller]
    pub(crate) fn holding(&mut self) -> Holding {
        let line = self.0.wait_for("holds", PATIENCE);
        let words: Vec<_> = line.split(' ').collect();
        Holding {
            token: words[0].parse().unwrap(),
            abandoned: words[1].parse().unwrap(),
            since: Duration::from_nanos(words[2].parse().unwrap()),
        }
    }

    /// Waits until it has released the lock.
    #[track_caller]
    pub(crate) fn unlocked(&mut self) {
        self.0.wait_for("unlocked", PATIENCE);
    }

    /// Whether it has said that it has the lock, and nobody has asked.
    pub(crate) fn has_said_that_it_holds(&mut self) -> bool {
        self.0.has_said("holds")
    }

    /// Whether the server says that its lock is its own.
    pub(crate) fn verifies(&mut self) -> bool {
        self.0.tell("verify");
        self.0.wait_for("verified", PATIENCE) == "true"
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }

    pub(crate) fn stop(&self) {
        self.0.stop();
    }

    pub(crate) fn cont(&self) {
        self.0.cont();
    }
}
