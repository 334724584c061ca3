//! The servers of a run, whichever they are, or the directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosslock::{Locker, LockerBuilder, Result};

use super::worker::{COUNTER, NAMES};
use support::{
    Cluster, Ensemble, EtcdCluster, EtcdSetup, Proxy, RedisServer, SentinelSet, Setup,
    ZooKeeperSetup, eventually, slot_of, wait_until,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// Of etcd, or ZooKeeper.
const MEMBERS: usize = 3;
/// A server that is late on a busy machine isn't replaced for it.
const DOWN_AFTER: Duration = Duration::from_millis(1_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    Single,
    /// A master and two replicas of Redis, with three sentinels.
    Sentinel,
    Cluster,
    Etcd,
    ZooKeeper,
    File,
}

impl Topology {
    /// How long leases last. Where masters are replaced, some are to outlive that.
    pub(crate) fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Topology::Single | Topology::File => 500,
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
    pub(crate) place: Place,
}

#[derive(Debug)]
pub(crate) enum Place {
    Single(RedisServer, Proxy),
    Sentinel(SentinelSet),
    Cluster(Cluster),
    Etcd(EtcdCluster),
    ZooKeeper(Ensemble),
    Directory(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Asked,
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
                let server = RedisServer::builder()
                    .config("appendonly", "yes")
                    .config("appendfsync", "no")
                    .start();
                let proxy = Proxy::start(server.addr());
                Place::Single(server, proxy)
            }
            Topology::Sentinel => Place::Sentinel(setup.sentinels()),
            Topology::Cluster => Place::Cluster(setup.cluster()),
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

    pub(crate) fn masters(&self) -> Vec<&RedisServer> {
        match self {
            Place::Single(server, _) => vec![server],
            Place::Sentinel(set) => vec![set.member(set.master())],
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
        let slot = slot_of(&format!("{{crosslock:{name}}}"));
        let old = match self {
            Place::Sentinel(set) => set.master(),
            Place::Cluster(set) => owner(set, slot),
            other => unreachable!("{other:?} replaces no master"),
        };
        let server: &RedisServer = match self {
            Place::Sentinel(set) => set.member(old),
            Place::Cluster(set) => set.node(old),
            _ => unreachable!("it is one of these"),
        };
        match how {
            How::Asked => {}
            How::Killed => server.kill(),
            How::Stopped => server.stop(),
        }
        self.replace(old, name, how == How::Asked);
        std::thread::sleep(pause);
        match how {
            How::Asked => {}
            How::Killed => server.restart(),
            How::Stopped => server.cont(),
        }
        self.settle();
    }

    /// Waits until another has the place of `old`, which is asked, or gone.
    fn replace(&self, old: usize, name: &str, is_asked: bool) {
        match self {
            Place::Sentinel(set) if is_asked => _ = set.failover(),
            Place::Sentinel(set) => _ = set.wait_for_other_master(old),
            Place::Cluster(set) if is_asked => {
                let mut replicas = Vec::new();
                wait_until("a replica", PATIENCE, || {
                    replicas = set.replicas_of(old);
                    !replicas.is_empty()
                });
                set.failover(replicas[0]);
            }
            Place::Cluster(set) => {
                _ = set.wait_for_other_owner(&format!("{{crosslock:{name}}}"), old);
            }
            other => unreachable!("{other:?} replaces no master"),
        }
    }

    /// Waits until all servers run, and replicas have what their masters have.
    fn settle(&self) {
        match self {
            Place::Sentinel(set) => set.wait_until_settled(),
            Place::Cluster(set) => {
                set.wait_until_ok();
                let confirmed = |one: &RedisServer| one.is_confirmed_by(1).unwrap_or(false);
                wait_until("the replicas to confirm", PATIENCE, || {
                    self.masters().into_iter().all(confirmed)
                });
            }
            _ => {}
        }
    }
}

fn owner(set: &Cluster, slot: u16) -> usize {
    let mut owner = None;
    wait_until("a node to have the slot", PATIENCE, || {
        owner = set.owner_of_slot(slot);
        owner.is_some()
    });
    owner.expect("it was there")
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
            Place::Single(server, _) => server.url(),
            Place::Sentinel(set) => set.url() + "?min_replicas=2",
            Place::Cluster(set) => set.url() + "?min_replicas=1",
        }
    }

    pub(crate) fn url_of_program(&self) -> String {
        match &self.place {
            Place::Single(_, proxy) => proxy.url(),
            _ => self.url(),
        }
    }

    /// What nobody has any more must be free. Gives what isn't, when all clients have ended.
    pub(crate) fn left(&self) -> Option<String> {
        let mut left = None;
        eventually(PATIENCE, || {
            left = self.look().unwrap_or_else(|error| Some(error.to_string()));
            left.is_none()
        });
        left
    }

    fn look(&self) -> Result<Option<String>> {
        let locker = self.builder().build()?;
        for name in NAMES {
            let seen = locker.inspect(name)?;
            if !seen.holders.is_empty() || !seen.waiters.is_empty() {
                return Ok(Some(format!("{name}: {seen:?}")));
            }
        }
        Ok(None)
    }

    /// The number that is stored, unless somebody has its lock.
    pub(crate) fn stored(&self) -> Result<Option<u64>> {
        let locker = self.builder().build()?;
        let number = locker.mutex(COUNTER, 0u64)?;
        let number = number.try_lock_for(PATIENCE)?;
        Ok(number.map(|number| *number))
    }

    /// Of an operator, who waits for longer than workers do.
    fn builder(&self) -> LockerBuilder {
        Locker::builder(&self.url())
            .ttl(self.topology.ttl())
            .connect_timeout(PATIENCE)
    }
}
