//! What the rules use of the library's vocabulary: as it is.

#[path = "../../../../src/base/backoff.rs"]
pub(crate) mod backoff;
#[path = "../../../../src/base/claim.rs"]
pub(crate) mod claim;
// Of the clocks they need but the points in time.
#[path = "../../../../src/base/boot_instant.rs"]
pub(crate) mod clock;
#[path = "../../../../src/base/error.rs"]
pub(crate) mod error;
#[path = "../../../../src/base/error_debug.rs"]
mod error_debug;
// A module of it, which isn't compiled here, would be looked for elsewhere.
#[rustfmt::skip]
#[path = "../../../../src/base/inspection.rs"]
pub(crate) mod inspection;
#[path = "../../../../src/base/limits.rs"]
pub(crate) mod limits;
#[path = "../../../../src/base/name.rs"]
pub(crate) mod name;
#[path = "../../../../src/base/owner.rs"]
pub(crate) mod owner;
#[path = "../../../../src/base/random.rs"]
pub(crate) mod random;
/// What these ask of the system.
pub(crate) mod sys {
    pub(crate) mod time {
        use std::time::{Duration, SystemTime, UNIX_EPOCH};

        pub(crate) fn wall() -> Duration {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default()
        }
    }

    pub(crate) fn random_fraction() -> f64 {
        fastrand::f64()
    }
}
#[path = "../../../../src/base/token.rs"]
pub(crate) mod token;
#[path = "../../../../src/base/value.rs"]
pub(crate) mod value;
