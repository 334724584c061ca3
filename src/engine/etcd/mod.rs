//! Locks in etcd.
//!
//! Each owner that has a name, or waits for it, has a key in the line of that name: see `keys`. The order in which
//! these keys were created says who holds the name. [`EtcdStore`] is a store of such lines: `line_store` says which
//! transaction each step takes, `enter`, `commit` and `operators` have the transactions. The keys of an owner end
//! with its lease, of which `leases` has a pool, and knows which owner has which.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: the time of a
//! lease counts from before a request by which servers have shown that they lead; a request without an answer leaves
//! a lease that no other owner is given; and an owner's entry is changed only by a transaction that finds it as this
//! owner has written it, but for an operator's.

use std::sync::Arc;
use std::time::Duration;

use self::client::Client;
use self::leases::whole_seconds;
use self::store::EtcdStore;
use super::Engine;
use super::line::LineEngine;
use crate::base::clock::{Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::options::Options;

mod address;
mod client;
mod commit;
mod enter;
mod far;
mod keys;
mod leases;
mod line_store;
mod look;
mod operators;
mod store;

/// Leases are for whole seconds. Most servers give none that is so short, and say which is their shortest.
const LEAST_TTL: Duration = Duration::from_secs(1);

/// Reads once and takes a lease, so that a wrong URL, password or address is told now, and a ttl that isn't possible
/// there.
pub(super) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let address = address::parse(url)?;
    options.check()?;
    let client = Client::new(address, options, clock.clone())?;
    let store = EtcdStore::new(Arc::new(client), clock);
    check(&store, options)?;
    Ok(Arc::new(LineEngine(Arc::new(store))))
}

/// A lease that is longer than it should be would keep a lock for longer when its holder is gone. For a ttl that
/// can't be one, the shortest lease is asked for, so that the error names what is possible at these servers.
fn check(store: &EtcdStore, options: &Options) -> Result<()> {
    let deadline = Deadline::after(options.connect_timeout + options.io_timeout);
    store.greet(&deadline)?;
    let is_whole = options.ttl.subsec_nanos() == 0 && options.ttl >= LEAST_TTL;
    let asked = if is_whole { options.ttl } else { LEAST_TTL };
    let granted = store.leases.grant(asked, &deadline);
    let (lease, seconds) = granted.map_err(|e| store.error(None, e))?;
    if !is_whole || seconds > whole_seconds(asked) {
        store.leases.revoke(lease.id, &deadline);
        return Err(invalid_ttl(options.ttl, Duration::from_secs(seconds)));
    }
    store.leases.give_back(lease);
    warn_of_version(&store.client, &deadline);
    Ok(())
}

/// One host is asked. Whoever wants to know of all asks for a diagnosis.
fn warn_of_version(client: &Client, deadline: &Deadline) {
    let status = client.any_status(deadline);
    let version = status.map(|status| status.version).unwrap_or_default();
    if version.is_empty() {
        log::debug!("{} doesn't tell its version", client.place());
    } else if let Some(what) = operators::breaks_exclusion(&version) {
        log::warn!("{} is etcd {version}, where {what}", client.place());
    }
}

/// For these servers.
fn invalid_ttl(ttl: Duration, least: Duration) -> Error {
    Error::InvalidOption {
        option: "ttl",
        reason: format!("{ttl:?} is not in its range, whole seconds, {least:?} to 24 h"),
    }
}
