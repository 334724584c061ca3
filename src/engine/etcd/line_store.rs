//! etcd as a store of lines: which transaction each step takes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::client::failure::Failure;
use super::diagnosis;
use super::owners::Own;
use super::store::EtcdStore;
use super::watch::EtcdWatch;
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::value::Stored;
use crate::engine::line::{
    Blocker, Commit, Committed, Entry, Found, HAND_OVERS, Inspected, Line, LineStore, Snapshot,
    Step, Watched, When, Why,
};
use crate::engine::{Capabilities, Cursor, Outcome, Page, Request, Revocations, Unanswered};

/// etcd takes 128 operations in a transaction, and each name needs three.
const MOST_NAMES: usize = 40;

impl LineStore for EtcdStore {
    type Watch = EtcdWatch;

    fn place(&self) -> &str {
        self.client.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            most_names: MOST_NAMES,
            preference: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        deadline.within(self.client.patience())
    }

    fn enter(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        match self.enter_line(request, when, deadline) {
            // Its lease is gone, or that of what is to be told of it.
            Err(unanswered) if matches!(unanswered.error, Failure::LeaseGone) => {
                self.leases.lose_memory();
                self.drop_lease(request.owner, deadline);
                Ok(Step::Lost)
            }
            step => step.map_err(|e| self.unanswered(request, e)),
        }
    }

    fn look(
        &self,
        request: Request<'_>,
        why: Why,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        let own = self.known(request.owner);
        let is_due = own.keepalive <= self.clock.now() && why != Why::Unclear;
        let step = match why {
            Why::Quiet if is_due => self.keep(request, &own, deadline),
            _ if is_due && own.touched.is_none() => self.beat(request, &own, deadline),
            // Going in is a commit also where somebody is still ahead.
            Why::Quiet | Why::News if request.claim.is_exclusive() => {
                return self.admit_alone(request, deadline);
            }
            Why::Unclear => self.see(
                request,
                &Own {
                    created: None,
                    ..own
                },
                deadline,
            ),
            _ => self.see(request, &own, deadline),
        };
        step.map_err(|e| self.unanswered(request, e))
    }

    fn admit(
        &self,
        request: Request<'_>,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        if request.claim.is_exclusive() {
            return self.admit_alone(request, deadline);
        }
        let grant = (seen.is_abandoned, seen.value.clone());
        let step = self.granted(request, grant, deadline);
        step.map_err(|e| self.unanswered(request, e))
    }

    fn rest(&self, request: Request<'_>) -> Duration {
        let keepalive = self.known(request.owner).keepalive;
        keepalive.since(self.clock.now())
    }

    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        _seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<EtcdWatch>> {
        self.begin_watch(request, blocker, deadline)
    }

    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Unanswered> {
        self.give_up(request, deadline)
            .map_err(|e| self.unanswered(request, e))
    }

    fn has_inflight(&self, request: Request<'_>) -> bool {
        let own = self.owners.get(request.owner);
        own.is_some_and(|own| own.is_unclear)
    }

    fn retire(&self, request: Request<'_>, deadline: &Deadline) {
        self.retire_owner(request, deadline);
    }

    fn abandon(&self, request: Request<'_>, deadline: &Deadline) {
        self.drop_lease(request.owner, deadline);
    }

    fn settle(&self, request: Request<'_>, deadline: &Deadline) {
        if let Some(own) = self.owners.get(request.owner) {
            self.leases.revoke(own.lease, deadline);
        }
    }

    fn prove(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        self.renew(request, deadline)
    }

    fn own(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<Found>> {
        let found = self.own_entries(request, deadline);
        found.map_err(|e| self.error(Some(request.key().name()), e))
    }

    fn commit(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        deadline: &Deadline,
    ) -> Result<Committed> {
        self.change(request, commit, deadline)
    }

    fn lines(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<Line>> {
        self.whole_lines(request, deadline)
    }

    fn resume(
        &self,
        request: Request<'_>,
        entries: &[Entry],
        _deadline: &Deadline,
    ) -> Result<bool> {
        Ok(self.go_on_with(request, entries))
    }

    fn inspect(&self, key: &Key, with_times: bool, deadline: &Deadline) -> Result<Inspected> {
        self.inspect_name(key, with_times, deadline)
    }

    fn end(&self, key: &Key, entries: &[Entry], deadline: &Deadline) -> Result<bool> {
        self.end_entries(key, entries, deadline)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        self.list_names(namespace, prefix, cursor, deadline)
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.load_value(key, deadline)
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.remove_value(key, deadline)
    }

    fn value_key(&self, key: &Key) -> String {
        self.keys_of(key).value()
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        diagnosis::diagnose(self, namespace, options, deadline)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.receivers.add(to);
    }

    fn after_fork(&self) -> Arc<Self> {
        let client = Arc::new(self.client.after_fork());
        Arc::new(EtcdStore::new(client, self.clock.clone()))
    }
}

impl EtcdStore {
    fn enter_line(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered<Failure>> {
        // One that has nothing takes another lease if its own isn't new any more.
        if let Some(own) = self.owners.get(request.owner)
            && !self.leases.is_fresh(&own.lease, request.ttl)
        {
            self.drop_lease(request.owner, deadline);
        }
        let own = self.own_of(request, deadline).map_err(Unanswered::unsent)?;
        if request.claim.is_exclusive() {
            self.enter_alone(request, &own, when == When::Always, deadline)
        } else {
            self.enter_among(request, &own, when, deadline)
        }
    }

    /// Goes in alone, also where the lease is gone that remembers who was let in: then another remembers that.
    fn admit_alone(&self, request: Request<'_>, deadline: &Deadline) -> Result<Step, Unanswered> {
        loop {
            let own = self.known(request.owner);
            match self.go_in(request, &own, deadline) {
                Err(e) if matches!(e.error, Failure::LeaseGone) && !deadline.is_over() => {
                    self.leases.lose_memory();
                }
                step => return step.map_err(|e| self.unanswered(request, e)),
            }
        }
    }
}
