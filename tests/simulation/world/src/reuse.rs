//! Threads of the system that run one thread of the world after another. Many threads of the library only ask a server
//! something: to start a thread of the system for each would take longer than what they do.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::thread::Baton;

/// What a thread of the world does, from its baton to its end.
pub(crate) type Run = Box<dyn FnOnce() + Send>;

/// A thread of the system whose last thread of the world has ended.
struct Idle {
    thread: Thread,
    next: Arc<Mutex<Option<Run>>>,
}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

thread_local! {
    static IS_FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Has this thread of the system end with its thread of the world. The number of a thread may be kept in a
/// thread-local, where the next thread would find it.
pub(crate) fn forbid() {
    IS_FORBIDDEN.set(true);
}

/// Has an idle thread of the system run this, or starts another.
///
/// # Errors
///
/// As of `std`.
pub(crate) fn start(builder: thread::Builder, baton: &Baton, run: Run) -> io::Result<()> {
    let idle = locked(&IDLE).pop();
    match idle {
        Some(idle) => {
            *locked(&idle.next) = Some(run);
            // It sleeps until it gets the baton.
            baton.is_for(idle.thread);
        }
        None => drop(builder.spawn(move || run_all(run))?),
    }
    Ok(())
}

fn run_all(first: Run) {
    let next = Arc::new(Mutex::new(Some(first)));
    loop {
        let run = locked(&next).take();
        let Some(run) = run else {
            thread::park();
            continue;
        };
        run();
        if IS_FORBIDDEN.get() {
            return;
        }
        let (thread, next) = (thread::current(), next.clone());
        locked(&IDLE).push(Idle { thread, next });
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
