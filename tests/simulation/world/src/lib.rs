//! A world in one process: time, threads, machines and a network, in which a seed decides all that chance would decide.
//!
//! It knows nothing of crosslock. `library` builds crosslock on it, and `servers` are the servers in it.
//!
//! Threads are threads of the system, of which one runs at a time. Wherever one would block, the next is chosen by the
//! seed, and where none can run, the time jumps to the next event. So nothing takes real time but the work itself, and
//! a seed repeats a run byte by byte. There is one world in a process: threads that were killed in it stay asleep until
//! the process ends.

pub mod channel;
mod events;
mod history;
mod machine;
mod network;
mod process;
mod reuse;
mod scheduler;
pub mod service;
pub mod socket;
pub mod sync;
mod thread;
pub mod time;

pub use history::{End, record, violation};
pub use machine::{Machine, add_machine, resume_machine, step_clock, suspend_machine};
pub use network::{
    Cut, Message, Place, add_message_fault, add_service, await_message, contents, contents_of, cut,
    fault, heal, lasting, messages, set_message_fault, set_names, set_piece, slow,
};
pub use process::{
    Process, add_process, allow_threads, as_process, current, host_name, is_alive, kill,
    lose_power, pause, process_id, resume,
};
pub use scheduler::{Chances, Settings, run, true_now, uninterrupted};
pub use thread::{
    Joined, scope, spawn, spawn_joined, spawn_scoped, spawn_with_stack, thread_number,
};
pub use time::{random_below, random_bytes, random_fraction};
