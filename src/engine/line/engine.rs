//! The engine of a store: each call to what does it.

use std::fmt;
use std::sync::{Arc, Weak};

use super::leases::LineLeases;
use super::operators::LineOperators;
use super::store::LineStore;
use super::wait::LineWait;
use super::{leases, operators};
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait,
};

/// Locks in a store of lines.
pub(crate) struct LineEngine<S>(pub(crate) Arc<S>);

impl<S: LineLeases + LineOperators> Engine for LineEngine<S> {
    fn place(&self) -> &str {
        self.0.place()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(LineWait::new(self.0.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (store, deadline) = (&*self.0, &self.0.gives_up_by(deadline));
        match change {
            Change::Renew => store.prove(request, deadline),
            Change::Verify => leases::verify(store, request, deadline),
            Change::Release(release) => leases::release(store, request, release, deadline),
            Change::Store(value) => leases::store(store, request, value, deadline),
            Change::Downgrade { last_used, value } => {
                leases::downgrade(store, request, (last_used, value), deadline)
            }
            Change::Adopt { from, last_used } => {
                leases::adopt(store, request, (from, last_used), deadline)
            }
            Change::GiveAway => Ok(Outcome::DONE),
        }
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        operators::inspect(&*self.0, key, &self.0.gives_up_by(deadline))
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let deadline = self.0.gives_up_by(deadline);
        self.0.list(namespace, prefix, &cursor, &deadline)
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        operators::break_lock(&*self.0, key, &self.0.gives_up_by(deadline))
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let deadline = self.0.gives_up_by(deadline);
        let seen = self.0.inspect(key, false, &deadline)?;
        Ok(seen.line.free_permits(of))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.0.load(key, &self.0.gives_up_by(deadline))
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.0.remove(key, &self.0.gives_up_by(deadline))
    }

    fn value_key(&self, key: &Key) -> String {
        self.0.value_key(key)
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        self.0.diagnose(namespace, options, deadline)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.0.tell_revocations(to);
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::new(LineEngine(self.0.after_fork())))
    }

    fn forget(&self, owner: &Owner) {
        self.0.forget(owner);
    }
}

impl<S: LineStore> fmt::Debug for LineEngine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
