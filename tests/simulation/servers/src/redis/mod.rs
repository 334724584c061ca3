//! Redis: the scripts of `lua/` run as they are, by the Lua that Redis has, on keys that are kept here.
//!
//! It has the commands that the scripts and the library use, with the options that they use, and refuses all else. A
//! client speaks the second version of the protocol. Errors have Redis's codes; their words are its own where the
//! library looks at them.

mod channels;
mod connection;
mod gossip;
mod group;
mod keyspace;
mod lists;
mod moves;
mod node;
mod numbers;
mod reply;
mod scripts;
mod slots;
mod sorted;
mod state;
mod table;
mod texts;
mod watch;

use std::time::Duration;

use crosslock_world::service::{Connection, Fault, Host, Io, Service};

use self::gossip::Gossip;
use self::group::Group;
use self::node::Node;
use self::scripts::Scripts;
use self::slots::{Map, Slots};
use self::state::Address;
use self::watch::Watch;

/// One server; or several of which some copy others, and who replaces a master that fails.
pub struct Redis {
    group: Group,
    over: Over,
    /// When those who replace masters look at them again. They don't while nothing is amiss.
    looks_at: Option<Duration>,
}

/// Who replaces masters.
enum Over {
    Nobody,
    Sentinels(Watch),
    Nodes(Gossip),
}

const SENTINELS: usize = 3;
const LOOK: Duration = Duration::from_millis(100);

/// What happens to the data of a server; what goes to and from it stands still; and what else happens to several.
const FAULTS: [&str; 9] = [
    "flush",
    "script flush",
    "evict",
    "lose queues",
    "full",
    "lag",
    "failover",
    "move slot",
    "odds",
];

impl Redis {
    /// One server, which keeps what it has written when it is started again with its data.
    pub fn single() -> Self {
        let node = Node::new(address(0, 6379), "standalone", Scripts::new());
        Redis::with(Group::new(vec![node]), Over::Nobody)
    }

    /// So many servers that know nothing of each other.
    pub fn independent(servers: usize) -> Self {
        let scripts = Scripts::new();
        let node = |host| Node::new(address(host, 6379), "standalone", scripts.of_another());
        Redis::with(Group::new((0..servers).map(node).collect()), Over::Nobody)
    }

    /// A master, so many replicas, and three sentinels behind them.
    pub fn sentinels(replicas: usize) -> Self {
        let (members, scripts) = (replicas + 1, Scripts::new());
        let node = |host| match host < members {
            true => Node::new(address(host, 6379), "standalone", scripts.of_another()).with_log(),
            false => Node::new(address(host, 26379), "sentinel", scripts.of_another()),
        };
        let nodes = (0..members + SENTINELS).map(node).collect();
        let mut group = Group::new(nodes);
        group.promote(0);
        (1..members).for_each(|host| group.follow(host, 0));
        let watch = Watch::new(members, SENTINELS);
        watch.tell(&mut group);
        Redis::with(group, Over::Sentinels(watch))
    }

    /// Three masters, and behind them a replica of each.
    pub fn cluster() -> Self {
        const MASTERS: usize = 3;
        let (map, scripts) = (Map::new(MASTERS), Scripts::new());
        let node = |host| {
            let scripts = scripts.of_another();
            let mut node = Node::new(address(host, 6379), "cluster", scripts).with_log();
            node.state.slots = Some(Slots::new(host, map.clone()));
            node
        };
        let mut group = Group::new((0..2 * MASTERS).map(node).collect());
        (0..MASTERS).for_each(|host| group.promote(host));
        (0..MASTERS).for_each(|host| group.follow(MASTERS + host, host));
        Redis::with(group, Over::Nodes(Gossip::new(map)))
    }

    fn with(group: Group, over: Over) -> Self {
        let looks_at = None;
        Redis {
            group,
            over,
            looks_at,
        }
    }

