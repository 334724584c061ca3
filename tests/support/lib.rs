//! What the integration tests share: real servers, real faults, real processes.
//!
//! Nothing here knows the crate under test, so that a helper can't hide its errors.

#![warn(unreachable_pub)]

mod admin;
mod black_hole;
mod builder;
mod certificates;
mod consensus;
mod daemon;
mod etcd;
mod forks;
mod frames;
mod lanes;
mod late_request;
mod lateness;
mod nursery;
mod process;
mod proxy;
pub mod puppet;
mod relay;
mod resources;
mod resp;
pub mod scripts;
mod server;
mod sets;
mod signals;
mod stopwatch;
mod threads;
mod zookeeper;

pub use black_hole::{BlackHole, ClosedPort};
pub use builder::Builder;
pub use consensus::{Kind, Server, ServerSet};
pub use daemon::Daemon;
pub use etcd::{Etcd, EtcdCluster, EtcdKind, EtcdSetup, gateway};
pub use forks::forked;
pub use frames::Protocol;
pub use process::{Child, hear, helper_in_a_child_of, role, say};
pub use proxy::{Fault, Proxy};
pub use resources::{open_files_under, resident_bytes, sockets, threads_named};
pub use server::RedisServer;
pub use sets::{
    Cluster, Member, Migration, Quorum, Replicated, SentinelSet, Setup, slot_of, valkey,
};
pub use stopwatch::{Stopwatch, within};
pub use threads::{Thread, children};
pub use zookeeper::{Ensemble, RawSession, ZooKeeper, ZooKeeperKind, ZooKeeperSetup};

use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

const POLL: Duration = Duration::from_millis(2);

pub fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).expect("it began at zero")
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_until(what: &str, timeout: Duration, condition: impl FnMut() -> bool) {
    assert!(
        eventually(timeout, condition),
        "waited {timeout:?} in vain: {what}"
    );
}

/// Returns whether `condition` comes to hold within `timeout`; it is tried at least once.
pub fn eventually(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        // Read before the condition, so that a slow machine gets a last try after the deadline.
        let last = Instant::now() >= deadline;
        if condition() {
            return true;
        }
        if last {
            return false;
        }
        thread::sleep(POLL);
    }
}

// Its programs are doc tests. They derive what values of their own types need, as users do. Where crosslock's own
// dev-dependencies had that, the first command of the README would compile it.
#[cfg(all(doctest, feature = "testing", feature = "value"))]
#[doc = include_str!("../../docs/recipes.md")]
mod recipes {}

/// Asserts that a value is like a pattern, and shows it otherwise, behind what else is to be told.
#[macro_export]
macro_rules! assert_like {
    ($value:expr, $pattern:pat) => {
        $crate::assert_like!($value, $pattern, "it isn't")
    };
    ($value:expr, $pattern:pat, $($what:tt)+) => {
        match &$value {
            $pattern => {}
            other => panic!("{}: {other:?}", format_args!($($what)+)),
        }
    };
}

/// All that an error shows, down to its first cause.
pub fn shown(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(|cause| format!("{cause} {cause:?} ")).collect()
}
