//! What is asked for: a name, how it is to be held, and the value that comes with it.

use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::base::inspection::Wants;
use crate::base::name::Key;

/// What is asked for, and what a lease is then about.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// Of several names, one that shows them all.
    pub(crate) key: Key,
    /// Several names, sorted, to be had all or none, or several shards of a queue, of which one is enough; else empty.
    pub(crate) names: Arc<[Key]>,
    pub(crate) mode: Mode,
    pub(crate) prefer: Prefer,
    /// Whether the value that the lock protects comes with it.
    pub(crate) has_value: bool,
}

/// A value that a lock protects, as it is stored; `None` when there is none.
pub(crate) type Stored = Option<Arc<[u8]>>;

/// How a name is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By one.
    Exclusive,
    /// By any number that read.
    Shared,
    /// By as many as there are permits.
    Permits { count: u32, of: u32 },
    /// Not the name itself: one of the tasks of the delay queue of that name.
    Task,
}

impl Mode {
    /// That of its text; `None` of another.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "x" => Some(Mode::Exclusive),
            "r" => Some(Mode::Shared),
            permits => {
                let (count, of) = permits.split_once('/')?;
                let (count, of) = (count.parse().ok()?, of.parse().ok()?);
                let is_possible = (1..=of).contains(&count);
                is_possible.then_some(Mode::Permits { count, of })
            }
        }
    }

    /// How many permits it takes: a lock is one.
    pub(crate) fn permits(self) -> u32 {
        match self {
            Mode::Exclusive | Mode::Shared | Mode::Task => 1,
            Mode::Permits { count, .. } => count,
        }
    }

    /// Of how many permits those are.
    pub(crate) fn of_permits(self) -> Option<u32> {
        match self {
            Mode::Exclusive | Mode::Shared | Mode::Task => None,
            Mode::Permits { of, .. } => Some(of),
        }
    }

    /// As others see a waiter.
    pub(crate) fn wants(self) -> Wants {
        match self {
            Mode::Exclusive | Mode::Task => Wants::Exclusive,
            Mode::Shared => Wants::Shared,
            Mode::Permits { count, .. } => Wants::Permits { count },
        }
    }
}

/// `x`, `r`, `COUNT/OF`, or `t` of a task.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Exclusive => f.write_str("x"),
            Mode::Shared => f.write_str("r"),
            Mode::Task => f.write_str("t"),
            Mode::Permits { count, of } => write!(f, "{count}/{of}"),
        }
    }
}

/// Says who goes first when some callers want to read and others to write.
///
/// Set it by [`LockerBuilder::prefer`](crate::LockerBuilder::prefer), alike in all programs that share a lock.
///
/// # Examples
///
/// ```
/// use crosslock::{Locker, Prefer};
///
/// # fn main() -> crosslock::Result<()> {
/// let locker = Locker::builder("memory:").prefer(Prefer::Readers).build()?;
/// let _reader = locker.read("prefer-example")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prefer {
    /// Neither: phases of reading and writing take turns (the default).
    ///
    /// A reader that comes while a writer waits stands behind that writer. When a writer has ended, all waiting
    /// readers go in together, before the next writer. Neither starves. On etcd and ZooKeeper all go in as they came.
    #[default]
    Fair,
    /// Readers: a reader goes in whenever no writer is inside. Writers may starve.
    Readers,
    /// Writers: a reader goes in only when no writer waits. Readers may starve.
    Writers,
}

impl Claim {
    #[cfg(test)]
    pub(crate) fn exclusive(namespace: &str, name: &str) -> Self {
        let namespace = crate::base::name::Namespace::new(namespace).expect("it is valid");
        Claim {
            key: Key::new(&namespace, name).expect("it is valid"),
            names: Arc::default(),
            mode: Mode::Exclusive,
            prefer: Prefer::Fair,
            has_value: false,
        }
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }

    pub(crate) fn is_multi(&self) -> bool {
        !self.names.is_empty()
    }

    /// All names that it is about.
    pub(crate) fn keys(&self) -> &[Key] {
        if self.is_multi() {
            &self.names
        } else {
            slice::from_ref(&self.key)
        }
    }

    /// The same, with the value.
    #[cfg(feature = "value")]
    pub(crate) fn with_value(self) -> Self {
        Claim {
            has_value: true,
            ..self
        }
    }

    /// One of several shards.
    pub(crate) fn of_shard(&self, key: Key) -> Self {
        Claim {
            key,
            names: Arc::default(),
            ..self.clone()
        }
    }

    /// The same name, held to read.
    pub(crate) fn shared(&self) -> Self {
        Claim {
            mode: Mode::Shared,
            ..self.clone()
        }
    }
}
