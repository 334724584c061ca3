//! Names that were found taken lately, and not found free since: an engine that asks for a free lock in another way
//! than for a taken one asks for these in the latter.

use crate::base::sys::{collections::HashSet, sync::Mutex};
use crate::base::{Claim, Key};

#[derive(Debug, Default)]
pub(super) struct Contended(Mutex<HashSet<Key>>);

impl Contended {
    /// A name that isn't here any more costs a request.
    const MOST: usize = 1024;

    /// Whether one of the names is.
    pub(super) fn has(&self, claim: &Claim) -> bool {
        let all = self.0.lock();
        !all.is_empty() && claim.keys().iter().any(|key| all.contains(key))
    }

    pub(super) fn insert(&self, claim: &Claim) {
        let mut all = self.0.lock();
        if all.len() >= Contended::MOST {
            all.clear();
        }
        all.extend(claim.keys().iter().cloned());
    }

    pub(super) fn remove(&self, claim: &Claim) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            claim.keys().iter().for_each(|key| _ = all.remove(key));
        }
    }
}
