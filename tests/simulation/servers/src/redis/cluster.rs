//! A cluster: three masters, each with a replica.

use std::time::Duration;

use crosslock_world::service::{Connection, Fault, Host, Io, Service};

use super::about::About;
use super::gossip::Gossip;
use super::group::{DATA_FAULTS, Group};
use super::moves::Move;
use super::node::Node;
use super::slots::Slots;

/// Masters, and then the replica of each, in this order.
#[derive(Debug)]
pub struct Cluster {
    group: Group,
    gossip: Gossip,
    /// The slot that is on its way, and how many are to move behind it.
    moving: Option<Move>,
    waiting: u8,
    /// When the nodes look at each other again. They don't while nothing is amiss.
    looks_at: Option<Duration>,
}

const LOOK: Duration = Duration::from_millis(100);

const FAULTS: [&str; 7] = {
    let [flush, script_flush, evict, full, lag] = DATA_FAULTS;
    [
        flush,
        script_flush,
        evict,
        full,
        lag,
        "failover",
        "move slot",
    ]
};

impl Cluster {
    /// Three masters, and a replica of each.
    pub fn new() -> Self {
        let at = |host: usize| (format!("10.0.0.{}", 1 + host), 6379);
        Cluster::at((0..6).map(at).collect())
    }

    /// At these addresses, the first half of which are those of masters.
    pub fn at(addresses: Vec<(String, u16)>) -> Self {
        let masters = addresses.len() / 2;
        let all = addresses
            .into_iter()
            .map(|address| About::new(address, "cluster"));
        let all: Vec<_> = all.collect();
        let peers = all
            .iter()
            .map(|about| (about.host.clone(), about.port, about.node_id()));
        let peers: Vec<_> = peers.collect();
        let nodes = all.into_iter().enumerate().map(|(host, about)| {
            let mut node = Node::new(about, None);
            node.keep_log();
            node.state.slots = Some(Slots::new(host, masters, peers.clone()));
            node
        });
        let mut group = Group::new(nodes.collect());
        (0..masters).for_each(|host| group.promote(host));
        (masters..peers.len()).for_each(|host| group.follow(host, host - masters));
        Cluster {
            gossip: Gossip::new(peers.len()),
            moving: None,
            waiting: 0,
            looks_at: None,
            group,
        }
    }

    fn begin(&mut self, io: &mut Io<'_>) {
        self.group.begin(io);
        let (group, gossip) = (&mut self.group, &mut self.gossip);
        if let Some(one) = &mut self.moving
            && !one.go_on(group, gossip, io)
        {
            self.moving = None;
        }
        if self.looks_at.is_some_and(|at| at <= io.now) {
            let is_amiss = gossip.look(group, io);
            if !is_amiss && self.moving.is_none() && self.waiting > 0 {
                // Who moves slots waits until all know of the last one.
                self.waiting -= 1;
                self.moving = Move::any(group, io);
            }
            let goes_on = is_amiss || self.moving.is_some() || self.waiting > 0;
            self.looks_at = goes_on.then_some(io.now + LOOK);
        }
    }

    /// Something happens: the nodes look at each other from now on.
    fn wake_up(&mut self, io: &Io<'_>) {
        if self.looks_at.is_none() {
            self.gossip.hear_all(io.now);
            self.looks_at = Some(io.now + LOOK);
        }
    }

    fn end(&mut self, io: &mut Io<'_>) {
        self.group.end(io);
        let due = self
            .moving
            .iter()
            .map(|one| one.due)
            .chain(self.looks_at)
            .min();
        if let Some(due) = due {
            io.wake_at(due);
        }
    }

    fn suffer_own(&mut self, io: &mut Io<'_>, at: Host, fault: &str) {
        match fault {
            "move slot" if self.moving.is_none() => self.moving = Move::any(&mut self.group, io),
            "move slot" => self.waiting = self.waiting.saturating_add(1),
            "failover" => {
                let follows = self.group.master_of(at);
                let replica = follows
                    .map(|_| at)
                    .or_else(|| self.group.followers(at).next());
                let replica = replica.filter(|replica| self.group.is_in_step(*replica));
                if let Some(replica) = replica {
                    self.gossip.take_over(&mut self.group, replica, io);
                }
            }
            fault => self.group.suffer_own(io, at, fault),
        }
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster::new()
    }
}

impl Service for Cluster {
    fn hosts(&self) -> usize {
        self.group.nodes.len()
    }

    fn connected(&mut self, io: &mut Io<'_>, at: Host, connection: Connection) {
        self.begin(io);
        self.group.nodes[at].connected(connection);
        self.end(io);
    }

    fn received(&mut self, io: &mut Io<'_>, at: Host, connection: Connection, bytes: &[u8]) {
        self.begin(io);
        self.group.nodes[at].received(connection, bytes);
        self.end(io);
    }

    fn closed(&mut self, io: &mut Io<'_>, at: Host, connection: Connection) {
        self.begin(io);
        self.group.nodes[at].closed(connection);
        self.end(io);
    }

    fn woken(&mut self, io: &mut Io<'_>) {
        self.begin(io);
        self.end(io);
    }

    fn fault(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        self.begin(io);
        self.wake_up(io);
        self.group.suffer(io, at, fault);
        match fault {
            Fault::Own(which) => {
                let fault = FAULTS.get(which).copied().unwrap_or_default();
                self.suffer_own(io, at, fault);
            }
            Fault::Start { .. } => self.gossip.begin_anew(at, &mut self.group, io.now, true),
            Fault::Resume => self.gossip.begin_anew(at, &mut self.group, io.now, false),
            _ => {}
        }
        self.end(io);
    }

    fn own_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    /// Of all that have slots now.
    fn contents(&self) -> Vec<String> {
        let has_slots = |node: &&Node| node.state.slots.as_ref().is_some_and(Slots::has_any);
        let masters = self.group.nodes.iter().filter(has_slots);
        masters.flat_map(Node::contents).collect()
    }
}
