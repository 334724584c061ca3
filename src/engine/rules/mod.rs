//! The rules of names: who holds them, who waits, and who is next. Memory and directories follow them; those of
//! `lua/` are the same, in the language of Redis.
//!
//! They use `base`, what the seam is made of, and `engine::line`. What always holds here: nothing blocks or looks at a clock, and all
//! that one call changes is consistent when it returns. Whoever was granted a name by it is told by the engine. An owner that
//! waits stays in the queue until it leaves, or is found to be gone: it needn't ask again.

mod entry;
mod name;
mod seen;
mod table;
mod written;

pub(crate) use self::entry::{Entry, EntryState, PresenceId};
pub(crate) use self::name::NameState;
pub(crate) use self::table::{Broken, Table, Values};
