//! The threads of a process that want the same name.

pub(crate) mod handoff;
pub(crate) mod local;
mod sync;
