//! What all commands share: the servers, and what this process knows of its leases and owners.

use std::sync::Arc;
use std::time::Duration;

use super::ops::{get, host_millis, look};
use super::seen::Seen;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::name::Namespace;
use crate::base::owner::Owner;
use crate::engine::etcd::client::Client;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::client::txn::{Answer, Op, Txn};
use crate::engine::etcd::keys::{Keys, id_of, of_names};
use crate::engine::etcd::leases::{Leases, ServerLease};
use crate::engine::etcd::owners::{Own, Owners, gone_after};
use crate::engine::etcd::place::{Place, Text};
use crate::engine::etcd::receivers::Receivers;
use crate::engine::{Request, Unanswered};

#[derive(Debug)]
pub(in super::super) struct Commands {
    pub(in super::super) client: Arc<Client>,
    pub(in super::super) leases: Leases,
    pub(in super::super) owners: Owners,
    pub(in super::super) receivers: Receivers,
    pub(in super::super) clock: Arc<dyn Clock>,
}

/// What it may take to end what nobody needs any more, and what would end by its ttl.
pub(super) const ENDING: Duration = Duration::from_millis(60);

/// What the servers answer to a user whom they know, and who may not read that key.
const NOT_YOURS: &str = "permission denied";

/// The pause before a request without an answer is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

impl Commands {
    pub(in super::super) fn new(client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        Commands {
            leases: Leases::new(client.clone(), clock.clone()),
            client,
            owners: Owners::default(),
            receivers: Receivers::default(),
            clock,
        }
    }

    pub(in super::super) fn error(&self, name: Option<&str>, failure: Failure) -> Error {
        failure.into_error(name, self.client.place())
    }

    pub(in super::super) fn keys(&self, claim: &Claim) -> Vec<Keys> {
        let keys = claim.keys().iter();
        keys.map(|key| Keys::of(self.client.root(), key)).collect()
    }

