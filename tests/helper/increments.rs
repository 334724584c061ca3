//! A number in a file, which loses an increment where two hold the lock.

use super::*;
use support::{hear, say};

pub(crate) fn count() {
    let lock = locker();
    say("ready");
    hear();
    for _ in 0..arg(COUNT).parse().unwrap() {
        let _guard = lock.lock("counter").unwrap();
        increment(arg(FILE));
    }
}
