//! Ownership of a name for a limited time.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::BootInstant;
use crate::fence::Token;
use crate::name::Key;

/// Ownership of a name for a limited time: plain data with one owner.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) key: Key,
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    pub(crate) valid_until: BootInstant,
}

impl Lease {
    pub(crate) fn remaining(&self, now: BootInstant) -> Duration {
        if self.valid_until == BootInstant::MAX {
            return Duration::MAX;
        }
        self.valid_until.since(now)
    }

    pub(crate) fn is_valid(&self, now: BootInstant) -> bool {
        now < self.valid_until
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
    text: String,
    process: u32,
}

thread_local! {
    /// The end of this thread's owners, and the process that it is for: a forked child has another.
    static SUFFIX: RefCell<(u32, String)> = const { RefCell::new((0, String::new())) };
}

impl Owner {
    /// A new one: the first part is random, the rest tells an operator whom to ask.
    pub(crate) fn new() -> Self {
        let process = std::process::id();
        let mut uuid = Uuid::encode_buffer();
        let uuid = Uuid::new_v4().hyphenated().encode_lower(&mut uuid);
        let text = SUFFIX.with_borrow_mut(|(made_for, suffix)| {
            if *made_for != process {
                (*made_for, *suffix) = (process, suffix_of(process));
            }
            [uuid, suffix].concat()
        });
        Owner { text, process }
    }

    #[cfg(any(test, feature = "redis"))]
    pub(crate) fn as_str(&self) -> &str {
        &self.text
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
    use crate::clock::{BootClock, Clock};
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
