//! The clocks of the machine on which a thread runs, sleep, and chance.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::events::{Nanos, nanos};
use crate::scheduler::{Inside, block, me, with};

/// What all instants are counted from: an `Instant` can't be made of a number.
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

/// The monotonic clock, which stands while the machine sleeps.
#[must_use]
pub fn now() -> Instant {
    base() + monotonic()
}

fn monotonic() -> Duration {
    with(|inside| {
        // A loop until the time has come comes to an end.
        inside.now += 50;
        let machine = inside.machine_of(me());
        Duration::from_nanos(inside.machines.monotonic(machine, inside.now))
    })
}

/// The time since boot, which runs on while the machine sleeps.
#[must_use]
pub fn boot() -> Duration {
    with(|inside| {
        inside.now += 50;
        let machine = inside.machine_of(me());
        Duration::from_nanos(inside.machines.boot(machine, inside.now))
    })
}

/// The time since 1970.
#[must_use]
pub fn wall() -> Duration {
    with(|inside| {
        let machine = inside.machine_of(me());
        Duration::from_nanos(inside.machines.wall(machine, inside.now))
    })
}

/// The world's time in so long by the clock of this thread's machine.
pub(crate) fn due_in(inside: &Inside, duration: Duration) -> Nanos {
    let machine = inside.machine_of(me());
    inside
        .now
        .saturating_add(inside.machines.true_of(machine, nanos(duration)))
}

/// Sleeps for so long by the monotonic clock.
pub fn sleep(duration: Duration) {
    let until = monotonic().saturating_add(duration);
    loop {
        let left = until.saturating_sub(monotonic());
        if left.is_zero() {
            return;
        }
        let due = with(|inside| due_in(inside, left));
        block(None, Some(due));
    }
}

/// Lets other threads run first.
pub fn yield_now() {
    crate::scheduler::yield_now();
}

/// A fraction of 0 to 1, 1 excluded.
#[must_use]
pub fn random_fraction() -> f64 {
    with(|inside| inside.drawn.f64())
}

/// A number below `end`, which isn't 0.
#[must_use]
pub fn random_below(end: usize) -> usize {
    with(|inside| inside.drawn.usize(..end))
}

#[must_use]
pub fn random_bytes() -> [u8; 16] {
    with(|inside| inside.drawn.u128(..).to_le_bytes())
}
