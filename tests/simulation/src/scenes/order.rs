//! Two that wait for a lock, one behind the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosslock::{Locker, Result};
use crosslock_world::{time, violation};

use super::{HAS_FAILED, NAME, SHORT, hold};
use crate::events::Event;
use crate::judge::{self, Kind};
use crate::plan::Topology;

static FIRST_HAD_IT: AtomicBool = AtomicBool::new(false);

/// By then a call is in the queue.
const IN_QUEUE: Duration = Duration::from_millis(100);

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
