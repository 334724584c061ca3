//! The threads of a process that want the same name: one has the turn, the others wait for it.
//!
//! It uses `base`, `lease` and the traits of `engine`. What always holds here: a name has one turn, one thread or guard has
//! it, and what belongs to it moves along.

pub(crate) mod handoff;
pub(crate) mod local;
mod sync;
