//! The servers of a run, whichever they are, or the directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crosslock::{Locker, LockerBuilder, Result};

use super::worker::{COUNTER, NAMES};
use support::{
    Cluster, Daemon, Ensemble, EtcdCluster, EtcdSetup, Kind, Quorum, RedisServer, SentinelSet,
    ServerSet, Setup, ZooKeeperSetup, wait_until,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// Of etcd, ZooKeeper, or a quorum.
const MEMBERS: usize = 3;
/// A server that is late on a busy machine isn't replaced for it.
const DOWN_AFTER: Duration = Duration::from_millis(1_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    Single,
    /// A master and two replicas of Redis, with three sentinels.
    Sentinel,
    Cluster,
    /// Three of Redis that know nothing of each other, and nothing more when they start again.
    Quorum,
    Etcd,
    ZooKeeper,
    File,
}

impl Topology {
    /// How long leases last. Where masters are replaced, some are to outlive that.
    pub(crate) fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Topology::Single | Topology::Quorum | Topology::File => 500,
            Topology::Sentinel | Topology::Cluster => 800,
            // Ten ticks at least, twenty at most.
            Topology::ZooKeeper => 1_500,
            // Whole seconds, and an election is over before.
            Topology::Etcd => 2_000,
        })
    }

    /// For how long processes wait for an answer.
    pub(crate) fn io_timeout(self) -> Duration {
        // A commit of several takes longer.
        let is_slow = matches!(self, Topology::Etcd | Topology::ZooKeeper);
        Duration::from_millis(if is_slow { 300 } else { 150 })
    }
}

#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) topology: Topology,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Single(RedisServer),
    Sentinel(SentinelSet),
    Cluster(Cluster),
    Quorum(Quorum),
    Etcd(EtcdCluster),
    ZooKeeper(Ensemble),
    Directory(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It is killed, and starts again later.
    Killed,
    /// It is stopped, and goes on later, as the master that it was.
    Stopped,
}

impl Place {
    fn start(topology: Topology, dir: &Path) -> Self {
        let setup = Setup::new()
            // A server that starts again knows nothing.
            .config("rdb-del-sync-files", "yes")
            .down_after(DOWN_AFTER)
            .node_timeout(DOWN_AFTER);
        match topology {
            Topology::Single => {
                // What was written survives the server, and nobody waits for the disk.
                let server = RedisServer::builder().config("appendonly", "yes");
                Place::Single(server.config("appendfsync", "no").start())
            }
            Topology::Sentinel => Place::Sentinel(setup.sentinels()),
            Topology::Cluster => Place::Cluster(setup.cluster()),
            Topology::Quorum => Place::Quorum(setup.quorum(MEMBERS)),
            // One that is late on a busy machine isn't taken for one that is gone: it may be late for a second.
            Topology::Etcd => {
                let setup = EtcdSetup::new().flag("election-timeout", "1000");
                Place::Etcd(setup.cluster(MEMBERS))
            }
            Topology::ZooKeeper => {
                let setup = ZooKeeperSetup::new().config("syncLimit", "10");
                Place::ZooKeeper(setup.ensemble(MEMBERS))
            }
            Topology::File => {
                let locks = dir.join("locks");
                fs::create_dir(&locks).expect("make a directory");
                Place::Directory(locks)
            }
        }
    }
}

/// Another takes the place of a server, which then comes back.
fn replace(
    old: &Daemon,
    how: How,
    pause: Duration,
    wait_for_other: impl FnOnce() -> usize,
    restart: impl FnOnce(),
) {
    match how {
        How::Killed => old.kill(),
        How::Stopped => old.stop(),
    }
    wait_for_other();
    thread::sleep(pause);
    match how {
        How::Killed => restart(),
        How::Stopped => old.cont(),
    }
}

