//! What a forked child doesn't share with its parent. No other module asks in which process it runs.

use std::sync::{Arc, OnceLock};

use crate::base::sys;

/// A process, for what has to know later whether it is still in the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Self {
        Process(sys::process_id())
    }

    /// False in a child that was forked off.
    pub(crate) fn is_current(self) -> bool {
        self == Process::current()
    }

    pub(crate) fn id(self) -> u32 {
        self.0
    }
}

/// A value for each process. A child that is forked off begins with one of its own, and neither uses nor drops its
/// parent's: locks in it may have been held at that moment by threads that the child doesn't have.
#[derive(Debug)]
pub(crate) struct ForkLocal<T: AfterFork> {
    process: Process,
    value: Arc<T>,
    /// That of a child, in which this one is the parent's.
    child: OnceLock<Box<ForkLocal<T>>>,
}

/// What is made by whoever needs it first. Threads that need it at the same time each make it, and one is kept: were
/// one to wait for another, then a child that is forked off meanwhile would wait for a thread that stayed with its
/// parent.
pub(crate) fn get_or_make<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(made) => made,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    }
}

/// What a child begins with.
pub(crate) trait AfterFork {
    /// A new value, from the parts of this one that never change.
    fn after_fork(&self) -> Self;
}

impl<T: AfterFork> ForkLocal<T> {
    pub(crate) fn new(value: T) -> Self {
        ForkLocal::of(Process::current(), value)
    }

    fn of(process: Process, value: T) -> Self {
        ForkLocal {
            process,
            value: Arc::new(value),
            child: OnceLock::new(),
        }
    }

    /// The value of whichever process made this, for what is the same in all of them: it costs no system call.
    pub(crate) fn original(&self) -> &T {
        &self.value
    }

    /// The value of this process.
    pub(crate) fn get(&self) -> &Arc<T> {
        self.get_in(Process::current())
    }

    fn get_in(&self, process: Process) -> &Arc<T> {
        if self.process == process {
            return &self.value;
        }
        let make = || Box::new(ForkLocal::of(process, self.value.after_fork()));
        get_or_make(&self.child, make).get_in(process)
    }
}

impl<T: AfterFork> Drop for ForkLocal<T> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget(self.value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, Sender, unbounded};
    use std::thread;
    use std::time::Duration;

    /// Threads meet where a value is made; a child that is forked off there has nobody to meet.
    struct Meeting {
        arrivals: Sender<()>,
        met: Receiver<()>,
    }

    impl AfterFork for Meeting {
        fn after_fork(&self) -> Self {
            self.arrivals.send(()).expect("the test listens");
            let met = self.met.recv_timeout(Duration::from_secs(20));
            met.expect("another thread makes one, too");
            let (arrivals, met) = (self.arrivals.clone(), self.met.clone());
            Meeting { arrivals, met }
        }
    }

    #[test]
    fn nobody_waits_for_a_value_that_another_thread_makes() {
        let ((arrivals, arrived), (meet, met)) = (unbounded(), unbounded());
        let own = ForkLocal::new(Meeting { arrivals, met });
        let child = Process(std::process::id() + 1);
        let found: Vec<usize> = thread::scope(|scope| {
            let get = || Arc::as_ptr(own.get_in(child)).addr();
            let both = [(); 2].map(|()| scope.spawn(get));
            for _ in &both {
                arrived.recv().expect("it comes");
            }
            both.iter().for_each(|_| meet.send(()).expect("it waits"));
            both.map(|one| one.join().expect("it ends")).into()
        });
        assert_eq!(found[0], found[1]);
    }
}
