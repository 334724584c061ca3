//! The guards of a locker that live: whom a break is told, and what `close` releases.
//!
//! A guard is added when it is made, and removed when it is dropped, after its release. So a lease that this process
//! still has is that of a guard in here, or of a call in progress. A break of the latter is kept in mind for its guard.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, fmt};

use crate::base::{LostReason, sys::sync::Mutex, sys::time};
use crate::engine::{Revocations, Telling};
use crate::{lease::monitor::LeaseMonitor, queue::Turn};

type Monitor = LeaseMonitor<Turn>;

/// The guards of a locker that live.
#[derive(Default)]
pub(crate) struct Guards(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    all: Vec<Option<Weak<Monitor>>>,
    /// Those that have no guard.
    free: Vec<usize>,
    /// The last owners of no guard that were told to have lost their leases: one may be about to get its guard.
    early: VecDeque<Early>,
}

/// An owner of no guard that was told to have lost its lease.
struct Early {
    owner: Box<str>,
    /// What its token is below.
    below: u64,
    reason: LostReason,
    at: Instant,
}

/// At most this many are remembered. Other guards learn of it at their next renewal.
const MOST_EARLY: usize = 32;

/// A lease that has no guard after this time doesn't get any. Until then each guard that is made is compared.
const EARLY: Duration = Duration::from_secs(10);

/// Where a guard is in the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(usize);

impl Guards {
    /// A lease that was broken before it had a guard is lost at once.
    pub(crate) fn add(&self, monitor: &Arc<Monitor>) -> Slot {
        let (slot, lost) = {
            let mut slots = self.0.lock();
            let slot = slots.add(Arc::downgrade(monitor));
            (slot, slots.take_early(monitor))
        };
        if let Some(reason) = lost {
            monitor.lose(reason);
        }
        slot
    }

    /// Each guard removes itself, once.
    pub(crate) fn remove(&self, slot: Slot) {
        let mut slots = self.0.lock();
        slots.all[slot.0] = None;
        slots.free.push(slot.0);
        if slots.free.len() == slots.all.len() {
            slots.clear();
        }
    }

    pub(crate) fn monitors(&self) -> Vec<Arc<Monitor>> {
        self.0.lock().monitors()
    }
}

impl Slots {
    fn add(&mut self, monitor: Weak<Monitor>) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.all[slot] = Some(monitor);
            return Slot(slot);
        }
        self.all.push(Some(monitor));
        Slot(self.all.len() - 1)
    }

    fn monitors(&self) -> Vec<Arc<Monitor>> {
        let all = self.all.iter().flatten();
        all.filter_map(Weak::upgrade).collect()
    }

    fn take_early(&mut self, monitor: &Monitor) -> Option<LostReason> {
        // Almost always: no look at the owner's text.
        if self.early.is_empty() {
            return None;
        }
        self.early.retain(|early| time::since(early.at) < EARLY);
        let mut early = self.early.iter();
        let at = early.position(|early| monitor.is_of(&early.owner, early.below))?;
        self.early.remove(at).map(|early| early.reason)
    }

    fn clear(&mut self) {
        const SMALL: usize = 64;
        self.all.clear();
        self.free.clear();
        if self.all.capacity() > SMALL {
            self.all.shrink_to(SMALL);
            self.free.shrink_to(SMALL);
        }
    }
}

impl Revocations for Guards {
    fn revoked(&self, owner: &str, below: u64, reason: LostReason) {
        if let Some(tell) = self.revoked_untold(owner, below, reason) {
            tell();
        }
    }

    fn revoked_untold(&self, owner: &str, below: u64, reason: LostReason) -> Option<Telling> {
        // Nothing is locked here when a guard is told: it gives up its turn.
        let (monitors, told) = {
            let mut slots = self.0.lock();
            let monitors = slots.monitors();
            let told = monitors.iter().position(|one| one.is_of(owner, below));
            if told.is_none() {
                slots.early.truncate(MOST_EARLY - 1);
                slots.early.push_front(Early {
                    owner: owner.into(),
                    below,
                    reason,
                    at: time::now(),
                });
            }
            (monitors, told)
        };
        let monitor = monitors[told?].clone();
        let loss = monitor.lose_untold(reason)?;
        Some(Box::new(move || monitor.tell_loss(&loss)))
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.0.lock();
        f.debug_struct("Guards")
            .field("number", &(slots.all.len() - slots.free.len()))
            .finish_non_exhaustive()
    }
}