/// The same with the leader of a set.
fn replace_leader<K: Kind>(set: &ServerSet<K>, how: How, pause: Duration) {
    let leader = set.leader();
    let old = set.member(leader);
    let wait_for_other = || set.wait_for_other_leader(leader);
    replace(old, how, pause, wait_for_other, || old.restart());
    set.leader();
}

impl Servers {
    pub(crate) fn start(topology: Topology, dir: &Path) -> Self {
        let place = Place::start(topology, dir);
        Servers { topology, place }
    }

    /// Where there are replicas, each has every lease, so no failover may break a rule.
    pub(crate) fn url(&self) -> String {
        match &self.place {
            Place::Directory(locks) => format!("file://{}", locks.display()),
            Place::Etcd(set) => set.url(),
            Place::ZooKeeper(set) => set.url() + "?tick=100ms",
            Place::Single(server) => server.url(),
            Place::Sentinel(set) => set.url() + "?min_replicas=2",
            Place::Cluster(set) => set.url() + "?min_replicas=1",
            Place::Quorum(set) => set.url("1s"),
        }
    }

    /// Those of Redis.
    pub(crate) fn masters(&self) -> Vec<&RedisServer> {
        match &self.place {
            Place::Single(server) => vec![server],
            Place::Sentinel(set) => vec![set.member(set.master())],
            Place::Quorum(set) => {
                let all = (0..MEMBERS).map(|index| -> &RedisServer { set.server(index) });
                all.collect()
            }
            Place::Cluster(set) => {
                let masters = set.masters().into_iter();
                masters
                    .map(|index| -> &RedisServer { set.node(index) })
                    .collect()
            }
            other => unreachable!("{other:?} is no Redis"),
        }
    }

    /// Has another server take the place of the master of this name. Pauses before the old one is back, and returns
    /// when all servers are what they were to each other.
    pub(crate) fn fail_over(&self, name: &str, how: How, pause: Duration) {
        match &self.place {
            Place::Sentinel(set) => {
                let old = set.master();
                let (master, wait) = (set.member(old), || set.wait_for_other_master(old));
                replace(master, how, pause, wait, || master.restart());
                set.wait_until_settled();
            }
            Place::Cluster(set) => {
                let key = format!("{{crosslock:{name}}}");
                let old = set.owner(&key);
                let (master, wait) = (set.node(old), || set.wait_for_other_owner(&key, old));
                replace(master, how, pause, wait, || master.restart());
                set.wait_until_ok();
                let confirmed = |one: &RedisServer| one.is_confirmed_by(1).unwrap_or(false);
                wait_until("the replicas to confirm", PATIENCE, || {
                    self.masters().into_iter().all(confirmed)
                });
            }
            Place::Etcd(set) => replace_leader(set, how, pause),
            Place::ZooKeeper(set) => replace_leader(set, how, pause),
            other => unreachable!("{other:?} replaces no master"),
        }
    }

    /// What nobody has any more must be free when all clients have ended.
    pub(crate) fn wait_until_free(&self) {
        wait_until("the locks to be left alone", PATIENCE, || {
            self.are_free().unwrap_or(false)
        });
    }

    fn are_free(&self) -> Result<bool> {
        let locker = self.builder().build()?;
        for name in NAMES {
            let seen = locker.inspect(name)?;
            if !seen.holders.is_empty() || !seen.waiters.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number that is stored; 0 where there are no values.
    pub(crate) fn stored(&self) -> u64 {
        if self.topology == Topology::Quorum {
            return 0;
        }
        let locker = self.builder().build().expect("open");
        let number = locker.mutex(COUNTER, 0u64).expect("a number");
        let number = number.try_lock_for(PATIENCE).expect("its lock");
        *number.expect("nobody else has it")
    }

    /// Of an operator, who waits for longer than workers do.
    fn builder(&self) -> LockerBuilder {
        Locker::builder(&self.url())
            .ttl(self.topology.ttl())
            .connect_timeout(PATIENCE)
    }
}
