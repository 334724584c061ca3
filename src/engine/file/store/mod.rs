//! What the locks of a directory are built on: doors, by which a process is woken and known to live, and the state files of
//! names, which are changed in short sections that exclude each other.
//!
//! From the bottom up: `identity`, then `door`, and `page` below `section`. None of them knows what a lock is.

pub(super) mod door;
pub(super) mod identity;
pub(super) mod page;
pub(super) mod section;

#[cfg(test)]
mod tests;
