//! The servers of a run, whichever they are.

mod sets;
mod single;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::kinds::Class;
use super::names::key_of;
use super::topology::Topology;
pub(crate) use sets::Set;
pub(crate) use single::Single;
use support::{Proxy, RedisServer};

/// What the user of the workers may do on one server, as the documentation has it.
const USER: &str = "user app on >app ~{crosslock:* resetchannels &crosslock:inbox:* -@all +eval +evalsha +get +set \
    +pexpire +pttl +del +time +ping +exists +mget +incr +incrby +lindex +lpop +llen +lrem +rpush +hget +hgetall +hset +hdel +zadd +zrem +zscore +zrange \
    +zremrangebyscore +pexpireat +publish +subscribe +unsubscribe +pubsub|numsub \
    +scan +lrange +getrange";

/// The servers of a run.
#[derive(Debug)]
pub(crate) struct Servers {
    topology: Topology,
    class: Class,
    pub(crate) place: Place,
    watched: Watched,
}

#[derive(Debug)]
pub(crate) enum Place {
    Single(Box<Single>),
    Set(Box<Set>),
}

/// Which servers are looked at: those that have the locks, and those that take part besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<Addresses>>);

/// Of servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) masters: Vec<SocketAddr>,
    pub(crate) others: Vec<SocketAddr>,
}

impl Watched {
    pub(crate) fn get(&self) -> Addresses {
        self.0.lock().expect("no panics").clone()
    }

    fn set(&self, addresses: Addresses) {
        *self.0.lock().expect("no panics") = addresses;
    }
}

impl Servers {
    pub(crate) fn start(topology: Topology, class: Class, dir: &Path) -> Self {
        let place = match topology {
            Topology::Single => Place::Single(Box::new(Single::start(class, dir))),
            _ => Place::Set(Box::new(Set::start(topology, class))),
        };
        let servers = Servers {
            topology,
            class,
            place,
            watched: Watched::default(),
        };
        servers.look();
        servers
    }

    pub(crate) fn topology(&self) -> Topology {
        self.topology
    }

    pub(crate) fn single(&self) -> Option<&Single> {
        match &self.place {
            Place::Single(single) => Some(single),
            Place::Set(_) => None,
        }
    }

    pub(crate) fn set(&self) -> Option<&Set> {
        match &self.place {
            Place::Set(set) => Some(set),
            Place::Single(_) => None,
        }
    }

    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Has those looked at that have the locks now.
    pub(crate) fn look(&self) {
        let addrs = |servers: Vec<&RedisServer>| servers.iter().map(|one| one.addr()).collect();
        let masters: Vec<_> = addrs(self.masters());
        let mut others: Vec<_> = addrs(self.set().map_or_else(Vec::new, Set::running));
        others.retain(|addr| !masters.contains(addr));
        self.watched.set(Addresses { masters, others });
    }

    /// Whether others have the locks than those looked at.
    pub(crate) fn has_changed(&self) -> bool {
        let masters = self.masters().into_iter().map(RedisServer::addr);
        let (mut is, mut was) = (masters.collect::<Vec<_>>(), self.watched.get().masters);
        is.sort_unstable();
        was.sort_unstable();
        is != was
    }

    /// Looks at nothing that is about to fail.
    pub(crate) fn look_away_from(&self, server: &RedisServer) {
        let mut addresses = self.watched.get();
        addresses.masters.retain(|addr| *addr != server.addr());
        addresses.others.retain(|addr| *addr != server.addr());
        self.watched.set(addresses);
    }

    /// Where the proxies of workers lead to; `None` if servers have proxies instead.
    pub(crate) fn entrance(&self) -> Option<SocketAddr> {
        (!self.topology.announces()).then(|| self.masters()[0].addr())
    }

    /// What a process opens that reaches a single server there.
    pub(crate) fn url_by(&self, entrance: Option<SocketAddr>) -> String {
        let parameters = self.topology.parameters(self.class);
        match (entrance, &self.place) {
            (Some(addr), _) => format!("redis://app:app@{addr}/{parameters}"),
            (None, Place::Set(set)) => set.url("app:app", &parameters),
            (None, Place::Single(_)) => unreachable!("its workers have proxies"),
        }
    }

    /// What an operator opens.
    pub(crate) fn url(&self) -> String {
        self.url_by(self.entrance())
    }

    /// Those in front of servers.
    pub(crate) fn proxies(&self) -> Vec<&Proxy> {
        self.set().map_or_else(Vec::new, Set::proxies)
    }

    /// Those that have locks.
    pub(crate) fn masters(&self) -> Vec<&RedisServer> {
        match &self.place {
            Place::Single(single) => vec![single.primary()],
            Place::Set(set) => set.masters(),
        }
    }

    /// The one that has this lock.
    pub(crate) fn master_of(&self, name: &str) -> &RedisServer {
        match &self.place {
            Place::Single(single) => single.primary(),
            Place::Set(set) => set.server(set.master_of(&key_of(name))),
        }
    }

    /// How many clients are connected.
    pub(crate) fn clients(&self) -> usize {
        match &self.place {
            Place::Single(single) => single.clients(),
            Place::Set(set) => set.clients(),
        }
    }

    /// Waits until replicas have what masters have.
    pub(crate) fn mend(&self) {
        if let Some(set) = self.set() {
            set.mend();
        }
        self.look();
    }
}
