//! What there is in the server's stead: the scripts, the subscriber, and what was seen last.

use std::thread;
use std::time::Duration;

use crate::bench::{Acquired, Ask, Bench};
use crate::seen::{Ears, Seen};
use crate::steps::{CONNECTED, INBOXES, Kind, OWNERS, Owner, Waits};

pub(crate) const NAMES: [&str; OWNERS] = ["a/1", "b/2", "c/3", "d/4", "e/5", "f/6"];
/// Of a lease that is over at once, in milliseconds, as all times here. Less, and a server that is interrupted finds
/// it to be over already when it is told.
pub(crate) const SHORT: i64 = 8;
/// What ends within this ends in the same step.
const SOON: i64 = 1_000;

pub(crate) struct World<'a> {
    pub(crate) bench: Bench,
    pub(crate) ears: Ears<'a>,
    pub(crate) before: u64,
}

/// What there was to see after a step.
pub(crate) struct After {
    pub(crate) seen: Seen,
    pub(crate) heard: Vec<(String, String)>,
    /// The server's clock before the step.
    pub(crate) before: u64,
}

pub(crate) fn ttl(owner: Owner) -> i64 {
    const TTLS: [i64; OWNERS] = [4, 6, 8, 10, 12, 14];
    TTLS[owner] * 1_000_000
}

/// When the next heartbeat is overdue: sooner than the ttl, or later.
pub(crate) fn promise(owner: Owner) -> i64 {
    if owner % 3 == 2 {
        ttl(owner) * 2
    } else {
        ttl(owner) / 2
    }
}

/// Whether it asks for the value, and writes it.
pub(crate) fn is_valued(owner: Owner) -> bool {
    owner.is_multiple_of(2)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    number.try_into().expect("it isn't negative")
}

impl World<'_> {
    /// What there is when nothing is about to end.
    pub(crate) fn after(&mut self) -> After {
        let mut seen = self.bench.seen();
        while ends_soon(&seen) {
            thread::sleep(Duration::from_millis(1));
            seen = self.bench.seen();
        }
        let before = std::mem::replace(&mut self.before, seen.micros);
        let heard = self.ears.heard(&mut self.bench);
        After {
            seen,
            heard,
            before,
        }
    }

    pub(crate) fn start_anew(&mut self) {
        for key in self.bench.keys() {
            self.bench.delete(&key);
        }
        for inbox in &INBOXES[..CONNECTED] {
            self.ears.open(inbox);
        }
        self.after();
    }

    pub(crate) fn ask(&mut self, owner: Owner, kind: Kind, ttl: i64, waits: Waits) -> Acquired {
        let (mode, name) = (kind.text(), NAMES[owner]);
        let ask = match waits {
            Waits::No => Ask::once(name),
            Waits::Yes(inbox) => Ask::waiting(name, unsigned(promise(owner)), INBOXES[inbox]),
            Waits::AndDies(inbox) => Ask::waiting(name, 0, INBOXES[inbox]),
        };
        let ask = ask.with_ttl(unsigned(ttl)).with_mode(&mode);
        self.bench.ask(if is_valued(owner) {
            ask.with_value()
        } else {
            ask
        })
    }
}

fn ends_soon(seen: &Seen) -> bool {
    let now = seen.micros / 1_000;
    let soon = now + 1..=now + unsigned(SOON);
    seen.pttls.iter().any(|pttl| (0..=SOON).contains(pttl))
        || seen.shares.values().any(|end| soon.contains(end))
}
