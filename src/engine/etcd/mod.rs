//! Locks in etcd.
//!
//! Each owner that has a name, or waits for it, has a key in the line of that name: see `keys`. The order in which
//! these keys were created says who holds the name. [`EtcdStore`] is a store of such lines: here is which
//! transaction each step takes, and `enter`, `commit` and `operators` have the transactions. The keys of an owner end
//! with its lease, of which `leases` has a pool, and knows which owner has which.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: the time of a
//! lease counts from before a request by which servers have shown that they lead; a request without an answer leaves
//! a lease that no other owner is given; and an owner's entry is changed only by a transaction that finds it as this
//! owner has written it, but for an operator's.

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::client::{Client, Failure};
use self::leases::{Own, whole_seconds};
use self::store::{EtcdStore, delete, reading};
use self::{far::may_stretch, keys::Keys, look::EtcdWatch};
use super::line::{Blocker, HAND_OVERS, LineEngine, LineStore, Snapshot, Step, Watched, When, Why};
use super::{Capabilities, Engine, Failed, Request, Revocations};
use crate::base::{Clock, Deadline, Error, Options, Result};

mod address;
mod client;
mod commit;
mod enter;
mod far;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod keys;
mod leases;
mod look;
mod operators;
mod store;
mod watch;

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
        log::debug!("{} doesn't report its version", client.endpoint());
    } else if let Some(what) = operators::breaks_exclusion(&version) {
        log::warn!("{} runs etcd {version}: {what}", client.endpoint());
    }
}

/// For these servers.
fn invalid_ttl(ttl: Duration, least: Duration) -> Error {
    Error::InvalidOption {
        option: "ttl",
        reason: format!("{ttl:?} is out of range: use whole seconds from {least:?} to 24 h"),
    }
}

/// etcd takes 128 operations in a transaction, and each name needs three.
const MOST_NAMES: usize = 40;

impl LineStore for EtcdStore {
    type Watch = EtcdWatch;

    fn endpoint(&self) -> &str {
        self.client.endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            most_names: MOST_NAMES,
            preference: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        deadline.within(self.client.patience())
    }

    fn enter(&self, request: Request<'_>, when: When, deadline: &Deadline) -> Result<Step, Failed> {
        match self.enter_line(request, when, deadline) {
            // Its lease is gone, or that of what is to be told of it.
            Err(failed) if matches!(failed.error, Failure::LeaseGone) => {
                self.leases.lose_memory();
                self.drop_lease(request.owner, deadline);
                Ok(Step::Lost)
            }
            step => step.map_err(|e| self.failed(request.key().name(), e)),
        }
    }

    fn look(&self, request: Request<'_>, why: Why, deadline: &Deadline) -> Result<Step, Failed> {
        let (mut own, now) = (self.known(request.owner), self.clock.now());
        if let Some(sleeper) = own.sleeper.take_if(|one| one.until <= now) {
            self.pass_over(request, &sleeper, deadline);
        }
        let is_due = own.keepalive <= now && why != Why::Unclear;
        let step = match why {
            Why::Quiet if is_due && may_stretch(request, &own) => {
                self.stretch(request, &own, deadline)
            }
            // Its entry may be under another lease by now, which has to be kept alive then.
            Why::Quiet if is_due && own.moving.is_some() => self.keepalive(request, &own, deadline),
            Why::Quiet if is_due => self.touch(request, &own, deadline),
            // A touch that was proved by nothing since then may be at a member that is gone.
            _ if is_due => self.keepalive(request, &own, deadline),
            // Going in is a commit also where somebody is still ahead.
            Why::Quiet | Why::News if request.claim.is_exclusive() => {
                return self.admit_alone(request, deadline);
            }
            Why::Unclear => self.see(
                request,
                &Own {
                    created: None,
                    ..own
                },
                deadline,
            ),
            _ => self.see(request, &own, deadline),
        };
        step.map_err(|e| self.failed(request.key().name(), e))
    }

