//! The rules of names: who holds them, who waits, and who is next. Memory and directories follow them; those of
//! `lua/` are the same, in the language of Redis.
//!
//! They use `base`, what the seam is made of, and `engine::heartbeat`. What always holds here: nothing blocks or looks at a clock, and all
//! that one call changes is consistent when it returns. Whoever was granted a name by it is told by the engine.

mod broken_owners;
mod counter;
mod holders;
mod name_state;
mod table;
mod written;

pub(super) use self::table::Table;
#[cfg(feature = "file")]
pub(super) use self::written::{Entry, Standing, Written};
