//! The servers of a run, whichever they are, or the directory.

mod redis;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosslock::{Locker, LockerBuilder, Result};

use super::names::{COUNTER, NAMES};
use super::topology::Topology;
pub(crate) use redis::{How, Set};
use support::{Ensemble, EtcdCluster, EtcdSetup, Fault, Proxy, ZooKeeperSetup, eventually};

/// Of etcd, or ZooKeeper.
const MEMBERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// The servers of a run.
#[derive(Debug)]
pub(crate) struct Servers {
    topology: Topology,
    pub(crate) place: Place,
    /// Where there are no others that tell clients who is the master: one for workers, and one for `crosslock run`.
    entrances: Vec<Proxy>,
}

#[derive(Debug)]
pub(crate) enum Place {
    Redis(Box<Set>),
    Etcd(EtcdCluster),
    ZooKeeper(Ensemble),
    Directory(PathBuf),
}

/// Who opens a URL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    Worker,
    Program,
}

impl Servers {
    pub(crate) fn start(topology: Topology, dir: &Path) -> Self {
        let place = match topology {
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
            _ => Place::Redis(Box::new(Set::start(topology))),
        };
        let entrances = match (topology, &place) {
            (Topology::Single | Topology::Replicas, Place::Redis(set)) => {
                let start = |_: Who| Proxy::start(set.masters()[0].addr());
                [Who::Worker, Who::Program].map(start).into()
            }
            _ => Vec::new(),
        };
        Servers {
            topology,
            place,
            entrances,
        }
    }

    pub(crate) fn topology(&self) -> Topology {
        self.topology
    }

    pub(crate) fn url(&self, who: Who) -> String {
        match &self.place {
            Place::Directory(locks) => format!("file://{}", locks.display()),
            Place::Etcd(set) => set.url(),
            Place::ZooKeeper(set) => set.url() + "?tick=100ms",
            Place::Redis(set) => match self.entrances.get(who as usize) {
                Some(entrance) => entrance.url() + &set.parameters(),
                None => set.url(),
            },
        }
    }

    /// Has clients find the master here. What is connected stays where it is, unless it is cut off.
    pub(crate) fn lead_to(&self, master: SocketAddr, cuts_off: bool) {
        for entrance in &self.entrances {
            entrance.point_to(master);
            if cuts_off {
                entrance.set(Fault::Refuse);
                entrance.set(Fault::None);
            }
        }
    }

    /// What is between `crosslock run` and the server.
    pub(crate) fn entrance_of_program(&self) -> Option<&Proxy> {
        self.entrances.get(Who::Program as usize)
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
        let url = self.url(Who::Worker);
        Locker::builder(&url)
            .ttl(self.topology.ttl())
            .connect_timeout(PATIENCE)
    }
}
