//! The servers of a run, whichever they are, or the directory.

mod directory;
mod members;
mod sets;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::kinds::Class;
use super::names::key_of;
use super::topology::Topology;
pub(crate) use directory::Directory;
pub(crate) use members::{MEMBERS, Members};
pub(crate) use sets::Set;
use support::{Proxy, RedisServer};

/// What the user of the workers may do on one server, as the documentation has it.
const USER: &str = "user app on >app ~{crosslock:* resetchannels &crosslock:inbox:* -@all +eval +evalsha +get +set \
    +pexpire +pttl +del +time +ping +exists +mget +incr +lindex +lpop +llen +lrem +rpush +hget +hgetall +hset +hdel \
    +zadd +zrem +zscore +zrange +zremrangebyscore +pexpireat +publish +subscribe +unsubscribe +pubsub|numsub \
    +scan +lrange +getrange";

/// The servers of a run.
#[derive(Debug)]
pub(crate) struct Servers {
    topology: Topology,
    class: Class,
    place: Place,
    watched: Watched,
}

#[derive(Debug)]
enum Place {
    Set(Box<Set>),
    Members(Box<Members>),
    Directory(Directory),
}

/// Which servers are looked at: those that have the locks, and those that take part besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<Addresses>>);

/// Of servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) masters: Vec<SocketAddr>,
    pub(crate) others: Vec<SocketAddr>,
    /// Of members that run, with the ids of their processes.
    pub(crate) members: Vec<(SocketAddr, u32)>,
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
            Topology::Etcd | Topology::ZooKeeper => {
                Place::Members(Box::new(Members::start(topology)))
            }
            Topology::File => Place::Directory(Directory::start(dir).expect("make a directory")),
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

    pub(crate) fn set(&self) -> Option<&Set> {
        match &self.place {
            Place::Set(set) => Some(set),
            _ => None,
        }
    }

    pub(crate) fn members(&self) -> Option<&Members> {
        match &self.place {
            Place::Members(members) => Some(members),
            _ => None,
        }
    }

    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            _ => None,
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
        let members = self.members().map_or_else(Vec::new, Members::running);
        self.watched.set(Addresses {
            masters,
            others,
            members,
        });
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

    /// Where the proxies of workers lead to; empty if servers have proxies instead.
    pub(crate) fn entrances(&self) -> Vec<SocketAddr> {
        match &self.place {
            Place::Members(members) => members.addrs(),
            Place::Directory(_) => Vec::new(),
            _ if self.topology.announces() => Vec::new(),
            _ => vec![self.masters()[0].addr()],
        }
    }

    /// Proxies for one process, unless servers have theirs.
    pub(crate) fn proxies_for_one(&self) -> Vec<Proxy> {
        let start = |addr| match &self.place {
            Place::Members(members) => members.proxy_to(addr),
            _ => Proxy::start(addr),
        };
        self.entrances().into_iter().map(start).collect()
    }

    /// What a process opens that has these proxies.
    pub(crate) fn url_by(&self, proxies: &[Proxy]) -> String {
        let addrs: Vec<_> = proxies.iter().map(Proxy::addr).collect();
        self.url_at(&addrs)
    }

    fn url_at(&self, entrances: &[SocketAddr]) -> String {
        let parameters = self.topology.parameters(self.class);
        match (&self.place, entrances) {
            (Place::Members(members), all) => members.url_by(all),
            (Place::Directory(directory), _) => directory.url(),
            (_, [addr, ..]) => format!("redis://app:app@{addr}/{parameters}"),
            (Place::Set(set), []) => set.url("app:app", &parameters),
        }
    }

    /// What an operator opens.
    pub(crate) fn url(&self) -> String {
        self.url_at(&self.entrances())
    }

    /// Those in front of servers.
    pub(crate) fn proxies(&self) -> Vec<&Proxy> {
        self.set().map_or_else(Vec::new, Set::proxies)
    }

    /// Those of Redis that have locks.
    pub(crate) fn masters(&self) -> Vec<&RedisServer> {
        match &self.place {
            Place::Members(_) | Place::Directory(_) => Vec::new(),
            Place::Set(set) => set.masters(),
        }
    }

    /// The one that has this lock.
    pub(crate) fn master_of(&self, name: &str) -> &RedisServer {
        match &self.place {
            Place::Set(set) => set.server(set.master_of(&key_of(name))),
            Place::Members(_) | Place::Directory(_) => unreachable!("no server of Redis has it"),
        }
    }

    /// What is there that should not be, when all clients have ended.
    pub(crate) fn left(&self) -> Option<String> {
        let clients = match &self.place {
            Place::Set(set) => set.clients(),
            Place::Members(members) => return members.left(),
            Place::Directory(directory) => return directory.left(),
        };
        let keys = self.masters().into_iter().flat_map(RedisServer::keys);
        let may_stay = |key: &str| [":fence", ":value"].iter().any(|end| key.ends_with(end));
        let others: Vec<_> = keys.filter(|key| !may_stay(key)).collect();
        let is_clean = others.is_empty() && clients == 0;
        (!is_clean).then(|| format!("keys {others:?}, and {clients} connections"))
    }

    /// The number that is stored for a name.
    pub(crate) fn stored(&self, name: &str) -> u64 {
        match &self.place {
            Place::Members(members) => return members.stored(name),
            Place::Directory(directory) => return directory.stored(name),
            Place::Set(_) => {}
        }
        let key = key_of(name) + ":value";
        let stored: Option<u64> = self.master_of(name).query(&["GET", &key]);
        stored.unwrap_or_default()
    }

    /// Waits until replicas have what masters have, or all members agree.
    pub(crate) fn mend(&self) {
        match &self.place {
            Place::Directory(_) => {}
            // Nobody waits for its replica.
            Place::Set(_) if self.topology == Topology::Single => {}
            Place::Set(set) => set.mend(),
            Place::Members(members) => members.mend(),
        }
        self.look();
    }
}
