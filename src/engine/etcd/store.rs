//! The servers, and what this process knows of its leases and owners there.

use std::{sync::Arc, time::Duration};

use super::client::{Answer, Client, Failure, KeyValue, LeaseId, Op, OpResult, Range, Txn};
use super::keys::{Keys, Text, of_names};
use super::leases::{Leases, Own, Owners};
use crate::base::{
    BootInstant, Claim, Clock, Deadline, Error, Key, Namespace, Owner, Result, Stored,
    backoff::shortened, sys::time,
};
use crate::engine::line::{Entry, Line, until_answered};
use crate::engine::{Failed, Receivers, Request};

/// The servers, and what this process knows of its leases and owners there.
#[derive(Debug)]
pub(super) struct EtcdStore {
    pub(super) client: Arc<Client>,
    pub(super) leases: Leases,
    pub(super) owners: Owners,
    pub(super) receivers: Receivers,
    pub(super) clock: Arc<dyn Clock>,
}

/// What it may take to end what nobody needs any more.
pub(super) const ENDING: Duration = Duration::from_millis(60);

/// The servers' answer to a known user that may not read a key.
pub(super) const NOT_YOURS: &str = "permission denied";

impl EtcdStore {
    pub(super) fn new(client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        EtcdStore {
            leases: Leases::new(client.clone(), clock.clone()),
            client,
            owners: Owners::default(),
            receivers: Receivers::default(),
            clock,
        }
    }

    pub(super) fn error(&self, name: Option<&str>, failure: Failure) -> Error {
        failure.into_error(name, self.client.endpoint())
    }

    pub(super) fn failed(&self, name: &str, why: Failed<Failure>) -> Failed {
        Failed {
            error: self.error(Some(name), why.error),
            sent: why.sent,
        }
    }

    pub(super) fn keys(&self, claim: &Claim) -> Vec<Keys> {
        claim.keys().iter().map(|key| self.keys_of(key)).collect()
    }

    pub(super) fn keys_of(&self, key: &Key) -> Keys {
        Keys::of(self.client.root(), key)
    }

    /// What is known of an owner, which is given a lease if it has none.
    pub(super) fn own_of(&self, request: Request<'_>, deadline: &Deadline) -> Result<Own, Failure> {
        if let Some(own) = self.owners.get(request.owner) {
            return Ok(own);
        }
        let text = Text {
            mode: request.claim.mode,
            owner: Some(request.owner.clone()),
            since: host_millis(),
            token: None,
        };
        let lease = self.leases.take(request.ttl, false, deadline)?;
        let left = self.owners.find(request.owner).map(|left| left.id);
        let own = Own {
            keepalive: next_keepalive(lease.since, request.ttl),
            lease,
            id: left.unwrap_or_else(|| lease.id.to_string()),
            text: text.to_bytes(),
            has_inflight: false,
            ..Own::unknown()
        };
        self.know(request, own.clone());
        Ok(own)
    }

    /// What is known of an owner; of one that was forgotten, or comes from another process, no more than its keys.
    pub(super) fn known(&self, owner: &Owner) -> Own {
        self.owners.find(owner).unwrap_or_else(Own::unknown)
    }

    pub(super) fn know(&self, request: Request<'_>, own: Own) {
        self.owners
            .set(request.owner, own, self.clock.now(), request.ttl);
    }

    /// The lease of an owner has ended, or is about to.
    pub(super) fn drop_lease(&self, owner: &Owner, deadline: &Deadline) {
        let own = self.owners.remove(owner);
        // A long one would stay for long.
        if let Some(own) = own.filter(|own| own.has_inflight || own.lease.id.is_long()) {
            self.revoke_all(&own, deadline);
        }
    }

    /// Ends the owner's lease, and that to which its entry may have been moved.
    pub(super) fn revoke_all(&self, own: &Own, deadline: &Deadline) {
        let leases = [Some(own.lease), own.moving].into_iter().flatten();
        leases.for_each(|lease| self.leases.revoke(lease.id, deadline));
    }

    /// Carries out what may change something for an owner.
    pub(super) fn write(
        &self,
        owner: &Owner,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        let answer = self.client.transact(txn, deadline);
        match &answer {
            Ok(answer) => self
                .owners
                .change(owner, |own| own.lease.revision = answer.revision),
            Err(e) if e.sent => self.owners.change(owner, |own| own.has_inflight = true),
            Err(_) => {}
        }
        answer
    }

    /// Finds whether the owner's lease has entries of others, which came back with the servers' data: then it is
    /// ended with the owner's own. And whether the owner has entries under another lease than its own, with which
    /// they would end.
    pub(super) fn distrusts_lease(&self, owner: &Owner, lines: &[Line]) -> bool {
        let Some(own) = self.owners.get(owner) else {
            return lines.iter().any(|line| line.find(owner).is_some());
        };
        let is_under = |entry: &Entry| entry.session == Some(own.lease.id.0);
        let entries = || lines.iter().flat_map(|line| &line.0);
        let is_shared = entries().any(|entry| is_under(entry) && !entry.is_of(owner));
        if is_shared {
            self.owners.change(owner, |own| own.has_inflight = true);
        }
        is_shared || entries().any(|entry| entry.is_of(owner) && !is_under(entry))
    }

