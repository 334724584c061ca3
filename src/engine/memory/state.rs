//! What a memory holds: names, values, and the threads that wait.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::sys::sync::Condvar;
use crate::base::value::Stored;
use crate::engine::Request;
use crate::engine::rules::Table;

/// What a memory holds.
#[derive(Debug, Default)]
pub(super) struct State {
    names: Table,
    pub(super) values: HashMap<Key, Arc<[u8]>>,
    /// What notifies the owners whose threads wait.
    sleepers: HashMap<Owner, Arc<Condvar>>,
}

impl State {
    pub(super) fn names(&self) -> &Table {
        &self.names
    }

    /// Makes a change, and notifies the owners that were granted a name by it.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut Table) -> T) -> T {
        let done = change(&mut self.names);
        for owner in self.names.take_granted() {
            if let Some(sleeper) = self.sleepers.get(&owner) {
                sleeper.notify_one();
            }
        }
        done
    }

    /// The value, if it comes with the lock.
    pub(super) fn valued(&self, request: Request<'_>) -> Option<Stored> {
        let is_wanted = request.claim.valued;
        is_wanted.then(|| self.value(request.key()))
    }

    pub(super) fn value(&self, key: &Key) -> Stored {
        self.values.get(key).cloned()
    }

    pub(super) fn set_value(&mut self, key: &Key, value: &[u8]) {
        self.values.insert(key.clone(), value.into());
    }

    pub(super) fn add_sleeper(&mut self, owner: &Owner, condvar: &Arc<Condvar>) {
        self.sleepers.insert(owner.clone(), condvar.clone());
    }

    pub(super) fn remove_sleeper(&mut self, owner: &Owner) {
        self.sleepers.remove(owner);
    }
}
