//! The servers of a world, and the URL by which processes open them.

use std::net::SocketAddr;

use crosslock_servers::etcd::Etcd;
use crosslock_servers::redis::Redis;
use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_world::service::Service;
use crosslock_world::{Place, add_service};

use crate::plan::{Plan, Topology};

/// Where the locks live.
#[derive(Clone, Debug)]
pub struct Site {
    pub url: String,
    pub hosts: Vec<Place>,
    /// The names of faults that only its servers know.
    pub own: &'static [&'static str],
}

impl Site {
    pub fn open(plan: &Plan) -> Self {
        match plan.topology {
            Topology::Memory => Site {
                url: "memory:".into(),
                hosts: Vec::new(),
                own: &[],
            },
            Topology::Redis => Site::with(Box::new(Redis::single()), &[6379], |hosts| {
                format!("redis://{}/", hosts[0])
            }),
            Topology::Sentinel => {
                let ports = [6379, 6379, 6379, 26379, 26379, 26379];
                Site::with(Box::new(Redis::sentinels(2)), &ports, |hosts| {
                    format!("redis+sentinel://{}/mymaster", list(&hosts[3..]))
                })
            }
            Topology::Cluster => Site::with(Box::new(Redis::cluster()), &[6379; 6], |hosts| {
                format!("redis+cluster://{}", list(&hosts[..3]))
            }),
            Topology::Etcd => Site::with(Box::new(Etcd::new(3)), &[2379; 3], |hosts| {
                format!("etcd://{}/", list(hosts))
            }),
            Topology::ZooKeeper => Site::with(Box::new(ZooKeeper::new(3)), &[2181; 3], |hosts| {
                format!("zk://{}/", list(hosts))
            }),
        }
    }

    fn with(
        service: Box<dyn Service>,
        ports: &[u16],
        url: impl FnOnce(&[SocketAddr]) -> String,
    ) -> Self {
        let hosts = (1..).zip(ports);
        let addresses: Vec<SocketAddr> = hosts
            .map(|(host, port)| SocketAddr::from(([10, 0, 0, host], *port)))
            .collect();
        let (own, hosts) = (service.own_faults(), service.hosts());
        let number = add_service(service, &addresses);
        let hosts = (0..hosts).map(|host| Place {
            service: number,
            host,
        });
        Site {
            url: url(&addresses),
            hosts: hosts.collect(),
            own,
        }
    }
}

fn list(hosts: &[SocketAddr]) -> String {
    let hosts: Vec<String> = hosts.iter().map(SocketAddr::to_string).collect();
    hosts.join(",")
}
