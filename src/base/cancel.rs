//! What ends waits and I/O before their time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Ends waits and I/O: it is set once, for good. What blocks meanwhile is woken by [`on_set`](Self::on_set); I/O looks
/// at it every few milliseconds.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_set: AtomicBool,
    wakes: Mutex<Wakes>,
}

/// What is to be called, each by its number.
#[derive(Default)]
struct Wakes {
    all: Vec<(u64, Wake)>,
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
    pub(crate) fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Has all that blocks look again, also when it isn't set.
    pub(crate) fn wake(&self) {
        // Called without the lock: a wake may take locks of its own, under which others register.
        let wakes: Vec<_> = {
            let wakes = self.0.wakes.lock();
            wakes.all.iter().map(|(_, wake)| wake.clone()).collect()
        };
        wakes.iter().for_each(|wake| wake());
    }

    /// Has `wake` called when this is set; at once, if it is set already.
    pub(crate) fn on_set(&self, wake: Wake) -> Registration {
        let number = {
            let mut wakes = self.0.wakes.lock();
            let number = wakes.next;
            wakes.next += 1;
            wakes.all.push((number, wake.clone()));
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

impl Drop for Registration {
    fn drop(&mut self) {
        let mut wakes = self.cancel.0.wakes.lock();
        let at = wakes.all.iter().position(|(one, _)| *one == self.number);
        if let Some(at) = at {
            wakes.all.swap_remove(at);
        }
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
    use std::sync::atomic::AtomicU32;

    fn counter() -> (Arc<AtomicU32>, Wake) {
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let wake: Wake = Arc::new(move || _ = counted.fetch_add(1, Ordering::SeqCst));
        (count, wake)
    }

    #[test]
    fn wakes_are_called_while_they_are_registered() {
        let (cancel, (count, wake)) = (Cancel::default(), counter());
        let first = cancel.on_set(wake.clone());
        let second = cancel.on_set(wake);
        drop(first);
        assert_eq!(count.load(Ordering::SeqCst), 0);
        cancel.clone().set();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        drop(second);
        cancel.set();
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn wake_that_comes_late_is_called_at_once() {
        let (cancel, (count, wake)) = (Cancel::default(), counter());
        cancel.set();
        let _late = cancel.on_set(wake);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
