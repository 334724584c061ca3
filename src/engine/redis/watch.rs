//! How one thread waits until a value changes: it hears in the inbox on a channel that is called as the value's key.

use super::inbox::Subscription;
use super::waiter::WaitDeps;
use crate::base::{Deadline, Key, Owner, Process, Result, Waits};
use crate::engine::{Watch, net::RECONNECT};

pub(super) struct RedisWatch {
    deps: WaitDeps,
    key: Key,
    /// By which the inbox tells it from others.
    owner: Owner,
    /// `None` as long as it hears of nothing.
    subscription: Option<Subscription>,
    /// The pauses between looks while it hears of nothing.
    pauses: Waits,
}

impl RedisWatch {
    pub(super) fn new(deps: WaitDeps, key: &Key) -> Self {
        RedisWatch {
            deps,
            key: key.clone(),
            owner: Owner::of(Process::current(), None),
            subscription: None,
            pauses: RECONNECT.waits(),
        }
    }

    fn subscribe(&mut self, until: &Deadline) {
        let server = self.deps.scripts.server_of(&self.key);
        let subscription = server.and_then(|server| {
            let who = (&self.owner, &self.deps.bell);
            self.deps.inbox.watch(&server, &self.key, who, until)
        });
        self.subscription = subscription.filter(|one| !one.is_over());
        if self.subscription.is_none() {
            let pause = self.pauses.next().unwrap_or(RECONNECT.cap);
            until.sleep(pause);
        }
    }
}

impl Watch for RedisWatch {
    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        // That one ends before the next begins.
        drop(self.subscription.take_if(|one| one.is_over()));
        let Some(subscription) = &self.subscription else {
            self.subscribe(until);
            return Ok(false);
        };
        Ok(subscription.wait(until.remaining(), until).is_some())
    }
}
