//! The locks of `std::sync`, for threads and processes, on one machine or many: a call that blocks, a guard,
//! and `Drop`. No async, no runtime.
//!
//! ```no_run
//! # fn main() -> crosslock::Result<()> {
//! let lock = crosslock::Locker::open("redis://127.0.0.1/")?;
//! let _guard = lock.lock("counter")?; // blocks; renewed by its own thread; released on drop
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Locker`], which says where locks can live, and [`LockGuard`], which says what holding one means.
//!
//! | call | what it is |
//! |---|---|
//! | [`Locker::lock`] | a name that one holds |
//! | [`Locker::read`], [`Locker::write`] | a name that many hold to read, or one to write |
//! | [`Locker::semaphore`] | a name that so many hold at once |
//! | [`Locker::lock_all`] | several names, all or none |
//! | `Locker::mutex`, `Locker::rwlock` | a name and the value that it protects (feature `value`) |
//!
//! # What a lease promises
//!
//! A lock that outlives a crash of its holder has to end by itself: it is a lease. While
//! [`LockGuard::is_held`] is true no other guard of that name is valid, provided that the server keeps what it
//! was told and that clocks run at the same speed within one percent. The time that a lease is good for is
//! counted from before the request was sent, on a clock that runs on during suspend; no wall clock of a client
//! matters.
//!
//! What breaks it: a server that forgets (a restart without persistence, a failover to a replica that lags, an
//! eviction, `FLUSHALL`), and a holder that is stopped between its last look at the lock and its write. Against
//! both pass [`LockGuard::fencing_token`] along with what you write, and refuse smaller tokens there.
//!
//! # What is logged
//!
//! By the `log` crate, and never with an owner string or a password. As warnings: a lease that is lost or can't be
//! renewed, a release that failed where nobody could be told, an inbox that hears nothing, a call that waits for a lock that
//! its own thread holds, and [`Locker::from_env`] without the variable. At debug level: when a call begins to wait, and for whom if the engine knows, and when it meets an outage and its end.
//!
//! # Features
//!
//! - `file` (default): locks in a directory of this host.
//! - `redis` (default): locks in a Redis or Valkey server, by TCP and unix socket.
//! - `tls`: `rediss://` and `valkeys://`, with rustls and its ring provider.
//! - `value` (default): `Mutex<T>` and `RwLock<T>`, locks with a value, which is stored as JSON.
//!
//! `memory:` is always there. It is tested on Linux, and written for macOS too.
// On docs.rs each item says which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod acquire;
mod base;
mod core;
mod engine;
mod guard;
mod lease;
mod locker;
mod primitives;
mod queue;

pub use base::claim::Prefer;
pub use base::error::{Error, LostReason, Result};
pub use guard::LockGuard;
pub use lease::monitor::Lost;
pub use locker::Locker;
pub use locker::builder::LockerBuilder;
#[cfg(feature = "value")]
pub use primitives::mutex::{Mutex, MutexGuard};
#[cfg(feature = "value")]
pub use primitives::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use primitives::semaphore::Semaphore;
#[cfg(feature = "value")]
pub use primitives::value_guard::ValueGuard;

// The programs of these pages are doc tests.
#[cfg(all(doctest, feature = "value"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(doctest, feature = "value"))]
#[doc = include_str!("../docs/recipes.md")]
mod recipes {}
