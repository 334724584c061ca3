//! A cluster: three masters, each with a replica, and the nodes that join them.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::PATIENCE;
use super::member::Member;
use super::nodes::{Line, myself, seen_by};
use super::setup::{Setup, hosts};
use super::slots::slot_of;
use crate::{eventually, wait_until};

const SLOTS: [RangeInclusive<u16>; 3] = [0..=5_460, 5_461..=10_922, 10_923..=16_383];

/// A cluster whose nodes 0, 1 and 2 were started as masters, with 3, 4 and 5 as their replicas; dropping it kills all.
#[derive(Debug)]
pub struct Cluster {
    setup: Setup,
    nodes: Vec<Member>,
}

impl Cluster {
    pub fn start() -> Self {
        Setup::new().cluster()
    }

    pub(super) fn start_with(setup: Setup) -> Self {
        let nodes = (0..2 * SLOTS.len()).map(|index| setup.node(index));
        let nodes = nodes.collect();
        let cluster = Self { setup, nodes };
        cluster.introduce();
        for index in 0..SLOTS.len() {
            cluster.replicate(index + SLOTS.len(), index);
        }
        cluster.wait_until_ok();
        cluster
    }

    pub fn node(&self, index: usize) -> &Member {
        &self.nodes[index]
    }

    pub fn nodes(&self) -> Vec<usize> {
        (0..self.nodes.len()).collect()
    }

    pub fn url(&self) -> String {
        let (scheme, hosts) = (self.setup.scheme("+cluster"), self.hosts());
        let parameters = self.setup.parameters(&self.nodes[0]);
        format!("{scheme}{hosts}{parameters}")
    }

    pub fn hosts(&self) -> String {
        hosts(&self.nodes[..2 * SLOTS.len()])
    }

    pub fn id(&self, index: usize) -> String {
        self.nodes[index].query(&["CLUSTER", "MYID"])
    }

    /// Returns the nodes that run and take themselves for masters, those without slots included.
    pub fn masters(&self) -> Vec<usize> {
        let mut masters = self.running();
        masters.retain(|index| self.is_master(*index));
        masters
    }

    pub fn is_master(&self, index: usize) -> bool {
        myself(&self.nodes[index]).is_some_and(|line| line.is_master())
    }

    /// Returns the node that runs and takes `slot` for its own; the one with the highest epoch, if there are several.
    pub fn owner_of_slot(&self, slot: u16) -> Option<usize> {
        let claim = |index: usize| {
            let line = myself(&self.nodes[index])?;
            (line.is_master() && line.has_slot(slot)).then_some((line.epoch, index))
        };
        let newest = self.running().into_iter().filter_map(claim).max();
        newest.map(|(_, index)| index)
    }

    /// Returns the node that has the slot of `key`; see [`Cluster::owner_of_slot`].
    #[track_caller]
    pub fn owner(&self, key: &str) -> usize {
        let owner = self.owner_of_slot(slot_of(key));
        owner.expect("a node has the slot")
    }

    pub fn slots(&self, index: usize) -> Vec<u16> {
        let line = myself(&self.nodes[index]);
        let ranges = line.map(|line| line.slots).unwrap_or_default();
        ranges.into_iter().flatten().collect()
    }

    /// Has `replica` take over from its master, which agrees (`CLUSTER FAILOVER`), and waits until both know.
    #[track_caller]
    pub fn failover(&self, replica: usize) {
        // Servers give up after 5 s.
        const AGAIN: Duration = Duration::from_secs(6);
        let (node, old) = (&self.nodes[replica], self.known_master_of(replica));
        let mut asked: Option<Instant> = None;
        wait_until("the replica to be a master", PATIENCE, || {
            if asked.is_none_or(|asked| asked.elapsed() > AGAIN) {
                // The replica refuses while it isn't connected to its master.
                let begun = node.try_query::<()>(&["CLUSTER", "FAILOVER"]);
                asked = begun.is_ok().then(Instant::now);
            }
            self.is_master(replica) && !self.is_master(old)
        });
    }

    /// Returns the master that `replica` follows, once that master has heard of it: until then it ignores what the
    /// replica asks of it.
    #[track_caller]
    fn known_master_of(&self, replica: usize) -> usize {
        let replica = myself(&self.nodes[replica]).expect("the replica answers");
        let mut running = self.running().into_iter();
        let master = running.find(|index| self.id(*index) == replica.master);
        let master = master.expect("the replica has a master");
        let follows = |line: &Line| line.id == replica.id && line.master == replica.master;
        wait_until("the master to know its replica", PATIENCE, || {
            let seen = seen_by(&self.nodes[master]);
            seen.is_some_and(|lines| lines.iter().any(follows))
        });
        master
    }

