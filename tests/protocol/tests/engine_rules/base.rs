//! What the rules use of the library's vocabulary: as it is, but for owners and times, of which they need little.

#[path = "../../../../src/base/backoff.rs"]
pub(crate) mod backoff;
#[path = "../../../../src/base/claim.rs"]
pub(crate) mod claim;
#[path = "../../../../src/base/error.rs"]
pub(crate) mod error;
// A module of it, which isn't compiled here, would be looked for elsewhere.
#[rustfmt::skip]
#[path = "../../../../src/base/inspection.rs"]
pub(crate) mod inspection;
#[path = "../../../../src/base/limits.rs"]
pub(crate) mod limits;
#[path = "../../../../src/base/name.rs"]
pub(crate) mod name;
#[path = "../../../../src/base/random.rs"]
pub(crate) mod random;
#[path = "../../../../src/base/token.rs"]
pub(crate) mod token;

pub(crate) mod owner {
    use std::sync::Arc;

    /// Who asks.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub(crate) struct Owner(Arc<str>);

    impl Owner {
        pub(crate) fn numbered(number: u8) -> Self {
            Owner(format!("{number}").into())
        }

        pub(crate) fn number(&self) -> u8 {
            self.0.parse().expect("it is a number")
        }

        pub(crate) fn holder(&self) -> &str {
            &self.0
        }
    }
}

pub(crate) mod clock {
    use std::time::Duration;

    /// A point in time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct BootInstant(Duration);

    impl BootInstant {
        pub(crate) const START: BootInstant = BootInstant(Duration::ZERO);
        pub(crate) const MAX: BootInstant = BootInstant(Duration::MAX);

        pub(crate) fn plus(self, duration: Duration) -> Self {
            BootInstant(self.0.saturating_add(duration))
        }

        pub(crate) fn since(self, earlier: BootInstant) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }
}
