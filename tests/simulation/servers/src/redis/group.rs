//! Several servers, of which some copy others, and what is on its way between them.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_world::service::{Fault, Host, Io};

use super::about::{Follower, Role};
use super::node::Node;

/// What happens to any server that has data: see [`super::Single`]; and that what goes to and from it stands still.
pub(super) const DATA_FAULTS: [&str; 5] = ["flush", "script flush", "evict", "full", "lag"];

#[derive(Debug)]
pub(super) struct Group {
    pub(super) nodes: Vec<Node>,
    hosts: Vec<HostState>,
    links: Vec<Link>,
    flights: BTreeMap<(Duration, u64), Flight>,
    /// How many there were, and how many lines of masters.
    count: u64,
    histories: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct HostState {
    is_down: bool,
    is_paused: bool,
    is_cut: bool,
    /// Until when replication from it and to it stands still.
    lags_until: Duration,
}

/// How a server copies another.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    to: Option<Host>,
    state: LinkState,
    /// Up to where it was sent what the other has.
    sent: u64,
    /// When that arrives.
    last: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinkState {
    #[default]
    Down,
    Copying,
    Up,
}

#[derive(Clone, Copy, Debug)]
enum Flight {
    /// All that a master has.
    Copy { from: Host, to: Host },
    /// What it has written, up to there.
    Records {
        from: Host,
        to: Host,
        history: u64,
        end: u64,
    },
    /// Up to where a copy has it.
    Ack {
        from: Host,
        to: Host,
        history: u64,
        end: u64,
    },
}

/// How long a message is on its way, and a copy of everything, in microseconds.
const USUAL: std::ops::Range<u64> = 50..3_000;
const WHOLE: std::ops::Range<u64> = 1_000..20_000;
/// How long a server lags by the fault of that name, in milliseconds.
const LAG: std::ops::Range<u64> = 300..4_000;

impl Group {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        Group {
            hosts: vec![HostState::default(); nodes.len()],
            links: vec![Link::default(); nodes.len()],
            nodes,
            flights: BTreeMap::new(),
            count: 0,
            histories: 1,
        }
    }

    pub(super) fn is_at_work(&self, host: Host) -> bool {
        !self.hosts[host].is_down && !self.hosts[host].is_paused
    }

    /// Whether one may send to the other.
    pub(super) fn reaches(&self, one: Host, other: Host) -> bool {
        let is_on = |host: Host| !self.hosts[host].is_down && !self.hosts[host].is_cut;
        one == other || is_on(one) && is_on(other)
    }

    /// Whether one hears of the other now.
    pub(super) fn hears(&self, one: Host, other: Host) -> bool {
        self.is_at_work(one) && self.is_at_work(other) && self.reaches(one, other)
    }

    pub(super) fn is_cut(&self, host: Host) -> bool {
        self.hosts[host].is_cut
    }

