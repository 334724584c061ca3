//! Two that wait, one behind the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosslock::{Locker, Result};
use crosslock_world::{time, violation};
use fastrand::Rng;

use super::{HAS_FAILED, NAME, SHORT, hold, lock_both};
use crate::events::Event;
use crate::judge::{self, Kind};
use crate::places::Site;
use crate::plan::Topology;
use crate::trouble::{LOSE_QUEUES, later, own_fault};

static FIRST_HAD_IT: AtomicBool = AtomicBool::new(false);

/// By then a call is in the queue.
pub(super) const IN_QUEUE: Duration = Duration::from_millis(100);

pub fn wait_first(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE / 2);
    let guard = locker.lock(NAME)?;
    FIRST_HAD_IT.store(true, Ordering::Relaxed);
    hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()
}

/// The first keeps its place though their server stood still, unless a call failed, or another server took its place.
pub fn wait_second(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE * 2);
    let guard = locker.lock(NAME)?;
    let is_passed = !FIRST_HAD_IT.load(Ordering::Relaxed) && !HAS_FAILED.load(Ordering::Relaxed);
    let is_replaced = matches!(
        judge::plan().topology,
        Topology::Sentinel | Topology::Cluster | Topology::Quorum
    );
    if is_passed && !is_replaced && Event::has_frozen_behind(IN_QUEUE * 2) {
        violation("who came first lost its place while the server stood still".to_owned());
    }
    hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()
}

/// While the first call for several locks waits for one of them.
pub fn lose_queues(site: &Site) {
    let site = site.clone();
    later(IN_QUEUE * 2, move || {
        let mut random = Rng::with_seed(0);
        let is_it = |name: &str| name == LOSE_QUEUES;
        own_fault(&site, site.hosts[0], is_it, SHORT, &mut random);
    });
}

pub fn hold_other(locker: &Locker) -> Result<()> {
    let guard = locker.lock("other")?;
    hold(&["other"], Kind::Exclusive, guard, IN_QUEUE * 3).unlock()
}

/// It has the one, and waits for the other.
pub fn lock_both_before(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE);
    lock_both(locker)
}

/// It finds the other free, since nobody is in its queue any more.
pub fn lock_both_behind(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE * 4);
    lock_both(locker)
}
