//! Locks in etcd.
//!
//! Each owner that has a name, or waits for it, has a key in the line of that name: see `place`. The order in which these keys
//! were created says who holds the name. [`Commands`] knows the transactions on them; a waiter's [`EtcdWait`] asks, and
//! watches what stands in its way. The keys of an owner end with its lease, of which `leases` has a pool; `owners` knows which
//! owner has which.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: the time of a lease counts
//! from before a request by which servers have shown that they lead; a request without an answer leaves a lease that no other
//! owner is given.

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::client::Client;
use self::commands::Commands;
use self::leases::whole_seconds;
use self::wait::EtcdWait;
use super::line::HAND_OVERS;
use super::{Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::{Error, Result};
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::value::Stored;

mod address;
mod blocker;
mod client;
mod commands;
mod diagnosis;
mod keys;
mod leases;
mod owners;
mod place;
mod receivers;
mod wait;

#[derive(Debug)]
pub(crate) struct EtcdEngine {
    commands: Arc<Commands>,
    clock: Arc<dyn Clock>,
}

/// etcd takes 128 operations in a transaction, and each name needs three.
const MOST_NAMES: usize = 40;

/// Leases are for whole seconds. Most servers give none that is so short, and say which is their shortest.
const LEAST_TTL: Duration = Duration::from_secs(1);

impl EtcdEngine {
    /// Reads once and takes a lease, so that a wrong URL, password or address is told now, and a ttl that isn't possible there.
    pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let address = address::parse(url)?;
        options.check()?;
        let client = Client::new(address, options, clock.clone())?;
        let engine = EtcdEngine::of(client, clock);
        engine.check(options)?;
        Ok(engine)
    }

    fn of(client: Client, clock: Arc<dyn Clock>) -> Self {
        EtcdEngine {
            commands: Arc::new(Commands::new(Arc::new(client), clock.clone())),
            clock,
        }
    }

    /// A lease that is longer than it should be would keep a lock for longer when its holder is gone. For a ttl that can't be one, the shortest lease is
    /// asked for, so that the error names what is possible at these servers.
    fn check(&self, options: &Options) -> Result<()> {
        let commands = &self.commands;
        let deadline = Deadline::after(options.connect_timeout + options.io_timeout);
        commands.greet(&deadline)?;
        let is_whole = options.ttl.subsec_nanos() == 0 && options.ttl >= LEAST_TTL;
        let asked = if is_whole { options.ttl } else { LEAST_TTL };
        let granted = commands.leases.grant(asked, &deadline);
        let (lease, seconds) = granted.map_err(|e| commands.error(None, e))?;
        if !is_whole || seconds > whole_seconds(asked) {
            commands.leases.revoke(lease, &deadline);
            return Err(invalid_ttl(options.ttl, Duration::from_secs(seconds)));
        }
        commands.leases.give_back(lease);
        self.warn_of_version(&deadline);
        Ok(())
    }

    /// One host is asked. Whoever wants to know of all asks for a diagnosis.
    fn warn_of_version(&self, deadline: &Deadline) {
        let client = &self.commands.client;
        let status = client.any_status(deadline);
        let version = status.map(|status| status.version).unwrap_or_default();
        if version.is_empty() {
            log::debug!("{} doesn't tell its version", client.place());
        } else if let Some(what) = diagnosis::breaks_exclusion(&version) {
            log::warn!("{} is etcd {version}, where {what}", client.place());
        }
    }
}

/// For these servers.
fn invalid_ttl(ttl: Duration, least: Duration) -> Error {
    Error::InvalidOption {
        option: "ttl",
        reason: format!("{ttl:?} is not in its range, whole seconds, {least:?} to 24 h"),
    }
}

impl Engine for EtcdEngine {
    fn place(&self) -> &str {
        self.commands.client.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            most_names: MOST_NAMES,
            preference: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(EtcdWait::new(self.commands.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let commands = &self.commands;
        match change {
            Change::Renew => commands.renew(request, deadline),
            Change::Verify => commands.is_owner(request, deadline),
            Change::Release(release) => commands.release(request, release, deadline),
            Change::Store(value) => commands.store(request, value, deadline),
            Change::Downgrade { last_used, value } => commands
                .downgrade(request, last_used, value, deadline)
                .map(Outcome::from),
            Change::Adopt { from, last_used } => commands
                .adopt(request, from, last_used, deadline)
                .map(Outcome::from),
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.commands.receivers.add(to);
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        diagnosis::diagnose(&self.commands, namespace, options, deadline)
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let (client, clock) = (self.commands.client.after_fork(), self.clock.clone());
        Some(Arc::new(EtcdEngine::of(client, clock)))
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        self.commands.inspect(key, deadline)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        self.commands.list(namespace, prefix, &cursor, deadline)
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        self.commands.break_lock(key, deadline)
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.commands.load(key, deadline)
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.commands.remove(key, deadline)
    }

    fn value_key(&self, key: &Key) -> String {
        self.commands.keys_of(key).value()
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        self.commands.free_permits(key, of, deadline)
    }
}
