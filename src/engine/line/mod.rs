//! Locks whose owners stand in one line, in the order in which they came: etcd and ZooKeeper.
//!
//! [`order`] says who holds, and gives tokens; [`store`] is what a store of lines does, and who stands in one;
//! [`wait`] how an owner comes to a lock. It uses `base` and the seam. What always holds here: an owner is in line
//! with all of its entries or with none that count; it is let in only by an answer that shows nobody in its way; and
//! it leaves by another owner where a request to give up its entries has no answer.

pub(super) use self::leases::{Commit, Committed, LineLeases, OwnSnapshot, Write};
pub(super) use self::operators::{Facts, Inspected, LineEngine, LineOperators, Purpose, members};
pub(super) use self::order::{HAND_OVERS, Standing, revision_of, standing, token_of, used};
pub(super) use self::store::{
    Blocker, Entry, Line, LineStore, LineWatch, Presence, Snapshot, Step, Watched, When, Who, Why,
    uuid_of,
};
pub(super) use self::wait::until_answered;

mod leases;
mod operators;
mod order;
mod store;
mod wait;
