//! How a locker is closed: its waits end, what its guards hold is released, and its calls are awaited.
//!
//! | what `close` meets | what becomes of it |
//! |---|---|
//! | a call that waits or asks | is cancelled, and leaves the engine's queue as a cancelled call does |
//! | a call that has been granted its lease | makes its guard, finds that the locker is closed, and releases it |
//! | a guard | `close` takes its lease, tells it so, and releases the lease |
//! | a guard that is being released or passed on | has taken its lease first: `close` waits for it |
//! | another `close` | waits for the first one |
//!
//! No guard slips through: a guard is in the registry before it looks whether the locker is closed, and `close` says
//! that it is closed before it looks into the registry. In the same way no call slips through that begins meanwhile.

use std::thread;

use super::{Call, Core};
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::error::{Error, LostReason, Result};
use crate::base::limits::{CANCELLED, CLOSE};
use crate::base::name::Key;
use crate::base::sys::sync::Mutex;
use crate::base::sys::{self, time};
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;
use crate::lease::monitor::LeaseMonitor;
use crate::queue::Turn;

impl Core {
    /// Begins a call that may take a lease, unless what ends it is set already.
    ///
    /// # Errors
    ///
    /// `Cancelled`.
    pub(crate) fn begin(&self, key: &Key, ended_by: &Cancel) -> Result<Call<'_>> {
        let call = self.closing.begin();
        if ended_by.is_set() || self.closing.closed().is_set() {
            return Err(Error::cancelled(key.name()));
        }
        Ok(call)
    }

    /// Ends all waits, and releases what is held, by then at the latest. Later calls are cancelled.
    pub(crate) fn close(&self) {
        let by = time::now() + CLOSE;
        self.closing.closed().set();
        let Some(_alone) = self.closing.close_alone(by) else {
            return;
        };
        self.release_all(&Deadline::at(by));
        self.closing
            .await_until(by, || !self.closing.has_calls() && !self.is_releasing());
        self.deferred.await_all(by);
    }

    /// Takes the lease of a guard that was made when the locker was closed already, and releases it.
    pub(crate) fn close_late(&self, monitor: &LeaseMonitor<Turn>) {
        if let Some((lease, turn)) = monitor.close() {
            self.release_closed(lease, monitor, &Deadline::after(CANCELLED));
            drop(turn);
        }
    }

    /// Whether a guard has a lease that it is about to release.
    fn is_releasing(&self) -> bool {
        let monitors = self.guards.monitors();
        monitors.iter().any(|monitor| monitor.is_being_released())
    }

    /// Several at once: each may take a round trip.
    fn release_all(&self, deadline: &Deadline) {
        const MOST_THREADS: usize = 16;
        let monitors = self.guards.monitors();
        // All guards know before the first is released.
        let ended: Vec<_> = monitors
            .iter()
            .filter_map(|monitor| {
                let (lease, turn) = monitor.close()?;
                Some((monitor, lease, turn))
            })
            .collect();
        let others = ended.len().min(MOST_THREADS).saturating_sub(1);
        let left = Mutex::new(ended.into_iter());
        let release = || {
            let next = || left.lock().next();
            while let Some((monitor, lease, turn)) = next() {
                self.release_closed(lease, monitor, deadline);
                drop(turn);
            }
        };
        thread::scope(|scope| {
            for _ in 0..others {
                if sys::spawn_scoped("crosslock-close", scope, release).is_err() {
                    // This one does what others can't.
                    break;
                }
            }
            release();
        });
    }

    fn release_closed(&self, lease: Lease, monitor: &LeaseMonitor<Turn>, deadline: &Deadline) {
        let is_gone = matches!(
            monitor.lost_reason(),
            Some(LostReason::NotOwner | LostReason::Broken)
        );
        // Of several names the others may still be there.
        if !is_gone || lease.claim.has_many() {
            let release = DeferredRelease::of(lease, self.options.ttl);
            self.deferred.make(release, deadline);
        }
    }
}
