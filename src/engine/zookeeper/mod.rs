//! Locks in ZooKeeper.
//!
//! A locker has one `client::Session`. Each owner has an ephemeral node in the line of each of its names: `nodes`
//! says what they are called, and what they tell. `engine::line` says who holds, and how an owner comes to a lock;
//! `line_store` is what ZooKeeper does for that: `enter`, `commit` and `leases`. `owners` has those of this process,
//! whose guards hear of the end of the session, and of nodes that are gone.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: a lease counts
//! since a time at which the leader is known to have had the session; what is deleted before a node that others watch
//! is deleted in the same transaction; and a node that a request may have made is looked for before another is made.

use std::sync::Arc;

use self::client::Session;
use self::line_store::ZooKeeperStore;
use self::locks::Locks;
use super::Engine;
use super::line::LineEngine;
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::options::Options;

mod address;
mod call;
mod client;
mod commit;
mod diagnosis;
mod enter;
mod leases;
mod line_store;
mod locks;
mod nodes;
mod operators;
mod owners;
mod sessions;
mod sweep;
mod teller;

/// Opens the session, so that a wrong URL, login, address or ttl is told now.
pub(super) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let address = address::parse(url)?;
    options.check()?;
    let session = Session::open(address, options.ttl, options, clock.clone())?;
    let locks = Locks::new(session, options.ttl, clock);
    Ok(Arc::new(LineEngine(Arc::new(ZooKeeperStore(locks)))))
}
