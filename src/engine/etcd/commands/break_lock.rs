//! How operators take a lock from whoever has it.

use std::collections::BTreeSet;

use super::ops::{get, got, host_millis};
use super::shared::Commands;
use crate::base::clock::Deadline;
use crate::base::error::{LostReason, Result};
use crate::base::inspection::Holder;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::engine::etcd::client::txn::{Compare, LeaseId, Op, Range, Txn};
use crate::engine::etcd::keys::{Keys, id_of};
use crate::engine::etcd::place::Place;

/// So many holders are broken in one transaction.
const AT_ONCE: usize = 60;

impl Commands {
    /// Takes a lock from all that one look shows to have it, and from nobody who is let in meanwhile.
    pub(in super::super) fn break_lock(
        &self,
        key: &Key,
        deadline: &Deadline,
    ) -> Result<Vec<Holder>> {
        let (name, keys) = (key.name(), self.keys_of(key));
        let mut broken = Vec::new();
        let mut left: Option<BTreeSet<u64>> = None;
        loop {
            let state = self.state(&keys, name, deadline)?;
            let holders: Vec<_> = state.line.holders().collect();
            let seen = left.get_or_insert_with(|| holders.iter().map(|one| one.created).collect());
            let part = holders.iter().filter(|one| seen.contains(&one.created));
            let part: Vec<_> = part.take(AT_ONCE).copied().collect();
            if part.is_empty() {
                return Ok(broken);
            }
            let txn = self.breaking(&keys, name, &part, deadline)?;
            let write = || self.client.transact(&txn, deadline);
            let (answer, was_sent) = self.until_answered(Some(name), deadline, write)?;
            let is_done =
                answer.succeeded || was_sent && self.were_broken(&keys, name, &part, deadline)?;
            if !is_done {
                continue;
            }
            let had = part.iter().filter(|place| !place.is_kept());
            broken.extend(had.map(|place| state.holder(place, None)));
            let owners = part.iter().filter_map(|place| place.owner());
            self.receivers.tell(owners, LostReason::Broken);
        }
    }

    /// Whether there is word to each of these owners that it was broken: an answer that said so was lost.
    fn were_broken(
        &self,
        keys: &Keys,
        name: &str,
        places: &[&Place],
        deadline: &Deadline,
    ) -> Result<bool> {
        let owners = places.iter().filter_map(|place| place.owner());
        let words: Vec<_> = owners.map(|owner| keys.broken(id_of(owner))).collect();
        if words.is_empty() {
            return Ok(false);
        }
        let look = || words.iter().cloned().map(get).collect();
        let answer = self.until_read(Some(name), deadline, || self.read(look(), deadline))?;
        Ok(got(answer).all(|entries| !entries.is_empty()))
    }

    /// Ends these places, and leaves to each owner word of it.
    fn breaking(
        &self,
        keys: &Keys,
        name: &str,
        places: &[&Place],
        deadline: &Deadline,
    ) -> Result<Txn> {
        let memory = self.leases.memory(deadline);
        let memory = memory.map_err(|e| self.error(Some(name), e))?;
        let mut txn = Txn::default();
        for place in places {
            txn.compares
                .push(Compare::ModifiedAt(place.key.clone(), place.modified));
            txn.then.push(Op::Delete(Range::Key(place.key.clone())));
            if let Some(owner) = place.owner() {
                self.leases.remembers();
                txn.then.push(word_of_break(keys, owner, memory));
            }
        }
        Ok(txn)
    }
}

fn word_of_break(keys: &Keys, owner: &Owner, memory: LeaseId) -> Op {
    Op::Put {
        key: keys.broken(id_of(owner)),
        value: host_millis().to_string().into_bytes(),
        lease: Some(memory),
    }
}
