//! What ends waits and I/O before their time.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::fork::{AfterFork, ForkLocal};
use crate::base::sys::sync::Mutex;

/// Ends the waits of lockers: see [`Locker::with_cancel`](crate::Locker::with_cancel).
///
/// Clones are one token. A token that was cancelled stays cancelled. It ends waits for locks, and touches no guard.
///
/// A child made by `fork` has a token of its own, which begins as its parent's was.
///
/// # Examples
///
/// ```
/// use crosslock::{CancelToken, Error, Locker};
///
/// # fn main() -> crosslock::Result<()> {
/// let locker = Locker::open("memory:")?;
/// let held = locker.lock("token-example")?;
/// let token = CancelToken::new();
/// let other = locker.with_cancel(&token);
/// let waiter = std::thread::spawn(move || other.lock("token-example"));
/// token.cancel();
/// let waited = waiter.join().expect("no panic");
/// assert!(matches!(waited, Err(Error::Cancelled { .. })));
/// held.check()
/// # }
/// ```
#[derive(Clone)]
pub struct CancelToken(Arc<ForkLocal<Cancel>>);

impl CancelToken {
    /// Makes a token that isn't cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(!crosslock::CancelToken::new().is_cancelled());
    /// ```
    pub fn new() -> Self {
        CancelToken(Arc::new(ForkLocal::new(Cancel::default())))
    }

    /// Cancels it, for good. Has no effect on a token that is cancelled already.
    ///
    /// The call doesn't wait for the calls that it ends. Don't make it in a signal handler, but in a thread that the
    /// handler wakes, as `examples/shutdown.rs` does.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = crosslock::CancelToken::new();
    /// token.clone().cancel();
    /// assert!(token.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        self.cancellation().set();
    }

    /// Says whether it is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = crosslock::CancelToken::new();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().is_set()
    }

    /// That of this process.
    pub(crate) fn cancellation(&self) -> &Cancel {
        self.0.get()
    }
}

// A panic leaves nothing half done in it.
impl UnwindSafe for CancelToken {}
impl RefUnwindSafe for CancelToken {}

impl Default for CancelToken {
    fn default() -> Self {
        CancelToken::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Ends waits and I/O: it is set once, for good. What blocks meanwhile is woken by [`on_set`](Self::on_set); short I/O
/// looks at it every few milliseconds.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_set: AtomicBool,
    /// What is asked as long as it isn't set.
    condition: Option<Condition>,
    wakes: Mutex<Wakes>,
}

/// Says whether what looks at a [`Cancel`] is to end.
type Condition = Box<dyn Fn() -> bool + Send + Sync>;

/// What is to be called, each by its number.
#[derive(Default)]
struct Wakes {
    all: BTreeMap<u64, Wake>,
    next: u64,
}

/// Wakes what blocks. It must not block itself.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// While this lives, a wake is called when its [`Cancel`] is set.
#[must_use = "the wake is forgotten when this is dropped"]
pub(crate) struct Registration {
    cancel: Cancel,
    number: u64,
}

impl Cancel {
    /// One that is set as soon as any of `parents` is, while the registrations live. It keeps none of them.
    pub(crate) fn of_any<'a>(
        parents: impl IntoIterator<Item = &'a Cancel>,
    ) -> (Self, Vec<Registration>) {
        let any = Cancel::default();
        let follow = |parent: &Cancel| {
            let (child, of) = (any.clone(), Arc::downgrade(&parent.0));
            parent.on_set(Arc::new(move || match of.upgrade() {
                Some(parent) if parent.is_set.load(Ordering::SeqCst) => child.set(),
                _ => child.wake(),
            }))
        };
        let registrations = parents.into_iter().map(follow).collect();
        (any, registrations)
    }

    /// One that is also set while a condition holds, which is asked by whoever looks: I/O does so often. It mustn't
    /// block. Nobody is woken when it comes to hold.
    #[allow(
        dead_code,
        reason = "engines with several servers use it, which may be left out"
    )]
    pub(crate) fn when(condition: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Cancel(Arc::new(Shared {
            condition: Some(Box::new(condition)),
            ..Shared::default()
        }))
    }

    /// Whether all that blocks is woken when it is set. If not, it has to be asked now and then.
    #[allow(
        dead_code,
        reason = "engines with a server use it, which may be left out"
    )]
    pub(crate) fn wakes(&self) -> bool {
        self.0.condition.is_none()
    }

    pub(crate) fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn is_set(&self) -> bool {
        let holds = |condition: &Condition| condition();
        self.0.is_set.load(Ordering::SeqCst) || self.0.condition.as_ref().is_some_and(holds)
    }

    /// Has all that blocks look again, also when it isn't set.
    pub(crate) fn wake(&self) {
        // Called without the lock: a wake may take locks of its own, under which others register.
        let wakes: Vec<_> = {
            let wakes = self.0.wakes.lock();
            wakes.all.values().cloned().collect()
        };
        wakes.iter().for_each(|wake| wake());
    }

    /// Has `wake` called when this is set; at once, if it is set already.
    pub(crate) fn on_set(&self, wake: Wake) -> Registration {
        let number = {
            let mut wakes = self.0.wakes.lock();
            let number = wakes.next;
            wakes.next += 1;
            wakes.all.insert(number, wake.clone());
            number
        };
        // Looked at after it is registered: whoever sets it later finds the wake.
        if self.is_set() {
            wake();
        }
        Registration {
            cancel: self.clone(),
            number,
        }
    }
}

/// Whoever waits in the parent isn't woken from a child.
impl AfterFork for Cancel {
    fn after_fork(&self) -> Self {
        let own = Cancel::default();
        own.0.is_set.store(self.is_set(), Ordering::SeqCst);
        own
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let wake = self.cancel.0.wakes.lock().all.remove(&self.number);
        // Not under the lock: it may own what registers elsewhere.
        drop(wake);
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_set()).finish()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_one_that_followed_stays() {
        let parent = Cancel::default();
        let (any, registrations) = Cancel::of_any([&parent]);
        let weak = Arc::downgrade(&any.0);
        drop((any, registrations));
        assert!(weak.upgrade().is_none());
        assert!(parent.0.wakes.lock().all.is_empty());
    }
}
