//! Locks whose owners stand in one line, in the order in which they came: etcd and ZooKeeper.
//!
//! [`order`] says who holds, and gives tokens; [`entries`] is a line; [`store`] is what a store of lines does, [`wait`] how an
//! owner comes to a lock. It uses `base` and the seam. What always holds here: an owner is in line with all of its entries or
//! with none that count; it is let in only by an answer that shows nobody in its way; and it leaves by another owner where a
//! request to give up its entries has no answer.

mod engine;
mod entries;
mod leases;
mod operators;
mod order;
mod store;
mod wait;

pub(super) use self::engine::LineEngine;
pub(super) use self::entries::{Entry, Line, Who, uuid_of};
pub(super) use self::leases::{Commit, Committed, Found, LineLeases, Write};
pub(super) use self::operators::{Facts, Inspected, LineOperators};
pub(super) use self::order::{HAND_OVERS, Standing, revision_of, standing, token_of, used};
pub(super) use self::store::{
    Blocker, LineStore, LineWatch, Presence, Snapshot, Step, Watched, When, Why, until_answered,
};

#[cfg(test)]
mod tests;
