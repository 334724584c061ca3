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

use self::client::{Answer, Client, Failure, KeyValue, LeaseId, Op, OpResult, Range, Txn};
use self::keys::{Keys, Text, of_names};
use self::leases::{Leases, Own, Owners, whole_seconds};
use super::line::{Entry, Line, LineEngine, until_answered};
use super::receivers::Receivers;
use super::{Engine, Request, Unanswered};
use crate::base::backoff::shortened;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::sys::time;
use crate::base::value::Stored;

mod address;
mod client;
mod commit;
mod enter;
mod keys;
mod leases;
mod line_store;
mod look;
mod operators;

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

/// The servers, and what this process knows of its leases and owners there.
#[derive(Debug)]
struct EtcdStore {
    client: Arc<Client>,
    leases: Leases,
    owners: Owners,
    receivers: Receivers,
    clock: Arc<dyn Clock>,
}

/// What it may take to end what nobody needs any more.
const ENDING: Duration = Duration::from_millis(60);

/// The servers' answer to a known user that may not read a key.
const NOT_YOURS: &str = "permission denied";

impl EtcdStore {
    fn new(client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        EtcdStore {
            leases: Leases::new(client.clone(), clock.clone()),
            client,
            owners: Owners::default(),
            receivers: Receivers::default(),
            clock,
        }
    }

    fn error(&self, name: Option<&str>, failure: Failure) -> Error {
        failure.into_error(name, self.client.place())
    }

    fn unanswered(&self, name: &str, why: Unanswered<Failure>) -> Unanswered {
        Unanswered {
            error: self.error(Some(name), why.error),
            sent: why.sent,
        }
    }

    fn keys(&self, claim: &Claim) -> Vec<Keys> {
        claim.keys().iter().map(|key| self.keys_of(key)).collect()
    }

    fn keys_of(&self, key: &Key) -> Keys {
        Keys::of(self.client.root(), key)
    }

    /// What is known of an owner, which is given a lease if it has none.
    fn own_of(&self, request: Request<'_>, deadline: &Deadline) -> Result<Own, Failure> {
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
    fn known(&self, owner: &Owner) -> Own {
        self.owners.find(owner).unwrap_or_else(Own::unknown)
    }

    fn know(&self, request: Request<'_>, own: Own) {
        self.owners
            .set(request.owner, own, self.clock.now(), request.ttl);
    }

    /// The lease of an owner has ended, or is about to.
    fn drop_lease(&self, owner: &Owner, deadline: &Deadline) {
        let own = self.owners.remove(owner);
        // A long one would stay for long.
        if let Some(own) = own.filter(|own| own.has_inflight || own.lease.id.is_long()) {
            self.revoke_all(&own, deadline);
        }
    }

    /// Ends the owner's lease, and that to which its entry may have been moved.
    fn revoke_all(&self, own: &Own, deadline: &Deadline) {
        let leases = [Some(own.lease), own.moving].into_iter().flatten();
        leases.for_each(|lease| self.leases.revoke(lease.id, deadline));
    }

    /// Carries out what may change something for an owner.
    fn write(
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
            Err(e) if e.sent => self.owners.change(owner, |own| own.has_inflight = true),
            Err(_) => {}
        }
        answer
    }

    /// Finds whether the owner's lease has entries of others, which came back with the servers' data: then it is
    /// ended with the owner's own. And whether the owner has entries under another lease than its own, with which
    /// they would end.
    fn distrusts_lease(&self, owner: &Owner, lines: &[Line]) -> bool {
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
    fn check_data(
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
        self.owners.change(owner, |own| own.has_inflight = true);
        Err(Unanswered::unsent(Failure::LeaseGone))
    }

    /// Finds whether the servers know who we are. Which keys this user may read isn't said to us.
    fn greet(&self, deadline: &Deadline) -> Result<()> {
        let key = format!("{}/", self.client.root());
        match self.read(vec![get(key)], deadline) {
            Err(Failure::Denied(cause)) if cause.to_string().contains(NOT_YOURS) => Ok(()),
            answer => answer.map(drop).map_err(|e| self.error(None, e)),
        }
    }

    /// Reads from the keys of a namespace, and nothing more.
    fn ping(&self, namespace: &Namespace, deadline: &Deadline) -> Result<()> {
        let key = of_names(self.client.root(), namespace, "");
        let answer = self.read(vec![get(key)], deadline);
        answer.map(drop).map_err(|e| self.error(None, e))
    }

    /// Carries out what only reads.
    fn read(&self, then: Vec<Op>, deadline: &Deadline) -> Result<Answer, Failure> {
        let answer = self.client.transact(&reading(then), deadline);
        answer.map_err(|unanswered| unanswered.error)
    }

    /// The same, until there is an answer.
    fn until_read(&self, name: Option<&str>, ops: &[Op], deadline: &Deadline) -> Result<Answer> {
        let (answer, _) = self.until_written(name, &reading(ops.to_vec()), deadline)?;
        Ok(answer)
    }

    /// Carries out what is harmless to do twice, until there is an answer. Says also whether it may have been carried
    /// out before.
    fn until_written(
        &self,
        name: Option<&str>,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<(Answer, bool)> {
        until_answered(deadline, || {
            let answer = self.client.transact(txn, deadline);
            answer.map_err(|Unanswered { error, sent }| Unanswered {
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
fn next_keepalive(since: BootInstant, ttl: Duration) -> BootInstant {
    /// The part of the pause between two keepalives that is random.
    const JITTER: f64 = 0.15;
    since.plus(shortened(ttl / 3, JITTER))
}

/// A transaction without a condition, such as one that only reads.
fn reading(then: Vec<Op>) -> Txn {
    Txn {
        compares: Vec::new(),
        then,
        otherwise: Vec::new(),
    }
}

fn get(key: String) -> Op {
    Op::Get(Range::Key(key))
}

fn delete(key: String) -> Op {
    Op::Delete(Range::Key(key))
}

/// The entries of each range that was asked for, in order.
fn got(answer: Answer) -> impl Iterator<Item = Vec<KeyValue>> {
    let results = answer.results.into_iter();
    results.filter_map(|result| match result {
        OpResult::Got(entries) => Some(entries),
        OpResult::Put | OpResult::Deleted(_) | OpResult::If(_) => None,
    })
}

/// A value among the entries of its key.
fn value_of(entries: Vec<KeyValue>) -> Stored {
    entries.into_iter().next().map(|entry| entry.value.into())
}

/// The wall clock of this host. It is only shown to operators: nothing depends on it.
fn host_millis() -> u64 {
    time::wall().as_millis().try_into().unwrap_or(0)
}

/// The marker's value says since when: operators are shown that.
fn put_marker(keys: &Keys, own: &Own, memory: LeaseId) -> Op {
    Op::Put {
        key: keys.marker_of(&own.id),
        value: host_millis().to_string().into_bytes(),
        lease: Some(memory),
    }
}

/// Puts the owner's entry there under a lease.
fn put_place(keys: &Keys, own: &Own, lease: LeaseId) -> Op {
    Op::Put {
        key: keys.place(&own.id),
        value: own.text.clone(),
        lease: Some(lease),
    }
}
