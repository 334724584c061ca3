//! Servers of Redis, of which others take the places of masters.

use std::sync::Mutex;
use std::time::Duration;

use redis::RedisResult;

use super::USER;
use crate::kinds::Class;
use crate::topology::Topology;
use support::{
    Cluster, Member, Proxy, RedisServer, Replicated, SentinelSet, Setup, slot_of, wait_until,
};

/// What the user may do besides where there are several.
const MORE: &str = "+role +wait +cluster|slots +cluster|info +cluster|nodes +asking +spublish +ssubscribe \
    +sunsubscribe +pubsub|shardnumsub +info";
const PATIENCE: Duration = Duration::from_secs(60);
/// A server that is late on a busy machine isn't replaced for it.
const DOWN_AFTER: Duration = Duration::from_millis(1_500);
const NODES: usize = 6;

/// Servers of Redis.
#[derive(Debug)]
pub(crate) enum Set {
    /// One, or several, with the number of the one that is the master.
    Replicas(Replicated, Mutex<usize>),
    Sentinel(SentinelSet),
    Cluster(Cluster),
}

impl Set {
    pub(super) fn start(topology: Topology, class: Class) -> Self {
        let user = match topology {
            Topology::Single => USER.to_owned(),
            _ => format!("{USER} {MORE}"),
        };
        let setup = Setup::new()
            .acl(&[&user])
            .config("lua-time-limit", "20")
            .config("repl-diskless-sync", "yes")
            .config("repl-diskless-sync-delay", "0")
            // A server that starts again knows nothing, but what it has appended.
            .config("rdb-del-sync-files", "yes")
            .down_after(DOWN_AFTER)
            .node_timeout(DOWN_AFTER);
        match topology {
            Topology::Etcd | Topology::ZooKeeper | Topology::File => unreachable!("it is no set"),
            Topology::Single | Topology::Replicas => {
                let setup = match class {
                    // What was written survives the server, and none waits for the disk.
                    Class::Safe => setup
                        .config("appendonly", "yes")
                        .config("appendfsync", "no"),
                    Class::Unsafe => setup,
                };
                let replicas = match topology {
                    Topology::Single => usize::from(class == Class::Unsafe),
                    _ => topology.replicas(),
                };
                Set::Replicas(setup.replicated(replicas), Mutex::new(0))
            }
            Topology::Sentinel => {
                let set = setup.proxies().sentinels();
                // So it is told sooner that a failover is over, and which replicas are good for the next.
                for (name, millis) in [("info-period", "300"), ("publish-period", "300")] {
                    for sentinel in set.sentinels() {
                        sentinel.query::<()>(&["SENTINEL", "DEBUG", name, millis]);
                    }
                }
                Set::Sentinel(set)
            }
            Topology::Cluster => Set::Cluster(setup.proxies().cluster()),
        }
    }

    pub(super) fn url(&self, login: &str, parameters: &str) -> String {
        match self {
            Set::Replicas(..) => unreachable!("its workers have proxies"),
            Set::Sentinel(set) => {
                let hosts = set.hosts();
                format!("redis+sentinel://{login}@{hosts}/mymaster{parameters}")
            }
            Set::Cluster(set) => format!("redis+cluster://{login}@{}/{parameters}", set.hosts()),
        }
    }

    fn members(&self) -> Vec<&Member> {
        match self {
            Set::Replicas(set, _) => set.members().iter().collect(),
            Set::Sentinel(set) => set.members().iter().collect(),
            Set::Cluster(set) => (0..NODES).map(|index| set.node(index)).collect(),
        }
    }

    pub(super) fn proxies(&self) -> Vec<&Proxy> {
        match self {
            Set::Replicas(..) => Vec::new(),
            _ => self.members().iter().map(|member| member.proxy()).collect(),
        }
    }

    pub(crate) fn server(&self, index: usize) -> &RedisServer {
        self.members()[index]
    }

    pub(super) fn running(&self) -> Vec<&RedisServer> {
        let running = self.members().into_iter();
        let running = running.filter(|member| member.is_running());
        running.map(|member| -> &RedisServer { member }).collect()
    }

    pub(super) fn masters(&self) -> Vec<&RedisServer> {
        let indices = match self {
            Set::Replicas(_, master) => vec![*master.lock().expect("no panics")],
            Set::Sentinel(set) => vec![set.master()],
            Set::Cluster(set) => set.masters(),
        };
        indices.into_iter().map(|one| self.server(one)).collect()
    }

    pub(crate) fn master_of(&self, key: &str) -> usize {
        match self {
            Set::Replicas(_, master) => *master.lock().expect("no panics"),
            Set::Sentinel(set) => set.master(),
            Set::Cluster(set) => {
                let mut owner = None;
                wait_until("a node to have the slot", PATIENCE, || {
                    owner = set.owner_of_slot(slot_of(key));
                    owner.is_some()
                });
                owner.expect("it was there")
            }
        }
    }

