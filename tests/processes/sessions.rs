//! Holders that crash, stall or fork, where servers end what a process holds: etcd its leases, ZooKeeper its session.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use support::{Child, Stopwatch};

use super::exclusion::processes_lose_no_increment;
use super::forks::{succeeds_in_turns, succeeds_with};
use super::holders::{asked, exit, holder, kill};
use super::*;

/// Both can do it: whole seconds, and some ticks.
const LEASE: Duration = Duration::from_secs(2);
/// Lasts however busy the machine is.
const LASTING: Duration = Duration::from_secs(20);
/// How soon after the end of a holder's lease or session the next one has the lock.
const BOUND: Duration = Duration::from_millis(300);

/// A server, and what it has of a lock's holder.
trait Served {
    fn place(&self) -> String;

    /// What says that there is a holder, or that somebody waits.
    fn line(&self) -> Vec<String>;
}

/// Ends the holder by `end`; the next one gets in at once when the server has ended its lease or session.
fn next_gets_in_when_the_server_ends_it(served: &impl Served, end: impl FnOnce(&mut Child)) {
    let lock = Locker::open(&served.place()).unwrap();
    let (mut child, token) = holder(&served.place(), LEASE);
    let line = served.line();
    let [entry] = &line[..] else {
        panic!("{line:?}")
    };
    let (tell, told) = mpsc::channel();
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = lock.lock("a").unwrap();
            tell.send((Instant::now(), guard)).unwrap();
        });
        end(&mut child);
        let mut last_seen = Instant::now();
        let (served_at, guard) = loop {
            let before = Instant::now();
            if !served.line().contains(entry) {
                break told.recv_timeout(PATIENCE).expect("its turn comes");
            }
            last_seen = before;
        };
        watch.assert_took(served_at.saturating_duration_since(last_seen), BOUND);
        assert!(guard.was_abandoned());
        assert!(guard.fencing_token() > token);
        guard.unlock().unwrap();
    });
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

fn stopped_holder_knows_that_it_lost(served: &impl Served) {
    let lock = Locker::open(&served.place()).unwrap();
    let (mut child, token) = holder(&served.place(), LEASE);
    child.stop();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("its lease or session has ended");
    assert!(guard.was_abandoned());
    assert!(guard.fencing_token() > token);

    child.cont();
    assert_eq!(
        asked(&mut child, "state"),
        "held=false told=true verified=false"
    );
    assert_eq!(asked(&mut child, "unlock"), "lost");
    guard.verify().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
}

macro_rules! each_test {
    ($start:expr) => {
        #[test]
        fn killed_holder_leaves_its_lock_to_the_next_when_the_server_ends_it() {
            next_gets_in_when_the_server_ends_it(&$start, kill);
        }

        #[test]
        fn process_that_exits_with_a_guard_leaves_its_lock_until_the_server_ends_it() {
            next_gets_in_when_the_server_ends_it(&$start, exit);
        }

        #[test]
        fn holder_that_was_stopped_past_its_ttl_knows_that_it_lost() {
            stopped_holder_knows_that_it_lost(&$start);
        }

        #[test]
        fn processes_lose_no_increment_here() {
            processes_lose_no_increment(&$start.place(), 100);
        }

        #[test]
        fn inherited_guard_is_neither_held_nor_renewed_nor_released() {
            succeeds_with("forks::child_forks_with_guards", &$start.place(), LEASE);
        }

        #[test]
        fn parent_and_forked_child_lock_through_one_locker() {
            succeeds_with("forks::child_forks_and_both_lock", &$start.place(), LASTING);
        }

        #[test]
        fn child_forked_while_other_threads_lock_can_lock() {
            let entry = "forks::child_forks_while_its_threads_lock";
            succeeds_in_turns(entry, &$start.place(), LASTING, 40);
        }

        #[test]
        fn forked_child_that_drops_its_locker_releases_nothing() {
            succeeds_with("forks::child_forks_and_drops_all", &$start.place(), LASTING);
        }

        #[test]
        fn tokens_and_lockers_of_a_forked_child_are_its_own() {
            let entry = "forks_stopping::child_forks_and_stops";
            succeeds_with(entry, &$start.place(), LASTING);
        }
    };
}

#[cfg(feature = "etcd")]
mod on_etcd {
    use super::*;
    use support::Etcd;

    impl Served for Etcd {
        fn place(&self) -> String {
            self.url()
        }

        fn line(&self) -> Vec<String> {
            let mut keys = self.keys("");
            keys.retain(|key| key.contains("/w/"));
            keys
        }
    }

    each_test!(Etcd::start());
}

#[cfg(feature = "zookeeper")]
mod on_zookeeper {
    use super::*;
    use support::ZooKeeper;

    /// One whose sessions may last as long as leases do by default.
    fn start() -> ZooKeeper {
        let setup = ZooKeeper::setup().config("maxSessionTimeout", "60000");
        setup.start()
    }

    impl Served for ZooKeeper {
        /// The longest session isn't of 20 ticks, by which crosslock would find out how long they are.
        fn place(&self) -> String {
            format!("{}?tick=100ms", self.url())
        }

        fn line(&self) -> Vec<String> {
            let mut nodes = self.nodes();
            nodes.retain(|node| node.contains("/x-"));
            nodes
        }
    }

    each_test!(start());
}
