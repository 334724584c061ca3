//! A process that does what it is told.

use crosslock::{Error, LockGuard, Locker, MutexGuard};

use super::*;
use support::{Child, hear, is_child, say};

/// A process with a locker of its own; dropping it kills it.
pub(crate) struct Puppet(Child);

/// What a process tells of a lock that it has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) token: u64,
    pub(crate) abandoned: bool,
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
        guard = match &*order {
            "unlock" => {
                drop(guard.take());
                say("unlocked");
                None
            }
            order => match order.strip_prefix("store ") {
                Some(value) => {
                    store(&lock, value.parse().unwrap());
                    None
                }
                None => Some(tell(take(&lock, order))),
            },
        };
    }
}

fn take(lock: &Locker, order: &str) -> LockGuard {
    match order {
        "read" => lock.read(NAME),
        "write" => lock.write(NAME),
        order => {
            if let Some(names) = order.strip_prefix("all ") {
                let names: Vec<_> = names.split(' ').collect();
                return lock.lock_all(&names).unwrap();
            }
            let (count, of) = order.split_once('/').unwrap();
            let semaphore = lock.semaphore(NAME, of.parse().unwrap()).unwrap();
            semaphore.acquire_many(count.parse().unwrap())
        }
    }
    .unwrap()
}

/// Holds the lock until it is known to be lost, and tries to store a value then.
fn store(lock: &Locker, value: u64) {
    let mut guard = lock.mutex(NAME, 0u64).unwrap().lock().unwrap();
    let lease = MutexGuard::lease(&guard);
    say(&format!("holds {} false", lease.fencing_token()));
    let lost = lease.lost().clone();
    lost.recv_timeout(PATIENCE).unwrap();
    *guard = value;
    say(match MutexGuard::unlock(guard) {
        Ok(()) => "committed ok",
        Err(Error::Lost { .. }) => "committed lost",
        Err(error) => panic!("{error}"),
    });
}

fn tell(guard: LockGuard) -> LockGuard {
    let (token, abandoned) = (guard.fencing_token(), guard.abandoned());
    say(&format!("holds {token} {abandoned}"));
    guard
}

impl Puppet {
    pub(crate) fn start(server: &RedisServer, ttl: Duration) -> Self {
        let (url, ttl) = (server.url(), ttl.as_millis().to_string());
        let mut child = Child::spawn("puppet::child_obeys", &[(URL, &url), (TTL, &ttl)]);
        child.wait_for("ready", PATIENCE);
        Puppet(child)
    }

    /// Takes the lock: "read", "write", "2/3" (two of three permits) or "all n m" (several names).
    pub(crate) fn take(&mut self, how: &str) {
        self.0.tell(how);
    }

    /// Waits until it has the lock.
    #[track_caller]
    pub(crate) fn holding(&mut self) -> Holding {
        let line = self.0.wait_for("holds", PATIENCE);
        let (token, abandoned) = line.split_once(' ').unwrap();
        Holding {
            token: token.parse().unwrap(),
            abandoned: abandoned.parse().unwrap(),
        }
    }

    pub(crate) fn unlock(&mut self) {
        self.0.tell("unlock");
        self.0.wait_for("unlocked", PATIENCE);
    }

    /// What became of what it was to store.
    #[track_caller]
    pub(crate) fn committed(&mut self) -> String {
        self.0.wait_for("committed", PATIENCE)
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
