//! The servers of a world, and the URL by which processes open them.

use std::net::SocketAddr;

use crosslock_servers::{etcd::Etcd, redis::Single, zookeeper::ZooKeeper};
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
            Topology::Redis => Site::with(Box::new(Single::new()), 6379, |hosts| {
                format!("redis://{}/", hosts[0])
            }),
            Topology::Etcd => Site::with(Box::new(Etcd::new(3)), 2379, |hosts| {
                format!("etcd://{}/", list(hosts))
            }),
            Topology::ZooKeeper => Site::with(Box::new(ZooKeeper::new(3)), 2181, |hosts| {
                format!("zk://{}/", list(hosts))
            }),
            other => panic!("{other:?} isn't simulated yet"),
        }
    }

    fn with(
        service: Box<dyn Service>,
        port: u16,
        url: impl FnOnce(&[SocketAddr]) -> String,
    ) -> Self {
        let addresses: Vec<SocketAddr> = (0..service.hosts())
            .map(|host| {
                let host = u8::try_from(host + 1).expect("few hosts");
                SocketAddr::from(([10, 0, 0, host], port))
            })
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
