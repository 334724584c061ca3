//! What is asked about a name, and what the answers mean.
//!
//! Each submodule has the transactions of one kind of call. What always holds here: an owner's place is changed only by a
//! transaction that finds it as this owner has written it, but for an operator's.

mod adopt;
mod break_lock;
mod change;
mod downgrade;
mod enter;
mod inspect;
mod leave;
mod list;
mod ops;
mod release;
mod renew;
mod seen;
mod shared;
mod values;

pub(super) use self::enter::{Entered, Entry};
pub(super) use self::seen::Seen;
pub(super) use self::shared::Commands;
