//! A process that takes locks as it is told.
//!
//! What it can be told is in the module `puppet` of each suite, whose test `child_obeys` is what the process runs.

use std::env;
use std::iter;
use std::time::Duration;

use super::{Child, hear, is_child, now, say};

/// In the environment of a child: where its locks are.
pub const URL: &str = "TEST_URL";
/// In the environment of a child: for how long its leases last.
pub const TTL: &str = "TEST_TTL_MS";

const ENTRY: &str = "puppet::child_obeys";
/// Far more than anything takes that it is told, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process with a locker of its own; dropping it kills it.
#[derive(Debug)]
pub struct Puppet(Child);

/// What a process tells of a lock that it has taken.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    pub token: u64,
    pub abandoned: bool,
    /// On the clock of [`now`].
    pub since: Duration,
}

impl Puppet {
    /// Starts one, and waits until it has connected.
    pub fn start(url: &str, ttl: Duration) -> Self {
        Self::start_many(1, url, ttl).remove(0)
    }

    /// Starts so many at once.
    pub fn start_many(count: usize, url: &str, ttl: Duration) -> Vec<Self> {
        let ttl = ttl.as_millis().to_string();
        let args = [(URL, url), (TTL, &ttl)];
        let start = |_| Puppet(Child::spawn(ENTRY, &args));
        let mut many: Vec<_> = (0..count).map(start).collect();
        for one in &mut many {
            one.0.wait_for("ready", PATIENCE);
        }
        many
    }

    /// Tells it something, and doesn't wait until it is done.
    pub fn tell(&mut self, order: &str) {
        self.0.tell(order);
    }

    /// Waits for an answer that begins with `word`, and returns its rest.
    #[track_caller]
    pub fn answer(&mut self, word: &str) -> String {
        self.0.wait_for(word, PATIENCE)
    }

    /// Has it take a lock, and keep it.
    pub fn lock(&mut self, name: &str) {
        self.tell(&format!("lock {name}"));
    }

    /// Has it take a lock, and release it at once.
    pub fn pass(&mut self, name: &str) {
        self.tell(&format!("pass {name}"));
    }

    /// Has it wait for a moment for a lock that is taken.
    pub fn give_up(&mut self, name: &str) {
        self.tell(&format!("give-up {name}"));
        self.answer("gave-up");
    }

    /// Has it take and release a lock so many times.
    pub fn take_turns(&mut self, name: &str, turns: usize) {
        self.tell(&format!("turns {turns} {name}"));
    }

    /// Returns how long each call of its turns has waited.
    #[track_caller]
    pub fn waits(&mut self) -> Vec<Duration> {
        // A thousand turns take as long as the machine needs.
        let waits = self.0.wait_for("waited", 10 * PATIENCE);
        let waits = waits.split(' ').map(|nanos| nanos.parse().unwrap());
        waits.map(Duration::from_nanos).collect()
    }

    /// Waits until it has the lock.
    #[track_caller]
    pub fn holding(&mut self) -> Holding {
        let line = self.answer("holds");
        let words: Vec<_> = line.split(' ').collect();
        Holding {
            token: words[0].parse().unwrap(),
            abandoned: words[1].parse().unwrap(),
            since: Duration::from_nanos(words[2].parse().unwrap()),
        }
    }

    /// Whether it has said that it has the lock, and nobody has asked.
    pub fn has_said_that_it_holds(&mut self) -> bool {
        self.0.has_said("holds")
    }

    /// Whether the server says that its lock is its own.
    pub fn verifies(&mut self) -> bool {
        self.tell("verify");
        self.answer("verified") == "true"
    }

    /// Has it release the lock that it keeps.
    pub fn unlock(&mut self) {
        self.tell("unlock");
        self.unlocked();
    }

    /// Waits until it has released the lock.
    #[track_caller]
    pub fn unlocked(&mut self) {
        self.answer("unlocked");
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Kills it, as [`Child::kill`] does.
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Stops it, as [`Child::stop`] does.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Continues it after [`Puppet::stop`].
    pub fn cont(&self) {
        self.0.cont();
    }
}

/// In the child: whether this process is a puppet.
pub fn is_puppet() -> bool {
    is_child(ENTRY)
}

/// In the child: what it is told, until nothing more can come.
pub fn orders() -> impl Iterator<Item = String> {
    say("ready");
    iter::from_fn(hear)
}

/// In the child: tells what [`Puppet::holding`] returns.
pub fn say_holding(token: u64, abandoned: bool) {
    let since = now();
    say(&format!("holds {token} {abandoned} {}", since.as_nanos()));
}

/// In a child: where its locks are, and for how long its leases last.
pub fn place() -> (String, Duration) {
    let arg = |name| env::var(name).expect("the parent sets it");
    let ttl = arg(TTL).parse().expect("a number");
    (arg(URL), Duration::from_millis(ttl))
}
