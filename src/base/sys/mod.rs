//! The only door to time, threads, locks, channels, look-ups, connections, processes, randomness and the order of hash
//! maps.
//!
//! It uses nothing else of this crate. No other module asks the system for any of these (`tests/layers.rs` checks it),
//! so a simulation can take the place of this one module.

pub(crate) mod collections;
#[cfg(feature = "_sockets")]
pub(crate) mod net;
pub(crate) mod sync;
pub(crate) mod time;
#[cfg(not(windows))]
mod unix;
#[cfg(windows)]
mod windows;

pub use crossbeam_channel as channel;

use std::io;
use std::thread::{self, Scope};

#[cfg(not(windows))]
use unix as platform;
use uuid::Uuid;
#[cfg(windows)]
use windows as platform;

pub(crate) use platform::{host_name, thread_number};

/// Starts a thread that nobody joins.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

/// A thread that is joined.
#[cfg(feature = "delay")]
#[derive(Debug)]
pub(crate) struct Joined(thread::JoinHandle<()>);

#[cfg(feature = "delay")]
impl Joined {
    /// Waits until it has ended. The error is what it panicked with.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.0.join()
    }
}

/// Starts a thread that is joined.
#[cfg(feature = "delay")]
pub(crate) fn spawn_joined(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Joined> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(Joined)
}

/// Starts a thread with a stack of its own size, in bytes.
pub(crate) fn spawn_with_stack(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(stack).spawn(work).map(drop)
}

/// Calls `work`, and returns when the threads have ended that it has started with [`spawn_scoped`].
pub(crate) fn scope<'env, T>(work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    thread::scope(work)
}

/// Starts a thread that has ended when [`scope`] returns.
pub(crate) fn spawn_scoped<'scope>(
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn_scoped(scope, work).map(drop)
}

/// The number of this process, which a child that is forked off doesn't share.
#[inline]
pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// The number that `std` gives this thread, for systems without one that their tools know.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn own_thread_number() -> String {
    let id = format!("{:?}", thread::current().id());
    id.chars().filter(char::is_ascii_digit).collect()
}

/// A fraction of 0 to 1, 1 excluded.
pub(crate) fn random_fraction() -> f64 {
    fastrand::f64()
}

/// A number below `end`, which isn't 0.
#[allow(dead_code, reason = "engines with several hosts use it")]
pub(crate) fn random_below(end: usize) -> usize {
    fastrand::usize(..end)
}

/// Random bytes of the system, of which none are drawn ahead: two copies of one process never get the same.
///
/// Not by [`Uuid::new_v4`], which draws ahead where a program turns on the feature `fast-rng` of that crate.
pub(crate) fn random_uuid() -> Uuid {
    let mut bytes = uuid::Bytes::default();
    match getrandom::fill(&mut bytes) {
        Ok(()) => uuid::Builder::from_random_bytes(bytes).into_uuid(),
        // It panics, as anything must that needs randomness and has none.
        Err(_) => Uuid::new_v4(),
    }
}
