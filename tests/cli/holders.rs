//! Programs that hold locks, and wait for them, until a test is over.

use std::sync::atomic::{AtomicU32, Ordering};

use support::wait_until;

use crate::PATIENCE;
use crate::tool::{Place, Running};

/// Takes the lock, and keeps it until there is a file of that name.
pub(crate) fn holder(place: &Place, options: &str, end: &str) -> Running {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let began = format!("began-{}", STARTED.fetch_add(1, Ordering::Relaxed));
    let script = format!("echo > {began}; while ! test -e {end}; do sleep 0.02; done");
    let running = place.run(options, &script).start();
    place.wait_for(&began);
    running
}

/// Ends what waits for a file of that name.
pub(crate) fn end(place: &Place, end: &str) {
    std::fs::write(place.path(end), "").expect("write a file");
}

/// Waits until so many wait for a lock.
#[track_caller]
pub(crate) fn wait_for_waiters(place: &Place, name: &str, count: usize) {
    wait_until("the waiters", PATIENCE, || {
        let seen: serde_json::Value = json(&place.tool(&format!("--json show {name}")).done().out);
        seen["waiters"]
            .as_array()
            .is_some_and(|waiters| waiters.len() == count)
    });
}

/// The one line of JSON that was printed.
#[track_caller]
pub(crate) fn json(printed: &str) -> serde_json::Value {
    serde_json::from_str(printed).unwrap_or_else(|e| panic!("{e}: {printed}"))
}

pub(crate) fn pid(running: &Running) -> u32 {
    running.pid().as_raw_nonzero().get().cast_unsigned()
}