    /// Takes the lease for gone that an owner had before this answer, if the servers' data was set back since it was
    /// taken: then it may have places of earlier owners again, and would keep them. What was `written` has a revision
    /// of its own.
    pub(super) fn check_data(
        &self,
        owner: &Owner,
        before: &Own,
        (answer, written): (&Answer, bool),
    ) -> Result<(), Failed<Failure>> {
        if before.lease.revision + u64::from(written) <= answer.revision {
            return Ok(());
        }
        log::warn!(
            "etcd lost data: {} was at revision {} and is now at {}",
            self.client.endpoint(),
            before.lease.revision,
            answer.revision
        );
        self.owners.change(owner, |own| own.has_inflight = true);
        Err(Failed::unsent(Failure::LeaseGone))
    }

    /// Finds whether the servers know who we are. Which keys this user may read isn't said to us.
    pub(super) fn greet(&self, deadline: &Deadline) -> Result<()> {
        let key = format!("{}/", self.client.root());
        match self.read(vec![get(key)], deadline) {
            Err(Failure::Denied(cause)) if cause.to_string().contains(NOT_YOURS) => Ok(()),
            answer => answer.map(drop).map_err(|e| self.error(None, e)),
        }
    }

    /// Reads from the keys of a namespace, and nothing more.
    pub(super) fn ping(&self, namespace: &Namespace, deadline: &Deadline) -> Result<()> {
        let key = of_names(self.client.root(), namespace, "");
        let answer = self.read(vec![get(key)], deadline);
        answer.map(drop).map_err(|e| self.error(None, e))
    }

    /// Carries out what only reads.
    pub(super) fn read(&self, then: Vec<Op>, deadline: &Deadline) -> Result<Answer, Failure> {
        let answer = self.client.transact(&reading(then), deadline);
        answer.map_err(|failed| failed.error)
    }

    /// The same, until there is an answer.
    pub(super) fn until_read(
        &self,
        name: Option<&str>,
        ops: &[Op],
        deadline: &Deadline,
    ) -> Result<Answer> {
        let (answer, _) = self.until_written(name, &reading(ops.to_vec()), deadline)?;
        Ok(answer)
    }

    /// Carries out what is harmless to do twice, until there is an answer. Says also whether it may have been carried
    /// out before.
    pub(super) fn until_written(
        &self,
        name: Option<&str>,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<(Answer, bool)> {
        until_answered(deadline, || {
            let answer = self.client.transact(txn, deadline);
            answer.map_err(|Failed { error, sent }| Failed {
                error: self.error(name, error),
                sent,
            })
        })
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.leases.close(&Deadline::after(ENDING));
    }
}

/// When to keep a lease alive that lasts from then on.
pub(super) fn next_keepalive(since: BootInstant, ttl: Duration) -> BootInstant {
    /// The part of the pause between two keepalives that is random.
    const JITTER: f64 = 0.15;
    since.plus(shortened(ttl / 3, JITTER))
}

/// A transaction without a condition, such as one that only reads.
pub(super) fn reading(then: Vec<Op>) -> Txn {
    Txn {
        compares: Vec::new(),
        then,
        otherwise: Vec::new(),
    }
}

pub(super) fn get(key: String) -> Op {
    Op::Get(Range::Key(key))
}

pub(super) fn delete(key: String) -> Op {
    Op::Delete(Range::Key(key))
}

/// The entries of each range that was asked for, in order.
pub(super) fn got(answer: Answer) -> impl Iterator<Item = Vec<KeyValue>> {
    let results = answer.results.into_iter();
    results.filter_map(|result| match result {
        OpResult::Got(entries) => Some(entries),
        OpResult::Put | OpResult::Deleted(_) | OpResult::If(_) => None,
    })
}

/// A value among the entries of its key.
pub(super) fn value_of(entries: Vec<KeyValue>) -> Stored {
    entries.into_iter().next().map(|entry| entry.value.into())
}

/// The wall clock of this host. It is only shown to operators: nothing depends on it.
pub(super) fn host_millis() -> u64 {
    time::wall().as_millis().try_into().unwrap_or(0)
}

/// The marker's value says since when: operators are shown that.
pub(super) fn put_marker(keys: &Keys, own: &Own, memory: LeaseId) -> Op {
    Op::Put {
        key: keys.marker_of(&own.id),
        value: host_millis().to_string().into_bytes(),
        lease: Some(memory),
    }
}

/// Puts the owner's entry there under a lease.
pub(super) fn put_place(keys: &Keys, own: &Own, lease: LeaseId) -> Op {
    Op::Put {
        key: keys.place(&own.id),
        value: own.text.clone(),
        lease: Some(lease),
    }
}
