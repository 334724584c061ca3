//! How operators take a lock from whoever has it.

use std::collections::BTreeSet;

use super::ops::host_millis;
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
            if !self
                .until_answered(Some(name), deadline, write)?
                .0
                .succeeded
            {
                continue;
            }
            let had = part.iter().filter(|place| !place.is_kept());
            broken.extend(had.map(|place| state.holder(place, None)));
            let owners = part.iter().filter_map(|place| place.owner());
            self.receivers.tell(owners, LostReason::Broken);
        }
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