    /// Whether a copy has all that its master has, which can be told so.
    pub(super) fn is_in_step(&self, copy: Host) -> bool {
        let link = self.links[copy];
        link.to.is_some_and(|master| {
            let is_up = link.state == LinkState::Up && self.hears(master, copy);
            is_up && self.has(master) == self.has(copy)
        })
    }

    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |host: &HostState| !host.is_down && !host.is_paused && !host.is_cut;
        self.hosts.iter().all(is_sound)
    }

    /// Whom a server copies.
    pub(super) fn master_of(&self, host: Host) -> Option<Host> {
        self.links[host].to
    }

    pub(super) fn followers(&self, master: Host) -> impl Iterator<Item = Host> {
        let links = self.links.iter().enumerate();
        links.filter_map(move |(host, link)| (link.to == Some(master)).then_some(host))
    }

    /// By which of two copies has more: the newer line of masters, and how much of it.
    pub(super) fn has(&self, host: Host) -> (u64, u64) {
        let node = &self.nodes[host];
        (node.log.history, node.state.about.offset)
    }

    /// A server copies another from now on.
    pub(super) fn follow(&mut self, host: Host, master: Host) {
        let about = &self.nodes[master].state.about;
        let address = (about.host.clone(), about.port);
        self.nodes[host].follow(address);
        self.links[host] = Link {
            to: Some(master),
            ..Link::default()
        };
    }

    /// A server is a master from now on.
    pub(super) fn promote(&mut self, host: Host) {
        self.histories += 1;
        self.nodes[host].promote(self.histories);
        self.links[host] = Link::default();
    }

    /// Before anything happens.
    pub(super) fn begin(&mut self, io: &mut Io<'_>) {
        for (host, node) in self.nodes.iter_mut().enumerate() {
            node.set_time(io.now, io.wall(host));
        }
        while let Some(flight) = self.flights.first_entry()
            && flight.key().0 <= io.now
        {
            let flight = flight.remove();
            self.arrive(io, flight);
        }
    }

    /// After it has.
    pub(super) fn end(&mut self, io: &mut Io<'_>) {
        for host in 0..self.nodes.len() {
            if self.is_at_work(host) {
                let node = &mut self.nodes[host];
                node.state.keys.expire_all();
                node.commit();
                node.settle();
            }
        }
        (0..self.nodes.len()).for_each(|host| self.replicate(io, host));
        for host in 0..self.nodes.len() {
            self.tell_role(host);
            let is_at_work = self.is_at_work(host);
            let node = &mut self.nodes[host];
            io.done.append(&mut node.state.done);
            if let Some(time) = node.wakes_at().filter(|_| is_at_work) {
                io.wake_at(time);
            }
        }
        if let Some(((time, _), _)) = self.flights.first_key_value() {
            io.wake_at(*time);
        }
    }

    fn launch(&mut self, time: Duration, flight: Flight) {
        self.count += 1;
        self.flights.insert((time, self.count), flight);
    }

    /// When what is sent now arrives.
    fn arrival(
        &self,
        io: &mut Io<'_>,
        between: [Host; 2],
        micros: std::ops::Range<u64>,
    ) -> Duration {
        let usual = io.now + Duration::from_micros(io.random.u64(micros));
        let lags = between.map(|host| self.hosts[host].lags_until);
        usual.max(lags[0]).max(lags[1])
    }

    /// Sends what a copy hasn't been sent yet.
    fn replicate(&mut self, io: &mut Io<'_>, to: Host) {
        let link = self.links[to];
        let Some(from) = link.to else { return };
        if !self.reaches(from, to) {
            self.lose(to);
            return;
        }
        if !self.is_at_work(from) {
            return;
        }
        let (offset, history) = (
            self.nodes[from].state.about.offset,
            self.nodes[from].log.history,
        );
        if link.state == LinkState::Down && !self.nodes[from].state.keys.is_copy {
            self.links[to].state = LinkState::Copying;
            let time = self.arrival(io, [from, to], WHOLE);
            self.launch(time, Flight::Copy { from, to });
        } else if link.state == LinkState::Up && link.sent < offset {
            let time = self.arrival(io, [from, to], USUAL).max(link.last);
            (self.links[to].sent, self.links[to].last) = (offset, time);
            self.launch(
                time,
                Flight::Records {
                    from,
                    to,
                    history,
                    end: offset,
                },
            );
        }
    }

    /// The connection between a copy and its master is gone.
    fn lose(&mut self, to: Host) {
        self.links[to].state = LinkState::Down;
        if let Some(master) = self.links[to].to {
            self.nodes[master].acks.remove(&to);
        }
    }

    fn arrive(&mut self, io: &mut Io<'_>, flight: Flight) {
        let (Flight::Copy { from, to }
        | Flight::Records { from, to, .. }
        | Flight::Ack { from, to, .. }) = flight;
        if self.hosts[to].is_paused {
            self.launch(io.now + Duration::from_millis(20), flight);
            return;
        }
        if self.hosts[from].is_cut || self.hosts[to].is_cut || self.hosts[to].is_down {
            return;
        }
        let taken = match flight {
            Flight::Copy { .. } => self.copy(from, to),
            Flight::Records { history, end, .. } => self.copy_records([from, to], history, end),
            Flight::Ack { history, end, .. } => {
                let is_current = self.nodes[to].log.history == history;
                if is_current && self.is_linked(to, from, LinkState::Up) {
                    // They come in their order.
                    let known = self.nodes[to].acks.entry(from).or_default();
                    *known = end.max(*known);
                }
                None
            }
        };
        if let Some(end) = taken {
            let history = self.nodes[to].log.history;
            let time = self.arrival(io, [from, to], USUAL);
            let (from, to) = (to, from);
            self.launch(
                time,
                Flight::Ack {
                    from,
                    to,
                    history,
                    end,
                },
            );
        }
    }

    fn is_linked(&self, master: Host, copy: Host, state: LinkState) -> bool {
        let link = self.links[copy];
        link.to == Some(master) && link.state == state
    }

    /// Up to where the copy has it then.
    fn copy_records(&mut self, [from, to]: [Host; 2], history: u64, end: u64) -> Option<u64> {
        let is_current = self.nodes[to].log.history == history;
        if !is_current || !self.is_linked(from, to, LinkState::Up) {
            return None;
        }
        let have = self.nodes[to].state.about.offset;
        let Some(records) = self.nodes[from].records(have, end) else {
            self.lose(to);
            return None;
        };
        self.nodes[to].apply(&records);
        self.forget_records(from);
        Some(end)
    }

    /// The same of all that the master has.
    fn copy(&mut self, from: Host, to: Host) -> Option<u64> {
        if !self.is_linked(from, to, LinkState::Copying) {
            return None;
        }
        let [master, copy] = self
            .nodes
            .get_disjoint_mut([from, to])
            .expect("two servers");
        copy.copy_all(master);
        let end = copy.state.about.offset;
        let link = &mut self.links[to];
        (link.state, link.sent) = (LinkState::Up, end);
        Some(end)
    }

    fn forget_records(&mut self, master: Host) {
        let copies = self
            .followers(master)
            .filter(|copy| self.links[*copy].state == LinkState::Up);
        let least = copies.map(|copy| self.nodes[copy].state.about.offset).min();
        if let Some(least) = least {
            self.nodes[master].forget_records(least);
        }
    }

    /// Has a server know what ROLE and INFO tell of its copies, or of its master.
    fn tell_role(&mut self, host: Host) {
        let link = self.links[host];
        let acks = &self.nodes[host].acks;
        let all = acks.iter().map(|(copy, offset)| {
            let about = &self.nodes[*copy].state.about;
            let (host, port) = (about.host.clone(), about.port);
            Follower {
                host,
                port,
                offset: *offset,
                lag: 0,
            }
        });
        let all = all.collect();
        match &mut self.nodes[host].state.about.role {
            Role::Master { replicas } => *replicas = all,
            Role::Replica { is_linked, .. } => *is_linked = link.state == LinkState::Up,
        }
    }

    /// What happens to a process, whatever it does.
    pub(super) fn suffer(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        let host = &mut self.hosts[at];
        match fault {
            Fault::Kill => {
                (host.is_down, host.is_paused) = (true, false);
                self.nodes[at].lose_clients();
                let copies: Vec<_> = self.followers(at).chain([at]).collect();
                copies.into_iter().for_each(|copy| self.lose(copy));
            }
            Fault::Start { with_data } => {
                host.is_down = false;
                let history = self.nodes[at].log.history;
                self.nodes[at].restart(with_data);
                self.histories += 1;
                let is_copy = self.nodes[at].state.keys.is_copy;
                self.nodes[at].log.history = if is_copy { history } else { self.histories };
                self.nodes[at].set_time(io.now, io.wall(at));
            }
            Fault::Pause => host.is_paused = true,
            Fault::Resume => host.is_paused = false,
            Fault::Cut => host.is_cut = true,
            Fault::Heal => host.is_cut = false,
            Fault::StepClock { .. } | Fault::Own(_) => {}
        }
    }

    /// One of [`DATA_FAULTS`], of a server that is at work.
    pub(super) fn suffer_own(&mut self, io: &mut Io<'_>, at: Host, fault: &str) {
        if fault == "lag" {
            let lag = Duration::from_millis(io.random.u64(LAG));
            self.hosts[at].lags_until = io.now + lag;
        } else if self.is_at_work(at) && !self.nodes[at].state.keys.is_copy {
            self.nodes[at].suffer(fault, io.random);
        }
    }
}
