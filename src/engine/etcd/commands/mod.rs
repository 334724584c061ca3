//! What is asked about a name, and what the answers mean.
//!
//! Each submodule has the transactions of one kind of call. What always holds here: an owner's place is changed only by a
//! transaction that finds it as this owner has written it, but for an operator's.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::Client;
use super::client::failure::Failure;
use super::client::txn::{Answer, Entry, Op, OpResult, Range, Txn};
use super::keys::{Keys, id_of, of_names};
use super::leases::Leases;
use super::owners::{Own, Owners, gone_after};
use super::place::Text;
use super::receivers::Receivers;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::name::Namespace;
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::{Request, Unanswered};

mod adopt;
mod break_lock;
mod change;
mod downgrade;
mod enter;
mod inspect;
mod leave;
mod list;
mod release;
mod renew;
mod seen;
mod values;

pub(super) use self::enter::Entered;
pub(super) use self::seen::Seen;

#[derive(Debug)]
pub(super) struct Commands {
    pub(super) client: Arc<Client>,
    pub(super) leases: Leases,
    pub(super) owners: Owners,
    pub(super) receivers: Receivers,
    pub(super) clock: Arc<dyn Clock>,
}

/// What the last lockers may take to end what nobody needs any more.
const CLOSING: Duration = Duration::from_millis(60);

/// What the servers answer to a user whom they know, and who may not read that key.
const NOT_YOURS: &str = "permission denied";

/// The pause before a request without an answer is sent again.
const PAUSE: Duration = Duration::from_millis(10);

impl Commands {
    pub(super) fn new(client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        Commands {
            leases: Leases::new(client.clone(), clock.clone()),
            client,
            owners: Owners::default(),
            receivers: Receivers::default(),
            clock,
        }
    }

    pub(super) fn error(&self, name: Option<&str>, failure: Failure) -> Error {
        failure.into_error(name, self.client.place())
    }

    pub(super) fn keys(&self, claim: &Claim) -> Vec<Keys> {
        let keys = claim.keys().iter();
        keys.map(|key| Keys::of(self.client.root(), key)).collect()
    }

    /// What is known of an owner, which is given a lease if it has none.
    pub(super) fn own(&self, request: Request<'_>, deadline: &Deadline) -> Result<Own, Failure> {
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
            id: id_of(request.owner).to_owned(),
            text: text.to_bytes(),
            is_unclear: false,
            has_entered: false,
        };
        self.know(request, own.clone());
        Ok(own)
    }

    pub(super) fn know(&self, request: Request<'_>, own: Own) {
        let now = self.clock.now();
        let age = now.since(BootInstant::START);
        let old = BootInstant::START.plus(age.saturating_sub(gone_after(request.ttl)));
        self.owners.set(request.owner, own, old);
    }

    /// Nothing is left of an owner at etcd, but what a request without an answer may still bring. Its lease is for the next.
    pub(super) fn retire(&self, owner: &Owner, deadline: &Deadline) {
        match self.owners.remove(owner) {
            Some(own) if own.is_unclear => self.leases.revoke(own.lease, deadline),
            Some(own) => self.leases.give_back(own.lease),
            None => {}
        }
    }

    /// The lease of an owner has ended, or is about to.
    pub(super) fn drop_lease(&self, owner: &Owner, deadline: &Deadline) {
        if let Some(own) = self.owners.remove(owner).filter(|own| own.is_unclear) {
            self.leases.revoke(own.lease, deadline);
        }
    }

    /// Carries out what may change something for an owner.
    pub(super) fn write(
        &self,
        owner: &Owner,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.client.transact(txn, deadline).inspect_err(|e| {
            if e.sent {
                self.owners.change(owner, |own| own.is_unclear = true);
            }
        })
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
    fn read(&self, then: Vec<Op>, deadline: &Deadline) -> Result<Answer, Failure> {
        let answer = self.client.transact(&look(then), deadline);
        answer.map_err(|unanswered| unanswered.error)
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.leases.close(&Deadline::after(CLOSING));
    }
}

/// A transaction that only reads.
fn look(then: Vec<Op>) -> Txn {
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
fn got(answer: Answer) -> impl Iterator<Item = Vec<Entry>> {
    answer
        .results
        .into_iter()
        .filter_map(|result| match result {
            OpResult::Got(entries) => Some(entries),
            _ => None,
        })
}

/// A value among the entries of its key.
fn value_of(entries: Vec<Entry>) -> Stored {
    entries.into_iter().next().map(|entry| entry.value.into())
}

/// The time of this host, for those who look: nothing depends on it.
fn host_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .unwrap_or_default()
        .as_millis()
        .try_into()
        .unwrap_or(0)
}
