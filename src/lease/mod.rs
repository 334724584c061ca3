//! Ownership of a name for a limited time.

pub(crate) mod deferred_release;
pub(crate) mod held_by_thread;
pub(crate) mod monitor;
pub(crate) mod renewer;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::base::claim::Claim;
use crate::base::clock::BootInstant;
use crate::base::token::{Ending, HAND_OVERS, Token};
use crate::engine::Stored;

/// Ownership of a name for a limited time: plain data with one owner.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    pub(crate) valid_until: BootInstant,
    /// When it is to be renewed.
    pub(crate) due: BootInstant,
    /// When this process was given it.
    pub(crate) granted: BootInstant,
    /// When its holder got it: later, if it was handed over.
    pub(crate) held_since: BootInstant,
    /// How often it was handed over since it was granted.
    pub(crate) hand_overs: u64,
    /// If it is released before this, the lock stays taken until then.
    pub(crate) kept_until: BootInstant,
    /// Whether its holder was dropped by a panic that began while it was held.
    pub(crate) panicked: bool,
    /// What the lock protects, while it is known here.
    pub(crate) value: Option<Stored>,
}

impl Lease {
    pub(crate) fn remaining(&self, now: BootInstant) -> Duration {
        if self.valid_until == BootInstant::MAX {
            return Duration::MAX;
        }
        if cfg!(crosslock_mutant = "validity_ignored") {
            return self.valid_until.since(now).max(Duration::from_millis(50));
        }
        self.valid_until.since(now)
    }

    pub(crate) fn is_valid(&self, now: BootInstant) -> bool {
        now < self.valid_until || cfg!(crosslock_mutant = "validity_ignored")
    }

    /// Whether the next thread of this process may have it without asking the engine: for at most `hand_over`
    /// since it was granted, and with half of its ttl left at least.
    pub(crate) fn may_be_handed_over(
        &self,
        now: BootInstant,
        ttl: Duration,
        hand_over: Duration,
    ) -> bool {
        now.since(self.granted) < hand_over
            && self.remaining(now) >= ttl / 2
            && self.hand_overs < HAND_OVERS
            // The engine tells the next holder of it, or keeps the lock.
            && !self.panicked
            && self.kept_until <= now
    }

    /// Until when the lock stays taken if it is released now. A panic frees it at once.
    pub(crate) fn kept_until(&self) -> BootInstant {
        if self.panicked {
            BootInstant::START
        } else {
            self.kept_until
        }
    }

    /// How it ends when it is released. What those that share were doing is nobody's concern.
    pub(crate) fn ending(&self) -> Ending {
        let last_used = self.token.number;
        if self.panicked && self.claim.is_exclusive() {
            Ending::Panicked { last_used }
        } else {
            Ending::Clean { last_used }
        }
    }

    /// The same lease, for the next holder in this process, who gets it now, and what that one asked for.
    pub(crate) fn handed_over(self, claim: &Claim, now: BootInstant) -> Self {
        Lease {
            claim: claim.clone(),
            held_since: now,
            token: self.token.handed_over(),
            hand_overs: self.hand_overs + 1,
            ..self
        }
    }
}

/// The end of a lease that was granted or renewed by a command sent after `t0`.
///
/// The server's lease starts no earlier than `t0`; one percent and 2 ms cover the drift of the two clocks and
/// the server's rounding.
pub(crate) fn valid_until(t0: BootInstant, ttl: Duration) -> BootInstant {
    let margin = ttl / 100 + Duration::from_millis(2);
    t0.plus(ttl.saturating_sub(margin))
}

/// The proof of ownership: `<uuid v4>/<host>/<pid>/<thread>`. Whoever knows it can release the lock, so it is
/// shown nowhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    text: Arc<str>,
    process: u32,
}

thread_local! {
    static MAKER: RefCell<Maker> = const { RefCell::new(Maker::NEW) };
}

