//! The vocabulary: names, errors, options, time, owners and tokens.
//!
//! It uses nothing else of this crate. What always holds here: a `Key` is a valid name, the options were checked, the
//! time of a lease is that of a clock that runs on while the machine sleeps, and no text shows an owner or a password.

pub(crate) mod backoff;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod diagnosis;
pub(crate) mod error;
pub(crate) mod fork;
pub(crate) mod inspection;
#[cfg(feature = "value")]
mod json;
pub(crate) mod limits;
pub(crate) mod name;
pub(crate) mod observer;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod percent;
#[cfg(test)]
pub(crate) mod random;
#[cfg_attr(simulated, path = "../../tests/simulation/library/sys/mod.rs")]
pub(crate) mod sys;
pub(crate) mod task;
pub(crate) mod ticket;
pub(crate) mod timed_mutex;
pub(crate) mod token;

/// What the layers above import from here: types and traits. Functions and constants are called with their module.
#[allow(
    unused_imports,
    reason = "some serve only an engine or a feature that this build leaves out"
)]
pub(crate) use self::{
    backoff::{Backoff, Waits},
    cancel::{Cancel, CancelToken, Registration},
    claim::{Claim, Mode, Prefer, Stored},
    clock::{BootClock, BootInstant, Clock, Deadline},
    diagnosis::Finding,
    error::{Cause, Error, ErrorChain, LostReason, Result},
    fork::{AfterFork, ForkLocal, Process},
    inspection::{Holder, Inspection, LockState, Party, Waiter, Wants},
    name::{Key, Namespace, Shard},
    observer::{Event, Observer, Observers},
    options::Options,
    owner::Owner,
    task::{
        Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskCounts, TaskEnd, TaskRecord,
        TaskState,
    },
    ticket::{Adopter, LeaseTicket},
    token::{Ending, Token},
};