    /// Waits until the slots of `key` are with another node than `old`, which all that run agree on; returns it.
    #[track_caller]
    pub fn wait_for_other_owner(&self, key: &str, old: usize) -> usize {
        let mut new = None;
        wait_until("another node to have the slot", PATIENCE, || {
            new = self.owner_of_slot(slot_of(key)).filter(|new| *new != old);
            new.is_some()
        });
        let new = new.expect("it was there");
        let id = self.id(new);
        wait_until("all nodes to know who has the slot", PATIENCE, || {
            self.all_see(|lines| {
                lines
                    .iter()
                    .any(|line| line.id == id && line.has_slot(slot_of(key)))
            })
        });
        new
    }

    #[track_caller]
    pub fn replicate(&self, index: usize, master: usize) {
        let id = self.id(master);
        wait_until("a node to follow another", PATIENCE, || {
            self.nodes[index]
                .try_query::<()>(&["CLUSTER", "REPLICATE", &id])
                .is_ok()
        });
    }

    /// Waits until all nodes that run agree on who has which slot, take commands, and have no slot on its way, and
    /// until the replicas are linked to their masters.
    #[track_caller]
    pub fn wait_until_ok(&self) {
        let done = eventually(PATIENCE, || {
            self.agree() && self.running().into_iter().all(|index| self.is_ok(index))
        });
        assert!(done, "the cluster doesn't come to agree:\n{}", self.story());
    }

    pub(super) fn running(&self) -> Vec<usize> {
        let mut running = self.nodes();
        running.retain(|index| self.nodes[*index].is_running());
        running
    }

    fn introduce(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            // Otherwise they would all begin with the same, and quarrel.
            let epoch = (index + 1).to_string();
            node.query::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
        }
        for (node, slots) in self.nodes.iter().zip(&SLOTS) {
            let (first, last) = (slots.start().to_string(), slots.end().to_string());
            node.query::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            self.nodes[..index]
                .iter()
                .for_each(|other| meet(node, other));
        }
        self.wait_until_known();
    }

    fn wait_until_known(&self) {
        let count = self.running().len();
        let done = eventually(PATIENCE, || {
            self.all_see(|lines| lines.iter().filter(|line| line.is_good()).count() >= count)
        });
        assert!(
            done,
            "the nodes don't come to know each other:\n{}",
            self.story()
        );
    }

    fn all_see(&self, such: impl Fn(&[Line]) -> bool) -> bool {
        self.running()
            .into_iter()
            .all(|index| seen_by(&self.nodes[index]).is_some_and(|lines| such(&lines)))
    }

    /// Whether all nodes that run know the same owners of slots, and nothing is on its way.
    fn agree(&self) -> bool {
        let owners = |index: &usize| {
            let lines = seen_by(&self.nodes[*index])?;
            let open = lines.iter().any(|line| line.open > 0);
            let slots = lines.into_iter().filter(|line| !line.slots.is_empty());
            let mut slots: Vec<_> = slots.map(|line| (line.id, line.slots)).collect();
            slots.sort_by(|one, other| one.0.cmp(&other.0));
            (!open).then_some(slots)
        };
        let views: Option<Vec<_>> = self.running().iter().map(owners).collect();
        views.is_some_and(|views| views.windows(2).all(|pair| pair[0] == pair[1]))
    }

    fn is_ok(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        let state = node.try_query::<String>(&["CLUSTER", "INFO"]);
        let up = node.try_query::<String>(&["INFO", "replication"]);
        let linked =
            |info: String| info.contains("role:master") || info.contains("master_link_status:up");
        state.is_ok_and(|state| state.contains("cluster_state:ok")) && up.is_ok_and(linked)
    }

    fn story(&self) -> String {
        let tell = |index: &usize| {
            let nodes = self.nodes[*index].try_query(&["CLUSTER", "NODES"]);
            let info = self.nodes[*index].try_query(&["CLUSTER", "INFO"]);
            let (nodes, info): (String, String) =
                (nodes.unwrap_or_default(), info.unwrap_or_default());
            format!("node {index}:\n{nodes}{}", &info[..info.len().min(200)])
        };
        self.running()
            .iter()
            .map(tell)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

fn meet(node: &Member, other: &Member) {
    let (port, bus) = (other.public_port(), other.bus_port());
    let (port, bus) = (port.to_string(), bus.to_string());
    node.query::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
}
