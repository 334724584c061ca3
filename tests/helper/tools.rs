//! What shows that the tests' own tools work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use support::{Child, RedisServer, Stopwatch, hear, say};

use super::*;

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

pub(crate) fn have_a_child() {
    let mut child = Child::spawn("sleeps", &[]);
    child.wait_for("asleep", PATIENCE);
    say(&format!("grandchild {}", child.pid()));
    hear();
}

pub(crate) fn sleep() {
    say("asleep");
    loop {
        thread::park();
    }
}

pub(crate) fn have_a_server() {
    let server = RedisServer::start();
    say(&format!("server {}", server.pid()));
    hear();
}

/// Says how late this process is between two words of its parent, and whether a bound of nothing would be broken.
pub(crate) fn measure() {
    let (watch, other) = (Stopwatch::start(), Stopwatch::start());
    say("measures");
    hear();
    other.assert_late(millis(500), millis(1_000), "nobody has stopped us");
    let elapsed = watch.elapsed();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        watch.assert_within(Duration::ZERO);
    }));
    let verdict = if outcome.is_ok() { "excused" } else { "broken" };
    say(&format!("{verdict} {}", elapsed.as_millis()));
}
