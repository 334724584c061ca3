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
        self.etcd.members().iter().map(|one| one.pid()).collect()
    }

    /// How many the members have been sent, of those that a lock is made of.
    pub(crate) fn etcd_requests(&self) -> usize {
        let services = ["KV\"", "Lease\"", "Watch\""];
        let of = |member: &Etcd| services.map(|service| member.requests(service));
        let sum = self.etcd.members().iter().flat_map(of).sum::<u64>();
        usize::try_from(sum).expect("not so many")
    }

    pub(crate) fn zookeeper_url(&self) -> String {
        self.zookeeper.url()
    }

    pub(crate) fn zookeeper_members(&self) -> Vec<SocketAddr> {
        let members = self.zookeeper.members().iter();
        members.map(ZooKeeper::addr).collect()
    }

    pub(crate) fn zookeeper_pids(&self) -> Vec<u32> {
        let members = self.zookeeper.members().iter();
        members.map(|one| one.pid()).collect()
    }

    /// How many packets the members have been sent.
    pub(crate) fn zookeeper_requests(&self) -> usize {
        let of = |member: &ZooKeeper| -> usize {
            let state = member.word("srvr").expect("its state");
            let mut lines = state.lines();
            let received = lines.find_map(|line| line.strip_prefix("Received: "));
            received.expect("a count").parse().expect("a count")
        };
        self.zookeeper.members().iter().map(of).sum()
    }
}