/// What a thread makes its owners of, in one process: a forked child has another number, and must not use its
/// parent's random numbers again.
struct Maker {
    process: u32,
    suffix: String,
    /// Where the next is put together.
    text: String,
    /// From the system, for several owners at a time: a system call for each would be felt.
    random: [u8; RANDOM],
    used: usize,
}

const RANDOM: usize = 256;

impl Owner {
    /// A new one of this process: the first part is random, the rest tells an operator whom to ask.
    pub(crate) fn of(process: u32) -> Self {
        let made = MAKER.try_with(|maker| maker.borrow_mut().make(process));
        let text = made.unwrap_or_else(|_| {
            // A thread that is ending, in the destructor of another such local or in `atexit`, has none any more.
            let mut maker = Maker::NEW;
            maker.make(process)
        });
        Owner { text, process }
    }

    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Owner::of(std::process::id())
    }

    #[cfg(any(test, feature = "redis"))]
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whom to ask about it: `<host>/<pid>/<thread>`, which proves nothing.
    pub(crate) fn holder(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, holder)| holder)
    }

    /// The process that it was made in.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}

impl Maker {
    const NEW: Maker = Maker {
        process: 0,
        suffix: String::new(),
        text: String::new(),
        random: [0; RANDOM],
        used: RANDOM,
    };

    fn make(&mut self, process: u32) -> Arc<str> {
        if self.process != process {
            (self.process, self.suffix, self.used) = (process, suffix_of(process), RANDOM);
        }
        let uuid = self.uuid();
        self.text.clear();
        self.text
            .push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        self.text.push_str(&self.suffix);
        self.text.as_str().into()
    }

    fn uuid(&mut self) -> Uuid {
        const ONE: usize = size_of::<uuid::Bytes>();
        if self.used == RANDOM {
            if getrandom::fill(&mut self.random).is_err() {
                // It panics, as anything must that needs randomness and has none.
                return Uuid::new_v4();
            }
            self.used = 0;
        }
        let mut bytes = uuid::Bytes::default();
        bytes.copy_from_slice(&self.random[self.used..self.used + ONE]);
        self.used += ONE;
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

fn suffix_of(process: u32) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("/{host}/{process}/{}", thread_number())
}

/// The number by which the system's tools know this thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn thread_number() -> String {
    rustix::thread::gettid().to_string()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn thread_number() -> String {
    let id = format!("{:?}", std::thread::current().id());
    id.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{BootClock, Clock};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn validity_ends_before_the_servers_lease_and_after_most_of_it(ttl_ms in 100u64..=86_400_000) {
            let (t0, ttl) = (BootClock.now(), Duration::from_millis(ttl_ms));
            let valid_for = valid_until(t0, ttl).since(t0);
            prop_assert!(valid_for + Duration::from_millis(2) < ttl);
            prop_assert!(valid_for > ttl * 9 / 10);
        }
    }

    #[test]
    fn short_ttl_never_wraps() {
        let t0 = BootClock.now();
        assert_eq!(valid_until(t0, Duration::from_millis(1)), t0);
    }

    #[test]
    fn owner_is_new_each_time_and_names_its_thread() {
        let (one, two) = (Owner::new(), Owner::new());
        assert_ne!(one, two);
        let parts: Vec<_> = one.as_str().split('/').collect();
        assert_eq!(parts.len(), 4, "{}", one.as_str());
        assert_eq!(Uuid::parse_str(parts[0]).unwrap().get_version_num(), 4);
        assert_eq!(parts[2], std::process::id().to_string());
        assert!(parts[3].parse::<u64>().is_ok(), "{}", parts[3]);
        let other = std::thread::spawn(Owner::new).join().unwrap();
        assert_ne!(other.as_str().split('/').next_back(), Some(parts[3]));
    }

    #[test]
    fn debug_output_hides_the_owner() {
        let owner = Owner::new();
        assert!(!format!("{owner:?}").contains(&owner.as_str()[..8]));
    }
}
