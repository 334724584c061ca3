//! A process that takes locks as it is told: the helper in the role of a puppet.
//!
//! `tests/helper/orders.rs` says what it can be told. It answers each order with one line, which begins with "done".

use std::time::Duration;

use super::Child;

/// In the environment of a child: where its locks are.
pub const URL: &str = "TEST_URL";
/// In the environment of a child: for how long its leases last.
pub const TTL: &str = "TEST_TTL_MS";
/// In the environment of a child: all that it is to do.
pub const SCRIPT: &str = "TEST_SCRIPT";

const ROLE: &str = "puppet";
/// Far more than anything takes that it is told, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process with a locker of its own; dropping it kills it.
#[derive(Debug)]
pub struct Puppet(Child);

/// What a process tells of a lock that it has taken.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    pub token: u64,
    pub abandoned: bool,
}

impl Puppet {
    pub fn start(url: &str, ttl: Duration) -> Self {
        let ttl = ttl.as_millis().to_string();
        Self::when_ready(Child::spawn(ROLE, &[(URL, url), (TTL, &ttl)]))
    }

    /// Starts one whose leases last for an hour, as another user if one is given.
    pub fn start_as(uid: Option<u32>, url: &str) -> Self {
        Self::when_ready(Child::spawn_as(uid, ROLE, &[(URL, url)]))
    }

    /// The same by a program that executes its arguments in its own place.
    pub fn start_under(program: &[&str], url: &str) -> Self {
        Self::when_ready(Child::spawn_under(program, ROLE, &[(URL, url)]))
    }

    fn when_ready(mut child: Child) -> Self {
        child.wait_for("ready", PATIENCE);
        Puppet(child)
    }

    #[track_caller]
    pub fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.answer()
    }

    pub fn tell(&mut self, order: &str) {
        self.0.tell(order);
    }

    #[track_caller]
    pub fn answer(&mut self) -> String {
        self.0.wait_for("done", PATIENCE)
    }

    pub fn has_answered(&mut self) -> bool {
        self.0.has_said("done")
    }

    pub fn lock(&mut self, name: &str) {
        self.tell(&format!("lock {name}"));
    }

    #[track_caller]
    pub fn holding(&mut self) -> Holding {
        let line = self.0.wait_for("done token", PATIENCE);
        let words: Vec<_> = line.split(' ').collect();
        Holding {
            token: words[0].parse().unwrap(),
            abandoned: words[1].parse().unwrap(),
        }
    }

    #[track_caller]
    pub fn unlock(&mut self) {
        self.tell("unlock");
        self.0.wait_for("done ok", PATIENCE);
    }

    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    pub fn kill(&mut self) {
        self.0.kill();
    }

    pub fn stop(&self) {
        self.0.stop();
    }

    pub fn cont(&self) {
        self.0.cont();
    }
}
