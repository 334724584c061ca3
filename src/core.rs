//! What the clones of a locker, and its guards, share; and the ways in which all of them take locks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::acquire;
use crate::acquire::retry_budget::RetryBudget;
use crate::base::claim::{Claim, Mode};
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::fork::ForkLocal;
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::validity::valid_until;
use crate::engine::{Engine, unsupported};
use crate::guard::LockGuard;
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredReleases;
use crate::lease::monitor::Plan;
use crate::lease::renewer::{Renewer, Renewers};
use crate::queue::handoff::LocalQueues;

/// What the clones of a `Locker`, and its guards, share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) options: Options,
    pub(crate) renewers: ForkLocal<Renewers>,
    pub(crate) deferred: ForkLocal<DeferredReleases>,
    pub(crate) queues: ForkLocal<LocalQueues>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What almost all claims have.
    pub(crate) no_names: Arc<[Key]>,
}

impl Core {
    /// A name, and how it is to be held.
    ///
    /// # Errors
    ///
    /// `InvalidName`, and `Unsupported` when the engine can't do it.
    pub(crate) fn claim(&self, namespace: &Namespace, name: &str, mode: Mode) -> Result<Claim> {
        self.engine
            .capabilities()
            .check(mode, self.engine.place())?;
        Ok(Claim {
            key: Key::new(namespace, name)?,
            names: self.no_names.clone(),
            mode,
            prefer: self.options.prefer,
            valued: false,
        })
    }

    /// # Errors
    ///
    /// `Unsupported` when the engine can't give several names, all or none.
    pub(crate) fn check_several_names(&self) -> Result<()> {
        if self.engine.capabilities().several_names {
            Ok(())
        } else {
            Err(unsupported(self.engine.place(), "locks of several names"))
        }
    }

    /// Blocks.
    pub(crate) fn lock(self: &Arc<Self>, claim: &Claim) -> Result<LockGuard> {
        let attempts = self.options.attempts;
        let guard = self.acquire(claim, Deadline::NEVER, attempts)?;
        // Without a number of attempts there is no end but a guard or an error.
        let attempts = attempts.unwrap_or(u32::MAX);
        guard.ok_or_else(|| Error::Busy {
            name: claim.key.name().to_owned(),
            attempts,
        })
    }

    pub(crate) fn try_lock(self: &Arc<Self>, claim: &Claim) -> Result<Option<LockGuard>> {
        self.acquire(claim, Deadline::NEVER, Some(1))
    }

    pub(crate) fn try_lock_for(
        self: &Arc<Self>,
        claim: &Claim,
        timeout: Duration,
    ) -> Result<Option<LockGuard>> {
        #[cfg(crosslock_mutant = "timeout_ignored")]
        let timeout = timeout * 4;
        self.acquire(claim, Deadline::after(timeout), self.options.attempts)
    }

    pub(crate) fn try_lock_until(
        self: &Arc<Self>,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        // The one attempt after a deadline that has passed takes time as well.
        let deadline = Deadline::at(deadline.max(Instant::now()));
        self.acquire(claim, deadline, self.options.attempts)
    }

    fn acquire(
        self: &Arc<Self>,
        claim: &Claim,
        deadline: Deadline,
        attempts: Option<u32>,
    ) -> Result<Option<LockGuard>> {
        let budget = RetryBudget::new(deadline, attempts, &self.options);
        acquire(self, claim, budget)
    }

    /// A thread for the lease that is about to be taken, if it will need one.
    pub(crate) fn renewer(&self, key: &Key, process: u32) -> Result<Option<Renewer>> {
        if !self.leases_end() {
            return Ok(None);
        }
        match self.renewers.get(process).take() {
            Ok(renewer) => Ok(Some(renewer)),
            #[cfg(crosslock_mutant = "renewer_not_needed")]
            Err(_) => Ok(None),
            #[cfg(not(crosslock_mutant = "renewer_not_needed"))]
            Err(e) => Err(Error::engine(
                Some(key.name()),
                "the thread that would renew it",
                e,
            )),
        }
    }

    /// Makes a lease one that was granted now, by a command sent after `asked`.
    pub(crate) fn restart(&self, lease: &mut Lease, asked: BootInstant) {
        lease.valid_until = self.lease_end(valid_until(asked, self.options.ttl));
        lease.due = Plan::of(&self.options).due(asked);
        lease.granted = self.clock.now();
        lease.held_since = lease.granted;
        lease.hand_overs = 0;
    }

    /// When a lease ends that would end at `end` by its ttl.
    pub(crate) fn lease_end(&self, end: BootInstant) -> BootInstant {
        if self.leases_end() {
            end
        } else {
            BootInstant::MAX
        }
    }

    /// Whether a lease can end although its process lives.
    pub(crate) fn leases_end(&self) -> bool {
        self.engine.capabilities().leases_expire || self.options.leases_end()
    }
}
