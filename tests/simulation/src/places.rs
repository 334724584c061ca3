//! The servers of a world, and the URL by which processes open them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use crosslock_servers::redis::Redis;
use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_world::service::Service;
use crosslock_world::{Place, add_service, set_names};

use crate::plan::{Plan, Topology};

/// The name that the URL has for the last server.
pub const NAMED: &str = "named.test";

/// Where the locks live.
#[derive(Clone, Debug)]
pub struct Site {
    pub url: String,
    pub hosts: Vec<Place>,
    /// The names of faults that only its servers know.
    pub own: &'static [&'static str],
    /// Whether a server that is started again may have lost all it had, which is no harm.
    pub forgets: bool,
    /// What its name leads to.
    pub named: Option<IpAddr>,
}

impl Site {
    pub fn open(plan: &Plan) -> Self {
        match plan.topology {
            Topology::Memory => Site {
                url: "memory:".into(),
                hosts: Vec::new(),
                own: &[],
                forgets: false,
                named: None,
            },
            Topology::Redis => Site::with(Box::new(Redis::single()), &[6379], |hosts| {
                format!("redis://{}/", hosts[0])
            }),
            Topology::Sentinel => {
                let ports = [6379, 6379, 6379, 26379, 26379, 26379];
                Site::with(Box::new(Redis::sentinels(2)), &ports, |hosts| {
                    format!("redis+sentinel://{}/mymaster", hosts[3..].join(","))
                })
            }
            Topology::Cluster => Site::with(Box::new(Redis::cluster()), &[6379; 6], |hosts| {
                format!("redis+cluster://{}", hosts[3..].join(","))
            }),
            Topology::Quorum => {
                let servers = Box::new(Redis::independent(3));
                // No ttl is longer.
                let mut site = Site::with(servers, &[6379; 3], |hosts| {
                    format!("redis+quorum://{}/?rejoin=5s", hosts.join(","))
                });
                site.forgets = true;
                site
            }
            Topology::Etcd => Site::etcd(plan.logs_in),
            Topology::ZooKeeper => {
                let ensemble = ZooKeeper::new(3, Duration::from_millis(100));
                Site::with(Box::new(ensemble), &[2181; 3], |hosts| {
                    format!("zk://{}/", hosts.join(","))
                })
            }
        }
    }

    fn etcd(logs_in: bool) -> Self {
        let (etcd, login) = match logs_in {
            true => (Etcd::new(3).with_logins(), "user:password@"),
            false => (Etcd::new(3), ""),
        };
        Site::with(Box::new(etcd), &[2379; 3], |hosts| {
            format!("etcd://{login}{}/", hosts.join(","))
        })
    }

    fn with(
        service: Box<dyn Service>,
        ports: &[u16],
        url: impl FnOnce(&[String]) -> String,
    ) -> Self {
        let hosts = (1..).zip(ports);
        let addresses: Vec<SocketAddr> = hosts
            .map(|(host, port)| SocketAddr::from(([10, 0, 0, host], *port)))
            .collect();
        let last = addresses.last().expect("it has hosts");
        set_names(NAMED, Some(vec![last.ip()]));
        let mut shown: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        shown.pop();
        shown.push(format!("{NAMED}:{}", last.port()));
        let (own, hosts) = (service.own_faults(), service.hosts());
        let number = add_service(service, &addresses);
        let hosts = (0..hosts).map(|host| Place {
            service: number,
            host,
        });
        Site {
            url: url(&shown),
            hosts: hosts.collect(),
            own,
            forgets: false,
            named: Some(last.ip()),
        }
    }
}
