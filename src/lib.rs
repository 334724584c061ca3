//! Blocking locks for threads and processes, on one machine or on many: a call that blocks, a guard, and `Drop`. There
//! is no async runtime.
//!
//! ```
//! use crosslock::Locker;
//!
//! # fn main() -> crosslock::Result<()> {
//! let locker = Locker::open("memory:")?; // or "file:", or "redis://127.0.0.1/"
//! let guard = locker.lock("counter")?; // blocks until this thread holds the lock
//! assert!(locker.try_lock("counter")?.is_none());
//! guard.unlock()?; // a dropped guard releases too, but can only log an error
//! # Ok(())
//! # }
//! ```
//!
//! See [`Locker`] for the places where locks can live, [`LockGuard`] for what it means to hold one, [`LockerBuilder`]
//! for the options, and [`Error`] for what can go wrong. The module `guide` has guides: what crosslock guarantees, how
//! waiting works, a page for each engine, recipes.
//!
//! # Primitives
//!
//! Each way to take a lock comes in four variants: `lock` blocks, `try_lock` doesn't wait, `try_lock_for` and
//! `try_lock_until` wait for a limited time. The `try_` calls return `Ok(None)` when the lock is taken.
//!
//! | call | holders | returns |
//! |---|---|---|
//! | [`Locker::lock`] | one | [`LockGuard`] |
//! | [`Locker::lock_all`] | one, several names, all or none | [`LockGuard`] |
//! | [`Locker::read`], [`Locker::write`] | many readers, or one writer | [`LockGuard`] |
//! | [`Locker::semaphore`] | as many as it has permits | [`Semaphore`] |
//! | `Locker::mutex` | one, with a value | `Mutex` (feature `value`) |
//! | `Locker::rwlock` | many readers, or one writer, with a value | `RwLock` (feature `value`) |
//!
//! Others wait until something happens in any process (feature `value`):
//!
//! | call | until | returns |
//! |---|---|---|
//! | `MutexGuard::wait_while` | a value is stored for which a condition is false | the guard |
//! | `Locker::once_lock` | one process has set the value | `OnceLock` |
//! | `Locker::barrier` | a number of threads has arrived | `Barrier` |
//! | `Locker::latch` | it is counted down a number of times | `Latch` |
//! | `Locker::election` | this thread leads | `Election` |
//!
//! `Locker::delay_queue` (feature `delay`) returns a `DelayQueue`. Its tasks are due at a time, and one worker takes
//! each of them with a lease.
//!
//! # What a lease promises
//!
//! A lock must become free when its holder crashes. So it is a *lease*: it ends after its time to live (ttl), unless
//! the guard's own thread renews it. On `file:` a lease that is renewed doesn't end with time. There the kernel frees
//! the lock when its process ends.
//!
//! While [`LockGuard::is_held`] is true, no guard that it excludes is valid. This holds as long as the server keeps its
//! data and clocks run at the same speed within 1 %. A lease counts from before its request was sent, on a clock that
//! runs on while the machine is suspended. No client's wall clock matters.
//!
//! Two things break a lease most often; `docs/guarantees.md` lists all:
//!
//! - The server loses it: a restart without persistence, a failover to a replica that lags, an eviction, `FLUSHALL`.
//!   The holder notices at its next renewal. etcd and ZooKeeper lose none while a majority of their members keeps its
//!   disks.
//! - The holder is paused between its last check and its write, for longer than its ttl. It can't notice that.
//!
//! Against both, send [`LockGuard::fencing_token`] with each write. If your storage rejects older tokens, a holder that
//! lost its lease without noticing can't overwrite its successor's work. That works for exclusive holders. Readers, and
//! holders of permits, have different tokens at the same time.
//!
//! # What is logged
//!
//! The library logs through the `log` crate. It never logs an owner string or a password.
//!
//! - As warnings, among others: a lease that is lost or can't be renewed; a release that failed in a drop or in the
//!   background; a connection on which no messages arrive; a call that waits for a lock that its own thread holds;
//!   [`Locker::from_env`] without the variable.
//! - At debug level: the start of a wait, with the holder if the engine knows it; the start and the end of an outage.
//!
//! A program that wants to count or trace what happens to its locks sets an [`Observer`].
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `redis` | yes | locks in a Redis or Valkey server, over TCP or a unix socket |
//! | `file` | yes | locks in a directory of this host |
//! | `value` | yes | `Mutex<T>` and `RwLock<T>`, whose values are stored as JSON; what waits until something happens |
//! | `delay` | no | `DelayQueue<T>`: delayed tasks; implies `value` |
//! | `etcd` | no | locks in etcd |
//! | `zookeeper` | no | locks in ZooKeeper |
//! | `testing` | no | `testing::Fake`: for tests, locks with a clock that the test moves |
//! | `tls` | no | `rediss://` and `valkeys://`, with `etcd` `etcds://`, and with `zookeeper` `zks://`, with rustls and its ring provider |
//! | `metrics` | no | `metrics::MetricsObserver`, an [`Observer`] for the `metrics` crate |
//!
//! `memory:` is always there. The crate is tested on Linux. On macOS and Windows it compiles, and is untested;
//! `file:` needs Linux or macOS.
// On docs.rs each item says which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod acquire;
mod base;
mod core;
#[cfg(feature = "delay")]
mod delay;
mod doctor;
mod engine;
mod guard;
// Only for rustdoc, and not for doc tests: those of pages are below.
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod lease;
mod locker;
#[cfg(feature = "metrics")]
pub mod metrics;
mod primitives;
mod queue;
#[cfg(feature = "testing")]
pub mod testing;

/// The parsers, for fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use engine::fuzzing;

/// The channels of [`LockGuard::lost`], and `select!`, in the version that this crate uses.
pub use base::sys::channel as crossbeam_channel;

pub use base::cancel::CancelToken;
pub use base::claim::Prefer;
pub use base::diagnosis::{Finding, Verdict};
pub use base::error::{Error, LostReason, Result};
pub use base::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};
pub use base::observer::{Event, Observer};
#[cfg(feature = "delay")]
pub use base::task::{IfExists, TaskCounts, TaskState};
pub use base::ticket::LeaseTicket;
#[cfg(feature = "delay")]
pub use delay::{DelayQueue, Entry, Task, TaskId, TaskInfo, Workers};
pub use guard::LockGuard;
pub use lease::monitor::Lost;
pub use locker::Locker;
pub use locker::builder::LockerBuilder;
pub use locker::operate::Names;
#[cfg(feature = "value")]
pub use primitives::barrier::{Barrier, BarrierWaitResult};
#[cfg(feature = "value")]
pub use primitives::election::{Election, Leader, Leadership};
#[cfg(feature = "value")]
pub use primitives::latch::Latch;
#[cfg(feature = "value")]
pub use primitives::mutex::{Mutex, MutexGuard};
#[cfg(feature = "value")]
pub use primitives::once_lock::OnceLock;
#[cfg(feature = "value")]
pub use primitives::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use primitives::semaphore::Semaphore;
#[cfg(feature = "value")]
pub use primitives::value::ValueGuard;

// The programs of these pages are doc tests. Those of `docs/recipes.md` are in `tests/support/lib.rs`.
#[cfg(all(doctest, feature = "value"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(doctest, feature = "value"))]
#[doc = include_str!("../docs/porting.md")]
mod porting_page {}

#[cfg(all(doctest, feature = "metrics"))]
#[doc = include_str!("../docs/metrics.md")]
mod metrics_page {}

#[cfg(all(doctest, feature = "delay"))]
#[doc = include_str!("../docs/delay.md")]
mod delay_page {}
