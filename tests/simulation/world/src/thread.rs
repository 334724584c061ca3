//! Threads of a world: each is a thread of the system that runs only while it has the baton.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope};

use crate::reuse;
use crate::scheduler::{block, leave, lock, me, set_me, with};

pub(crate) struct Thread {
    pub(crate) process: usize,
    pub(crate) name: String,
    pub(crate) state: State,
    /// Counts its waits.
    pub(crate) generation: u64,
    pub(crate) was_woken: bool,
    pub(crate) on: Option<u64>,
    pub(crate) baton: Arc<Baton>,
    /// What its joiner waits for.
    ended: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Runnable,
    Running,
    Blocked,
    Finished,
    /// Its process was killed: it never runs again.
    Dead,
}

/// What a thread has while it runs.
#[derive(Default)]
pub(crate) struct Baton {
    is_here: AtomicBool,
    thread: OnceLock<thread::Thread>,
}

impl Baton {
    pub(crate) fn give(&self) {
        self.is_here.store(true, Ordering::Release);
        // A thread that isn't known yet looks before it sleeps.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Says which thread of the system waits for it.
    pub(crate) fn is_for(&self, thread: thread::Thread) {
        let _ = self.thread.set(thread);
    }

    pub(crate) fn await_it(&self) {
        while !self.is_here.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Thread {
    pub(crate) fn new(process: usize, name: &str) -> Self {
        Thread {
            process,
            name: name.to_owned(),
            state: State::Blocked,
            generation: 0,
            was_woken: false,
            on: None,
            baton: Arc::default(),
            ended: None,
        }
    }
}

thread_local! {
    /// The threads that this one has started in a scope, and that haven't been awaited.
    static CHILDREN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Registers the thread of the system that runs here.
pub(crate) fn enter(id: usize) {
    let baton = with(|inside| inside.threads[id].baton.clone());
    baton.is_for(thread::current());
}

/// Adds a thread to a process, and gives what its thread of the system has to do.
pub(crate) fn prepare<'a>(
    process: Option<usize>,
    name: &str,
    work: impl FnOnce() + Send + 'a,
) -> (usize, impl FnOnce() + Send + 'a) {
    let mine = me();
    let (id, baton) = with(|inside| {
        let process = process.unwrap_or(inside.threads[mine].process);
        let id = inside.add_thread(process, name);
        inside.make_runnable(id);
        (id, inside.threads[id].baton.clone())
    });
    let run = move || {
        set_me(id);
        baton.is_for(thread::current());
        baton.await_it();
        let ended = catch_unwind(AssertUnwindSafe(work));
        let mut inside = lock();
        if ended.is_err() {
            let name = inside.threads[id].name.clone();
            inside.violation(format!("thread {name} panicked"));
        }
        inside.threads[id].state = State::Finished;
        if let Some(on) = inside.threads[id].ended.take() {
            inside.wake(on, true);
        }
        leave(inside);
    };
    (id, run)
}

fn builder(name: &str) -> thread::Builder {
    const STACK: usize = 512 * 1024;
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
}

/// As the system says it.
fn check_allowed() -> io::Result<()> {
    let mine = me();
    let is_refused = with(|inside| {
        let process = inside.threads[mine].process;
        inside.processes.has_no_threads(process)
    });
    match is_refused {
        true => Err(io::ErrorKind::WouldBlock.into()),
        false => Ok(()),
    }
}

/// Starts a thread of this process that nobody joins.
///
/// # Errors
///
/// As of `std`.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    spawn_joined(name, work).map(drop)
}

/// # Errors
///
/// As of `std`.
pub fn spawn_with_stack(
    name: &str,
    _stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    spawn(name, work)
}

/// A thread that can be joined.
#[derive(Debug)]
pub struct Joined(usize);

/// # Errors
///
/// As of `std`.
pub fn spawn_joined(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Joined> {
    check_allowed()?;
    let (id, run) = prepare(None, name, work);
    let baton = with(|inside| inside.threads[id].baton.clone());
    reuse::start(builder(name), &baton, Box::new(run))?;
    crate::scheduler::may_yield();
    Ok(Joined(id))
}

impl Joined {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// None: a panic ends the world.
    pub fn join(self) -> thread::Result<()> {
        await_end(self.0);
        Ok(())
    }
}

fn await_end(id: usize) {
    loop {
        let on = with(|inside| {
            let ended = matches!(inside.threads[id].state, State::Finished | State::Dead);
            if ended {
                return None;
            }
            if inside.threads[id].ended.is_none() {
                let on = inside.new_wait();
                inside.threads[id].ended = Some(on);
            }
            inside.threads[id].ended
        });
        match on {
            Some(on) => _ = block(Some(on), None),
            None => return,
        }
    }
}

/// `std::thread::scope`, for threads that `spawn_scoped` starts.
pub fn scope<'env, T>(work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    thread::scope(|scope| {
        let before = CHILDREN.take();
        let done = work(scope);
        let children = CHILDREN.replace(before);
        children.into_iter().for_each(await_end);
        done
    })
}

/// # Errors
///
/// As of `std`.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<()> {
    check_allowed()?;
    let (id, run) = prepare(None, name, move || drop(work()));
    builder(name).spawn_scoped(scope, run)?;
    CHILDREN.with_borrow_mut(|children| children.push(id));
    Ok(())
}

/// The number of this thread in the world.
#[must_use]
pub fn thread_number() -> String {
    reuse::forbid();
    me().to_string()
}
