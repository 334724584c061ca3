//! Delayed tasks: a queue whose elements are due at a time, and outlive the workers that take them.
//!
//! It uses `locker` and all below. A [`Task`] is a lock guard with a value: a worker takes it as a lock is taken, its
//! lease is renewed as a lock's is, and how it ends is stored when the lease is released. What always holds here: a
//! task that was inserted is done, removed, or there; two valid leases of one task never exist at a time.

mod entry;
mod id;
mod queue;
mod shards;
mod task;
mod workers;

pub use self::queue::{DelayQueue, TaskInfo};
pub use self::{entry::Entry, id::TaskId, task::Task, workers::Workers};