    fn admit(
        &self,
        request: Request<'_>,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Step, Failed> {
        if request.claim.is_exclusive() {
            return self.admit_alone(request, deadline);
        }
        let grant = (seen.is_abandoned, seen.value.clone());
        let step = self.granted(request, grant, deadline);
        step.map_err(|e| self.failed(request.key().name(), e))
    }

    fn rest(&self, request: Request<'_>) -> Duration {
        let own = self.known(request.owner);
        let looks = own.sleeper.map_or(own.keepalive, |one| one.until);
        looks.min(own.keepalive).since(self.clock.now())
    }

    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<EtcdWatch>> {
        EtcdWatch::begin(self, request, (blocker, seen), deadline)
    }

    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Failed> {
        let own = self.known(request.owner);
        // It has done nothing that the next would have to be told.
        let of_name = |keys: &Keys| [keys.place(&own.id), keys.marker_of(&own.id)].map(delete);
        let ops = self.keys(request.claim).iter().flat_map(of_name).collect();
        let written = self.write(request.owner, &reading(ops), deadline);
        written.map_err(|e| self.failed(request.key().name(), e))?;
        if own.has_marker {
            self.leases.forgets();
            self.owners
                .change(request.owner, |own| own.has_marker = false);
        }
        Ok(())
    }

    fn has_inflight(&self, request: Request<'_>) -> bool {
        let own = self.owners.get(request.owner);
        own.is_some_and(|own| own.has_inflight)
    }

    fn retire(&self, request: Request<'_>, deadline: &Deadline) {
        let Some(own) = self.owners.remove(request.owner) else {
            return;
        };
        if !own.has_inflight {
            if !own.leaves_keys() {
                self.leases.give_back(own.lease);
            }
            return;
        }
        // A question of its own that comes late is refused from now on, but one that came just now may have left word
        // that it was let in.
        self.revoke_all(&own, deadline);
        if own.is_released && own.has_marker {
            let keys = self.keys(request.claim).into_iter();
            let left = keys.map(|keys| delete(keys.marker_of(&own.id))).collect();
            // It was released, whatever comes of this.
            let _ = self.client.transact(&reading(left), deadline);
        }
    }

    fn discard(&self, request: Request<'_>, deadline: &Deadline) {
        self.drop_lease(request.owner, deadline);
    }

    fn settle(&self, request: Request<'_>, deadline: &Deadline) {
        if let Some(own) = self.owners.get(request.owner) {
            self.leases.revoke(own.lease.id, deadline);
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.receivers.add(to);
    }

    fn after_fork(&self) -> Arc<Self> {
        let client = Arc::new(self.client.after_fork());
        Arc::new(EtcdStore::new(client, self.clock.clone()))
    }
}

impl EtcdStore {
    fn enter_line(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Failed<Failure>> {
        // One that has nothing takes another lease if its own isn't new any more.
        if let Some(own) = self.owners.get(request.owner)
            && (own.lease.id.is_long() || !self.leases.is_fresh(&own.lease, request.ttl))
        {
            self.drop_lease(request.owner, deadline);
        }
        let own = self.own_of(request, deadline).map_err(Failed::unsent)?;
        if request.claim.is_exclusive() {
            self.enter_alone(request, &own, when == When::Always, deadline)
        } else {
            self.enter_among(request, &own, when, deadline)
        }
    }

    /// Acquires alone. If the lease of the holder markers is gone, the marker gets another lease.
    fn admit_alone(&self, request: Request<'_>, deadline: &Deadline) -> Result<Step, Failed> {
        loop {
            let own = self.known(request.owner);
            match self.acquire(request, &own, deadline) {
                Err(e) if matches!(e.error, Failure::LeaseGone) && !deadline.is_over() => {
                    self.leases.lose_memory();
                }
                step => return step.map_err(|e| self.failed(request.key().name(), e)),
            }
        }
    }
}
