//! A value that a forked child doesn't share with its parent.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

/// A value for each process. A child that is forked off begins with a fresh one, and neither uses nor drops its
/// parent's: locks in it may have been held at that moment by threads that the child doesn't have.
#[derive(Debug)]
pub(crate) struct ForkLocal<T: AfterFork> {
    process: u32,
    value: Arc<T>,
    /// That of a child, in which this one is the parent's.
    child: OnceLock<Box<ForkLocal<T>>>,
}

/// What a child begins with.
pub(crate) trait AfterFork {
    /// A new value, from the parts of this one that never change.
    fn after_fork(&self) -> Self;
}

impl<T: Default> AfterFork for Mutex<T> {
    fn after_fork(&self) -> Self {
        Mutex::default()
    }
}

impl<T: AfterFork> ForkLocal<T> {
    pub(crate) fn new(value: T) -> Self {
        ForkLocal::of(std::process::id(), value)
    }

    fn of(process: u32, value: T) -> Self {
        ForkLocal {
            process,
            value: Arc::new(value),
            child: OnceLock::new(),
        }
    }

    /// The value of this process, whose id the caller has at hand.
    pub(crate) fn get(&self, process: u32) -> &T {
        if self.process == process {
            return &self.value;
        }
        let child = || Box::new(ForkLocal::of(process, self.value.after_fork()));
        self.child.get_or_init(child).get(process)
    }
}

impl<T: AfterFork> Drop for ForkLocal<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Counted<'a> {
        dropped: &'a AtomicU32,
        generation: u32,
    }

    impl AfterFork for Counted<'_> {
        fn after_fork(&self) -> Self {
            Counted {
                dropped: self.dropped,
                generation: self.generation + 1,
            }
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_process_has_a_value_of_its_own() {
        let dropped = AtomicU32::new(0);
        let value = |generation| Counted {
            dropped: &dropped,
            generation,
        };
        let own = ForkLocal::new(value(0));
        let me = std::process::id();
        assert_eq!(own.get(me).generation, 0);
        assert_eq!(own.get(me + 1).generation, 1);
        assert_eq!(own.get(me + 2).generation, 2);
        assert_eq!(own.get(me + 1).generation, 1);
        assert_eq!(own.get(me).generation, 0);
    }

    #[test]
    fn value_of_another_process_is_not_dropped() {
        let dropped = AtomicU32::new(0);
        let value = |generation| Counted {
            dropped: &dropped,
            generation,
        };
        drop(ForkLocal::of(std::process::id() + 1, value(0)));
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        drop(ForkLocal::new(value(0)));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