    /// Does what is due, then `what`, and says when there is more to do.
    fn during(&mut self, io: &mut Io<'_>, what: impl FnOnce(&mut Self, &mut Io<'_>)) {
        self.group.begin(io);
        if let Over::Nodes(gossip) = &mut self.over {
            gossip.go_on(&mut self.group, io);
        }
        if self.looks_at.is_some_and(|at| at <= io.now) {
            let is_amiss = match &mut self.over {
                Over::Nobody => false,
                Over::Sentinels(watch) => {
                    let is_amiss = watch.look(&mut self.group, io);
                    watch.tell(&mut self.group);
                    is_amiss
                }
                Over::Nodes(gossip) => gossip.look(&mut self.group, io),
            };
            self.looks_at = is_amiss.then_some(io.now + LOOK);
        }
        what(self, io);
        self.group.end(io);
        let goes_on_at = match &self.over {
            Over::Nodes(gossip) => gossip.goes_on_at(),
            _ => None,
        };
        goes_on_at
            .into_iter()
            .chain(self.looks_at)
            .for_each(|at| io.wake_at(at));
    }

    fn suffer_own(&mut self, io: &mut Io<'_>, at: Host, fault: &str) {
        match (&mut self.over, fault) {
            (Over::Sentinels(watch), "failover") => {
                watch.fail_over_by_hand(&mut self.group, io);
                watch.tell(&mut self.group);
            }
            (Over::Nodes(gossip), "failover") => gossip.fail_over_by_hand(&mut self.group, at, io),
            (Over::Nodes(gossip), "move slot") => gossip.move_slot(&mut self.group, io),
            (Over::Nodes(gossip), "odds") => gossip.set_at_odds(&mut self.group, io),
            (Over::Sentinels(watch), _) if at >= watch.members => {}
            (_, fault) => self.group.suffer_own(io, at, fault),
        }
    }
}

/// One that nobody else has.
fn address(host: Host, port: u16) -> Address {
    (format!("10.0.0.{}", 1 + host), port)
}

impl Service for Redis {
    fn hosts(&self) -> usize {
        self.group.nodes.len()
    }

    fn connected(&mut self, io: &mut Io<'_>, at: Host, connection: Connection) {
        self.during(io, |all, _| all.group.nodes[at].connected(connection));
    }

    fn received(&mut self, io: &mut Io<'_>, at: Host, connection: Connection, bytes: &[u8]) {
        self.during(io, |all, _| {
            all.group.nodes[at].received(connection, bytes);
        });
    }

    fn closed(&mut self, io: &mut Io<'_>, at: Host, connection: Connection) {
        self.during(io, |all, _| all.group.nodes[at].closed(connection));
    }

    fn woken(&mut self, io: &mut Io<'_>) {
        self.during(io, |_, _| {});
    }

    fn fault(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        self.during(io, |all, io| {
            if all.looks_at.is_none() {
                all.group.hear_all(io.now);
                all.looks_at = Some(io.now + LOOK);
            }
            all.group.suffer(io, at, fault);
            match (fault, &mut all.over) {
                (Fault::Own(which), _) => {
                    let fault = all.own_faults().get(which).copied();
                    all.suffer_own(io, at, fault.unwrap_or_default());
                }
                (Fault::Start { .. } | Fault::Resume, Over::Sentinels(watch)) => {
                    watch.begin_anew(at);
                }
                (Fault::Start { .. } | Fault::Resume, Over::Nodes(gossip)) => {
                    gossip.begin_anew(at, &mut all.group, io.now, fault != Fault::Resume);
                }
                _ => {}
            }
        });
    }

    fn own_faults(&self) -> &'static [&'static str] {
        match self.over {
            Over::Nobody => &FAULTS[..5],
            Over::Sentinels(_) => &FAULTS[..7],
            Over::Nodes(_) => &FAULTS,
        }
    }

    fn contents_of(&self, host: Host) -> Vec<String> {
        self.group.nodes[host].contents()
    }

    /// Of the master that the newest sentinel names, or of all that have slots.
    fn contents(&self) -> Vec<String> {
        let is_master = |host: Host| match &self.over {
            Over::Nobody => true,
            Over::Sentinels(watch) => watch.newest_master() == host,
            Over::Nodes(gossip) => gossip.newest.has_any(host),
        };
        let masters = (0..self.hosts()).filter(|host| is_master(*host));
        let contents = masters.flat_map(|host| self.group.nodes[host].contents());
        contents.collect()
    }
}
