//! The values that locks protect: a key of each, without a lease.

use super::change::Changed;
use super::ops::{delete, get, got, value_of};
use super::shared::Commands;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::name::Key;
use crate::base::value::Stored;
use crate::engine::etcd::client::txn::{Compare, Op, Txn};
use crate::engine::etcd::keys::Keys;
use crate::engine::{Outcome, Request};

impl Commands {
    pub(in super::super) fn store(
        &self,
        request: Request<'_>,
        value: &[u8],
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (mut own, keys) = (self.known(request.owner), self.keys(request.claim));
        let mut was_sent = false;
        loop {
            let put = Op::Put {
                key: keys[0].value(),
                value: value.to_vec(),
                lease: None,
            };
            let (changed, sent) = self.change(request, (&keys, &own), vec![put], deadline)?;
            was_sent |= sent;
            let found = match changed {
                Changed::Done if was_sent => return Ok(Outcome::DONE_AGAIN),
                Changed::Done => return Ok(Outcome::DONE),
                Changed::Other(found) => found.into_iter().next(),
            };
            let Some(entry) = found.and_then(|found| found.own) else {
                return Ok(Outcome::NOT_OWNER);
            };
            own.text = entry.value;
        }
    }

    pub(in super::super) fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        let value = self.keys_of(key).value();
        let read = || self.read(vec![get(value.clone())], deadline);
        let answer = self.until_read(Some(key.name()), deadline, read)?;
        Ok(got(answer).next().and_then(value_of))
    }

    /// Removes what one look shows: a request that comes late finds another value, and leaves it.
    pub(in super::super) fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        let (name, value) = (Some(key.name()), self.keys_of(key).value());
        loop {
            let read = || self.read(vec![get(value.clone())], deadline);
            let answer = self.until_read(name, deadline, read)?;
            let Some(entry) = got(answer).next().unwrap_or_default().pop() else {
                return Ok(());
            };
            let txn = Txn {
                compares: vec![Compare::ModifiedAt(value.clone(), entry.modified)],
                then: vec![delete(value.clone())],
                otherwise: Vec::new(),
            };
            let write = || self.client.transact(&txn, deadline);
            if self.until_answered(name, deadline, write)?.0.succeeded {
                return Ok(());
            }
        }
    }

    /// The keys of one name.
    pub(in super::super) fn keys_of(&self, key: &Key) -> Keys {
        Keys::of(self.client.root(), key)
    }
}
