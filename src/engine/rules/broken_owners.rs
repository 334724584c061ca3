//! Whose locks were broken.

use std::collections::HashMap;

use crate::base::clock::BootInstant;
use crate::base::owner::Owner;

/// The owners whose lock was broken, each for as long as its lease would have lasted. Until then it is told so, and gets
/// nothing: a late copy of its question must not take the lock again.
#[derive(Debug, Default)]
pub(super) struct BrokenOwners(HashMap<Owner, BootInstant>);

impl BrokenOwners {
    pub(super) fn add(&mut self, owner: &Owner, until: BootInstant, now: BootInstant) {
        self.0.retain(|_, until| now < *until);
        self.0.insert(owner.clone(), until);
    }

    pub(super) fn has(&self, owner: &Owner, now: BootInstant) -> bool {
        // Almost always: no look at the owner's text.
        !self.0.is_empty() && self.0.get(owner).is_some_and(|until| now < *until)
    }
}
