//! A master, its replicas, and three sentinels, which have a replica take its place when most of them miss it.

use std::time::Duration;

use crosslock_world::service::{Connection, Fault, Host, Io, Service};

use super::about::About;
use super::group::{DATA_FAULTS, Group};
use super::node::Node;
use super::watch::Watch;

/// A master, its replicas and three sentinels, in this order.
#[derive(Debug)]
pub struct Sentinels {
    group: Group,
    watch: Watch,
    /// How many have data.
    members: usize,
    /// When the sentinels look again. They don't while nothing is amiss.
    looks_at: Option<Duration>,
}

/// By which the sentinels know the master.
const NAME: &str = "mymaster";
const SENTINELS: usize = 3;
const LOOK: Duration = Duration::from_millis(100);

const FAULTS: [&str; 6] = {
    let [flush, script_flush, evict, full, lag] = DATA_FAULTS;
    [flush, script_flush, evict, full, lag, "failover"]
};

impl Sentinels {
    /// With so many replicas, at addresses that nobody else has.
    pub fn new(replicas: usize) -> Self {
        let at = |host: usize| {
            let port = if host <= replicas { 6379 } else { 26379 };
            (format!("10.0.0.{}", 1 + host), port)
        };
        Sentinels::at((0..replicas + 1 + SENTINELS).map(at).collect())
    }

    /// At these addresses: the last three are those of the sentinels.
    pub fn at(addresses: Vec<(String, u16)>) -> Self {
        let members = addresses.len().saturating_sub(SENTINELS);
        let nodes = addresses.into_iter().enumerate().map(|(host, address)| {
            let mode = if host < members {
                "standalone"
            } else {
                "sentinel"
            };
            let mut node = Node::new(About::new(address, mode), None);
            if host < members {
                node.keep_log();
            }
            node
        });
        let mut group = Group::new(nodes.collect());
        group.promote(0);
        (1..members).for_each(|host| group.follow(host, 0));
        let watch = Watch::new(members, SENTINELS);
        let mut set = Sentinels {
            group,
            watch,
            members,
            looks_at: Some(Duration::ZERO),
        };
        set.tell_sentinels();
        set
    }

    /// By which name the sentinels know the master.
    pub fn name(&self) -> &'static str {
        NAME
    }

    fn begin(&mut self, io: &mut Io<'_>) {
        self.group.begin(io);
        if self.looks_at.is_some_and(|at| at <= io.now) {
            let is_amiss = self.watch.look(&mut self.group, io);
            self.looks_at = is_amiss.then_some(io.now + LOOK);
            self.tell_sentinels();
        }
    }

    fn end(&mut self, io: &mut Io<'_>) {
        self.group.end(io);
        if let Some(at) = self.looks_at {
            io.wake_at(at);
        }
    }

    /// Has each sentinel answer by what it knows.
    fn tell_sentinels(&mut self) {
        let addresses = self.group.nodes.iter().map(|node| {
            let about = &node.state.about;
            (about.host.clone(), about.port)
        });
        let addresses: Vec<_> = addresses.collect();
        for sentinel in self.members..addresses.len() {
            let watched = self.watch.told(sentinel, NAME, &addresses);
            self.group.nodes[sentinel].state.watched = Some(watched);
        }
    }
}

impl Service for Sentinels {
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
        if self.looks_at.is_none() {
            // All heard of each other until now.
            self.watch.hear_all(io.now);
            self.looks_at = Some(io.now + LOOK);
        }
        self.group.suffer(io, at, fault);
        match fault {
            Fault::Own(which) => match FAULTS.get(which) {
                Some(&"failover") => self.watch.fail_over_by_hand(&mut self.group, io),
                Some(fault) if at < self.members => self.group.suffer_own(io, at, fault),
                _ => {}
            },
            Fault::Start { .. } | Fault::Resume if at >= self.members => {
                self.watch.begin_anew(at, io.now);
            }
            _ => {}
        }
        self.tell_sentinels();
        self.end(io);
    }

    fn own_faults(&self) -> &'static [&'static str] {
        &FAULTS
    }

    /// That of the master that the newest sentinel names.
    fn contents(&self) -> Vec<String> {
        self.group.nodes[self.watch.newest_master()].contents()
    }
}
