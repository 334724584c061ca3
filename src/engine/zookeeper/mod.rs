//! Locks in ZooKeeper.
//!
//! A locker has one `client::Session`. Each owner has an ephemeral node in the line of each of its names: `nodes` says what they
//! are called, `line` who holds, [`wait`] how an owner comes to a lock, `release` how it leaves. `owners` has those of this
//! process, whose guards hear of the end of the session, and of nodes that are gone.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: a lease counts since a
//! time at which the leader is known to have had the session; what is deleted before a node that others watch is deleted in the
//! same transaction; and a node that a request may have made is looked for before another is made.

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::client::Session;
use self::locks::Locks;
use self::wait::ZooKeeperWait;
use super::{Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::line::HAND_OVERS;

mod address;
mod client;
mod diagnosis;
mod entering;
mod kept;
mod leases;
mod leftovers;
mod line;
mod locks;
mod looks;
mod nodes;
mod operations;
mod owners;
mod question;
mod release;
mod replies;
mod sessions;
mod sweep;
mod teller;
mod values;
mod wait;

/// For how long the end of a locker waits until the servers know of it.
const CLOSE: Duration = Duration::from_millis(60);

#[derive(Debug)]
pub(crate) struct ZooKeeperEngine {
    locks: Arc<Locks>,
}

impl ZooKeeperEngine {
    /// Opens the session, so that a wrong URL, login, address or ttl is told now.
    pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let address = address::parse(url)?;
        options.check()?;
        let session = Session::open(address, options.ttl, options, clock.clone())?;
        Ok(ZooKeeperEngine {
            locks: Locks::new(session, options.ttl, clock),
        })
    }
}

impl Drop for ZooKeeperEngine {
    fn drop(&mut self) {
        self.locks.close(&Deadline::after(CLOSE));
    }
}

impl Engine for ZooKeeperEngine {
    fn place(&self) -> &str {
        self.locks.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            preference: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(ZooKeeperWait::new(self.locks.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (locks, deadline) = (&self.locks, &self.locks.gives_up_by(deadline));
        let changed = match change {
            Change::Renew => leases::renew(locks, request, deadline),
            Change::Verify => leases::is_owner(locks, request, deadline),
            Change::Release(release) => {
                return release::release(locks, request, release, deadline);
            }
            Change::Store(value) => values::store(locks, request, value, deadline),
            Change::Downgrade { last_used, value } => {
                leases::downgrade(locks, request, last_used, value, deadline)
            }
            Change::Adopt { from, last_used } => {
                leases::adopt(locks, request, from, last_used, deadline).map(Outcome::from)
            }
            Change::GiveAway => Ok(Outcome::DONE),
        };
        changed.map_err(|e| locks.error(Some(request.key()), e))
    }

    fn diagnose(
        &self,
        _namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let deadline = &self.locks.gives_up_by(deadline);
        let findings = diagnosis::diagnose(&self.locks, options, deadline);
        findings.map_err(|e| self.locks.error(None, e))
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.locks.owners.tell(to);
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let locks = self.locks.after_fork();
        Some(Arc::new(ZooKeeperEngine { locks }))
    }

    fn forget(&self, owner: &Owner) {
        self.locks.forget(owner);
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        let deadline = &self.locks.gives_up_by(deadline);
        let inspected = operations::inspect(&self.locks, key, deadline);
        inspected.map_err(|e| self.locks.error(Some(key), e))
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let deadline = &self.locks.gives_up_by(deadline);
        let page = operations::list(&self.locks, namespace, prefix, &cursor, deadline);
        page.map_err(|e| self.locks.error(None, e))
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let deadline = &self.locks.gives_up_by(deadline);
        let broken = operations::break_lock(&self.locks, key, deadline);
        broken.map_err(|e| self.locks.error(Some(key), e))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        let deadline = &self.locks.gives_up_by(deadline);
        let loaded = values::load(&self.locks, key, deadline);
        loaded.map_err(|e| self.locks.error(Some(key), e))
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        let deadline = &self.locks.gives_up_by(deadline);
        let removed = values::remove(&self.locks, key, deadline);
        removed.map_err(|e| self.locks.error(Some(key), e))
    }

    fn value_key(&self, key: &Key) -> String {
        self.locks.name(key).child(nodes::VALUE)
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let deadline = &self.locks.gives_up_by(deadline);
        let line = kept::current_line(&self.locks, &self.locks.name(key), deadline);
        let line = line.map_err(|e| self.locks.error(Some(key), e))?;
        Ok(line.free_permits(of))
    }
}
