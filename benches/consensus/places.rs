//! Where the locks of this bench live.

use std::net::SocketAddr;
use std::path::Path;

use support::{Ensemble, Etcd, EtcdCluster, RedisServer, ZooKeeper};

const MEMBERS: usize = 3;

/// A directory, a Redis server, three members of etcd, and three of ZooKeeper.
pub(crate) struct Places {
    pub(crate) file: String,
    redis: RedisServer,
    etcd: EtcdCluster,
    zookeeper: Ensemble,
}

impl Places {
    pub(crate) fn start(directory: &Path) -> Self {
        // Sessions of 10 s are 2 to 20 of the ticks.
        let tick = std::time::Duration::from_secs(1);
        Places {
            file: format!("file://{}", directory.display()),
            redis: RedisServer::start(),
            etcd: Etcd::setup().cluster(MEMBERS),
            zookeeper: ZooKeeper::setup()
                .tick(tick)
                .property("zookeeper.forceSync", "yes")
                .ensemble(MEMBERS),
        }
    }

    pub(crate) fn redis_url(&self) -> String {
        self.redis.url()
    }

    pub(crate) fn etcd_url(&self) -> String {
        self.etcd.url()
    }

    pub(crate) fn etcd_members(&self) -> Vec<SocketAddr> {
        self.etcd.members().iter().map(Etcd::addr).collect()
    }

    pub(crate) fn etcd_pids(&self) -> Vec<u32> {
        self.etcd.members().iter().map(Etcd::pid).collect()
    }

    pub(crate) fn zookeeper_url(&self) -> String {
        self.zookeeper.url()
    }

    pub(crate) fn zookeeper_members(&self) -> Vec<SocketAddr> {
        let members = self.zookeeper.members().iter();
        members.map(ZooKeeper::addr).collect()
    }

    pub(crate) fn zookeeper_pids(&self) -> Vec<u32> {
        self.zookeeper
            .members()
            .iter()
            .map(ZooKeeper::pid)
            .collect()
    }
}