    /// What is known of an owner, which is given a lease if it has none.
    pub(in super::super) fn own(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Own, Failure> {
        if let Some(own) = self.owners.get(request.owner) {
            return Ok(own);
        }
        let text = Text {
            mode: request.claim.mode,
            owner: Some(request.owner.clone()),
            since: host_millis(),
            token: None,
        };
        let own = Own {
            lease: self.leases.take(request.ttl, deadline)?,
            touched: None,
            id: id_of(request.owner).to_owned(),
            text: text.to_bytes(),
            is_unclear: false,
            has_entered: false,
        };
        self.know(request, own.clone());
        Ok(own)
    }

    pub(in super::super) fn know(&self, request: Request<'_>, own: Own) {
        let now = self.clock.now();
        let age = now.since(BootInstant::START);
        let old = BootInstant::START.plus(age.saturating_sub(gone_after(request.ttl)));
        self.owners.set(request.owner, own, old);
    }

    /// Nothing is left of an owner at etcd, but what a request without an answer may still bring. Its lease is for the next.
    pub(in super::super) fn retire(&self, owner: &Owner, deadline: &Deadline) {
        match self.owners.remove(owner) {
            Some(own) if own.is_unclear => self.leases.revoke(own.lease, deadline),
            Some(own) => self.leases.give_back(own.lease),
            None => {}
        }
    }

    /// The lease of an owner has ended, or is about to.
    pub(in super::super) fn drop_lease(&self, owner: &Owner, deadline: &Deadline) {
        let own = self.owners.remove(owner);
        if let Some(own) = own.filter(|own| own.is_unclear) {
            self.leases.revoke(own.lease, deadline);
        }
    }

    /// Carries out what may change something for an owner.
    pub(in super::super) fn write(
        &self,
        owner: &Owner,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let answer = self.client.transact(txn, deadline);
        match &answer {
            Ok(answer) => self
                .owners
                .change(owner, |own| own.lease.revision = answer.revision),
            Err(e) if e.sent => self.owners.change(owner, |own| own.is_unclear = true),
            Err(_) => {}
        }
        answer
    }

    /// Finds whether the owner's lease has places of others, which came back with the servers' data: then it is ended with
    /// the owner's own places. And whether the owner has places under another lease than its own, with which they would end.
    pub(in super::super) fn distrusts_lease(&self, owner: &Owner, seen: &Seen) -> bool {
        let Some(own) = self.owners.get(owner) else {
            return false;
        };
        let is_own = |place: &Place| place.owner() == Some(owner);
        let has = |lease: ServerLease, place: &Place| place.lease == Some(lease.id);
        let places = || seen.lines.iter().flat_map(|line| &line.0);
        let is_shared = places().any(|place| has(own.lease, place) && !is_own(place));
        if is_shared {
            self.owners.change(owner, |own| own.is_unclear = true);
        }
        is_shared || places().any(|place| is_own(place) && !has(own.lease, place))
    }

    /// Takes the lease for gone that an owner had before this answer, if the servers' data was set back since it was taken:
    /// then it may have places of earlier owners again, and would keep them. What was `written` has a revision of its own.
    pub(super) fn check_data(
        &self,
        owner: &Owner,
        before: &Own,
        (answer, written): (&Answer, bool),
    ) -> Result<(), Unanswered<Failure>> {
        if before.lease.revision + u64::from(written) <= answer.revision {
            return Ok(());
        }
        log::warn!(
            "the data of etcd is older than it was: {} knew revision {}, and it is at {}",
            self.client.place(),
            before.lease.revision,
            answer.revision
        );
        self.owners.change(owner, |own| own.is_unclear = true);
        Err(Unanswered::unsent(Failure::LeaseGone))
    }

    /// Finds whether the servers know who we are. Which keys this user may read isn't said to us.
    pub(in super::super) fn greet(&self, deadline: &Deadline) -> Result<()> {
        let key = format!("{}/", self.client.root());
        match self.read(vec![get(key)], deadline) {
            Err(Failure::Denied(cause)) if cause.to_string().contains(NOT_YOURS) => Ok(()),
            answer => answer.map(drop).map_err(|e| self.error(None, e)),
        }
    }

    /// Reads from the keys of a namespace, and nothing more.
    pub(in super::super) fn ping(&self, namespace: &Namespace, deadline: &Deadline) -> Result<()> {
        let key = of_names(self.client.root(), namespace, "");
        let answer = self.read(vec![get(key)], deadline);
        answer.map(drop).map_err(|e| self.error(None, e))
    }

    /// Carries out what only reads.
    pub(super) fn read(&self, then: Vec<Op>, deadline: &Deadline) -> Result<Answer, Failure> {
        let answer = self.client.transact(&look(then), deadline);
        answer.map_err(|unanswered| unanswered.error)
    }

    /// Asks until there is an answer, for what is harmless to repeat. Says also whether a question without an answer may have
    /// been carried out before.
    pub(super) fn until_answered<T>(
        &self,
        name: Option<&str>,
        deadline: &Deadline,
        mut ask: impl FnMut() -> Result<T, Unanswered<Failure>>,
    ) -> Result<(T, bool)> {
        // Some calls have no deadline of their own.
        let until = deadline.within(self.client.patience());
        let mut was_sent = false;
        loop {
            let Unanswered { error, sent } = match ask() {
                Ok(answer) => return Ok((answer, was_sent)),
                Err(unanswered) => unanswered,
            };
            was_sent |= sent;
            let error = self.error(name, error);
            if error.may_pass() {
                deadline.sleep(PAUSE);
            }
            if !error.may_pass() || until.is_over() {
                return Err(error);
            }
        }
    }

    /// The same for what only reads.
    pub(super) fn until_read(
        &self,
        name: Option<&str>,
        deadline: &Deadline,
        ask: impl Fn() -> Result<Answer, Failure>,
    ) -> Result<Answer> {
        let ask = || ask().map_err(Unanswered::unsent);
        Ok(self.until_answered(name, deadline, ask)?.0)
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.leases.close(&Deadline::after(ENDING));
    }
}
