//! The guards of a locker that live: whom a break is told, and what `close` releases.
//!
//! A guard is added when it is made, and removed when it is dropped, after its release. So a lease that this process still
//! has is that of a guard in here, or of a call in progress.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::base::error::LostReason;
use crate::engine::Revocations;
use crate::lease::monitor::LeaseMonitor;
use crate::queue::handoff::Turn;

type Monitor = LeaseMonitor<Turn>;

/// The guards of a locker that live.
#[derive(Default)]
pub(crate) struct Guards(Mutex<Places>);

#[derive(Default)]
struct Places {
    all: Vec<Option<Weak<Monitor>>>,
    /// Those that have no guard.
    free: Vec<usize>,
}

/// Where a guard is in there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl Guards {
    pub(crate) fn add(&self, monitor: &Arc<Monitor>) -> Place {
        let monitor = Some(Arc::downgrade(monitor));
        let mut places = self.0.lock();
        if let Some(place) = places.free.pop() {
            places.all[place] = monitor;
            return Place(place);
        }
        places.all.push(monitor);
        Place(places.all.len() - 1)
    }

    /// Each guard removes itself, once.
    pub(crate) fn remove(&self, place: Place) {
        let mut places = self.0.lock();
        places.all[place.0] = None;
        places.free.push(place.0);
        if places.free.len() == places.all.len() {
            places.clear();
        }
    }

    pub(crate) fn monitors(&self) -> Vec<Arc<Monitor>> {
        let places = self.0.lock();
        places
            .all
            .iter()
            .flatten()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl Places {
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
    fn revoked(&self, owner: &str, reason: LostReason) {
        // Nothing is locked here when a guard is told: it gives up its turn.
        let monitors = self.monitors();
        let told = monitors.iter().find(|monitor| monitor.is_of(owner));
        if let Some(monitor) = told {
            monitor.lose(reason);
        }
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.0.lock();
        f.debug_struct("Guards")
            .field("number", &(places.all.len() - places.free.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(guards: &Guards) -> (usize, usize) {
        let places = guards.0.lock();
        (places.all.len(), places.free.len())
    }

    #[test]
    fn places_are_used_again_and_given_up() {
        let guards = Guards::default();
        let nobody = Weak::<Monitor>::new();
        let add = || {
            let mut places = guards.0.lock();
            let place = places.free.pop();
            let place = place.unwrap_or_else(|| {
                places.all.push(None);
                places.all.len() - 1
            });
            places.all[place] = Some(nobody.clone());
            Place(place)
        };
        let all: Vec<_> = (0..1_000).map(|_| add()).collect();
        guards.remove(all[3]);
        assert_eq!(number(&guards), (1_000, 1));
        assert_eq!(add().0, 3);
        assert!(guards.monitors().is_empty());
        all.into_iter().for_each(|place| guards.remove(place));
        assert_eq!(number(&guards), (0, 0));
        assert!(guards.0.lock().all.capacity() <= 64);
    }
}