    /// How many clients of the user are connected: sentinels and nodes are clients, too.
    pub(super) fn clients(&self) -> usize {
        let of = |member: &&Member| {
            let list: String = member.query(&["CLIENT", "LIST", "TYPE", "normal"]);
            let users = list.lines().filter(|line| line.contains(" user=app "));
            users.count()
        };
        self.members().iter().map(of).sum()
    }

    /// Has another server take the place of `old`, which agrees; `choice` says which, where there are several.
    pub(crate) fn replace(&self, old: usize, choice: usize) {
        match self {
            Set::Replicas(..) => self.lead(self.part(old, choice)),
            Set::Sentinel(set) => drop(set.failover()),
            Set::Cluster(set) => {
                // It may have just got one.
                wait_until("a master to have a replica", PATIENCE, || {
                    !set.replicas_of(old).is_empty()
                });
                set.failover(set.replicas_of(old)[0]);
            }
        }
    }

    /// Waits until another has the place of `old`, which is gone or stopped, and has this key.
    pub(crate) fn await_other(&self, old: usize, key: &str, choice: usize) {
        match self {
            Set::Replicas(..) => self.lead(self.part(old, choice)),
            Set::Sentinel(set) => drop(set.wait_for_other_master(old)),
            // One that is cut off goes on telling that it has all slots.
            Set::Cluster(set) => wait_until("another to have the slot", PATIENCE, || {
                let owner = set.owner_of_slot(slot_of(key));
                owner.is_some_and(|owner| owner != old)
            }),
        }
    }

    /// Cuts a server off from all others. Clients reach it as before.
    pub(crate) fn cut_off(&self, index: usize) {
        self.each_other(index, Member::cut_from);
    }

    /// Takes that back.
    pub(crate) fn join(&self, index: usize) {
        self.each_other(index, Member::join);
    }

    fn each_other(&self, index: usize, act: impl Fn(&Member, &Member)) {
        let members = self.members();
        let mut others = members.clone();
        others.remove(index);
        if let Set::Sentinel(set) = self {
            others.extend(set.sentinels());
        }
        others.iter().for_each(|other| act(members[index], other));
    }

    /// Parts a replica from `old`, of which it hears nothing any more; `choice` says which.
    pub(crate) fn part(&self, old: usize, choice: usize) -> usize {
        let Set::Replicas(set, _) = self else {
            return old;
        };
        let mut replicas: Vec<_> = (0..set.members().len()).collect();
        replicas.retain(|index| *index != old);
        let new = replicas[choice % replicas.len()];
        set.promote(new);
        new
    }

    /// Such a replica is the master from now on.
    pub(crate) fn lead(&self, new: usize) {
        if let Set::Replicas(set, master) = self {
            // Otherwise it would be a replica again when it starts anew.
            set.member(new).query::<()>(&["CONFIG", "REWRITE"]);
            *master.lock().expect("no panics") = new;
        }
    }

    /// One that was the master forgets what the new one doesn't know.
    pub(crate) fn rejoin(&self, old: usize) {
        if let Set::Replicas(set, _) = self {
            set.follow(old, self.master_of(""));
        }
    }

    /// Waits until all servers run and replicas have what their masters have.
    pub(super) fn mend(&self) {
        match self {
            Set::Cluster(set) => set.wait_until_ok(),
            Set::Replicas(..) | Set::Sentinel(_) => self.follow(),
        }
        wait_until("the replicas to confirm", PATIENCE, || {
            let masters = self.masters();
            let replicas = (self.members().len() - masters.len()) / masters.len();
            let confirmed = |one: &RedisServer| one.is_confirmed_by(replicas).unwrap_or(false);
            masters.into_iter().all(confirmed)
        });
    }

    /// Has all others follow the master. Sentinels would in some seconds, too.
    pub(crate) fn follow(&self) {
        wait_until("all to follow the master", PATIENCE, || {
            let master = self.master_of("");
            let port = self.members()[master].public_port().to_string();
            let mut others: Vec<_> = (0..self.members().len()).collect();
            others.retain(|index| *index != master);
            let follow = |index: &usize| follows(self.members()[*index], &port).unwrap_or(false);
            // Each is told, also when one doesn't yet.
            others.iter().filter(|index| !follow(index)).count() == 0
        });
    }
}

/// Whether a server follows the one with this port; if it follows another, it is told to.
fn follows(server: &RedisServer, port: &str) -> RedisResult<bool> {
    let info: String = server.try_query(&["INFO", "replication"])?;
    if info.contains(&format!("master_port:{port}\r")) {
        return Ok(info.contains("master_link_status:up"));
    }
    server.try_query::<()>(&["REPLICAOF", "127.0.0.1", port])?;
    Ok(false)
}
