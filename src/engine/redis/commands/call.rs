//! What is sent about a claim.

use std::borrow::Cow;
use std::time::Duration;

use crate::base::claim::Claim;
use crate::engine::Request;
use crate::engine::redis::keys::{HOLDERS, Keys, QUEUE, VALUE};
use crate::engine::redis::script::{Command, Order, Script, ScriptCall};
use crate::engine::redis::servers::Route;

/// What a script that is run for an owner needs besides its arguments.
#[derive(Clone, Copy, Default)]
pub(super) struct Needs {
    /// The key of the value.
    pub(super) value: bool,
    /// No keys but those of the lease. A node that has a slot in part carries out only scripts all of whose keys it has.
    pub(super) lease_only: bool,
    /// That replicas have what it writes, where the options say so.
    pub(super) replicas: bool,
    /// How long ago the server may have been found out, at most.
    pub(super) known_within: Option<Duration>,
}

/// A script, the keys of a claim, and the arguments.
pub(super) struct Call<'a> {
    script: &'a Script,
    pub(super) claim: &'a Claim,
    keys: Vec<Keys>,
    needs: Needs,
    arguments: Vec<Cow<'a, [u8]>>,
    order: Order<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        script: &'a Script,
        request: Request<'a>,
        needs: Needs,
        arguments: impl IntoIterator<Item = Cow<'a, [u8]>>,
    ) -> Self {
        Call {
            script,
            claim: request.claim,
            keys: request.claim.keys().iter().map(Keys::of).collect(),
            needs,
            arguments: arguments.into_iter().collect(),
            order: Order::Any,
        }
    }

    /// The same in an order with other calls of its owner.
    pub(super) fn in_order(self, order: Order<'a>) -> Self {
        Call { order, ..self }
    }

    /// All keys of a claim are on one slot.
    pub(super) fn route(&self) -> Route<'_> {
        Route {
            key: self.keys.first().map_or("", |keys| &keys.lock),
            known_within: self.needs.known_within,
        }
    }

    /// In the place of a key that isn't needed stands the lock's.
    fn needed<'k>(&self, keys: &'k Keys) -> [&'k str; VALUE + 1] {
        let mut all = keys.all();
        if self.needs.lease_only {
            let end = if self.claim.is_exclusive() {
                VALUE
            } else {
                HOLDERS
            };
            all[QUEUE..end].fill(&keys.lock);
        }
        all
    }

    fn packed_by(&self, pack: impl FnOnce(&ScriptCall<'_>) -> Vec<u8>) -> Vec<u8> {
        let passed = if self.needs.value { VALUE + 1 } else { VALUE };
        let keys = self.keys.iter();
        let keys: Vec<_> = keys
            .flat_map(|keys| self.needed(keys).into_iter().take(passed))
            .collect();
        let arguments: Vec<_> = self.arguments.iter().map(|one| &**one).collect();
        pack(&self.script.call(&keys, &arguments))
    }
}

impl Command for Call<'_> {
    fn packed(&self) -> Vec<u8> {
        self.packed_by(|call| call.packed())
    }

    fn in_full(&self) -> Option<Vec<u8>> {
        Some(self.packed_by(|call| call.in_full().unwrap_or_default()))
    }

    fn is_for_replicas(&self) -> bool {
        self.needs.replicas
    }

    fn locks(&self) -> Vec<&str> {
        match self.order {
            Order::Asks(_) => self.keys.iter().map(|keys| &*keys.lock).collect(),
            Order::Any | Order::TakesBack(_) => Vec::new(),
        }
    }

    fn order(&self) -> Order<'_> {
        self.order
    }
}
