//! Several servers, of which some copy others, and what is on its way between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crosslock_world::service::{Fault, Host, Io};

use super::node::{Node, Record};
use super::state::Address;
use crate::health::Health;

pub(super) struct Group {
    pub(super) nodes: Vec<Node>,
    hosts: Vec<Health>,
    /// When each heard of each other last.
    heard: Vec<Vec<Duration>>,
    /// Until when replication from each and to it stands still.
    lag_until: Vec<Duration>,
    links: Vec<Link>,
    flights: BTreeMap<(Duration, u64), Flight>,
    /// What has come to each while it stands still, in its order.
    unread: Vec<Vec<Flight>>,
    /// The number that was given out last: to a flight, a link, or a line of masters.
    count: u64,
}

/// How a server copies another.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    to: Option<Host>,
    /// Another one has another. 0: there is no connection.
    number: u64,
    /// Whether it has been sent all that there was.
    is_up: bool,
    /// When that arrives which was sent last.
    last: Duration,
}

/// What is on its way by the link of a copy, and what the sender has then.
#[derive(Clone)]
struct Flight {
    copy: Host,
    link: u64,
    cargo: Cargo,
    end: u64,
}

#[derive(Clone)]
enum Cargo {
    All,
    Record(Arc<Record>),
    /// The copy has it.
    Ack,
}

/// How long a host isn't heard of that is missed.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a message is on its way, and a copy of everything, in microseconds.
const USUAL: Range<u64> = 50..3_000;
const WHOLE: Range<u64> = 1_000..20_000;
/// How long a server lags by the fault of that name, in milliseconds.
const LAG: Range<u64> = 300..4_000;

impl Group {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        Group {
            hosts: vec![Health::default(); nodes.len()],
            heard: vec![vec![Duration::ZERO; nodes.len()]; nodes.len()],
            lag_until: vec![Duration::ZERO; nodes.len()],
            links: vec![Link::default(); nodes.len()],
            unread: vec![Vec::new(); nodes.len()],
            nodes,
            flights: BTreeMap::new(),
            count: 0,
        }
    }

    pub(super) fn is_at_work(&self, host: Host) -> bool {
        self.hosts[host].is_at_work()
    }

    /// Whether one may send to the other.
    fn reaches(&self, one: Host, other: Host) -> bool {
        one == other || self.hosts[one].is_linked() && self.hosts[other].is_linked()
    }

    /// Whether one hears of the other now.
    pub(super) fn hears(&self, one: Host, other: Host) -> bool {
        self.is_at_work(one) && self.is_at_work(other) && self.reaches(one, other)
    }

    /// All have heard of each other until now.
    pub(super) fn hear_all(&mut self, now: Duration) {
        self.heard.iter_mut().for_each(|all| all.fill(now));
    }

    /// One hears of all others that it reaches.
    pub(super) fn listen(&mut self, host: Host, now: Duration) {
        for other in 0..self.nodes.len() {
            if self.hears(host, other) {
                self.heard[host][other] = now;
            }
        }
    }

    pub(super) fn misses(&self, host: Host, other: Host, now: Duration) -> bool {
        now.saturating_sub(self.heard[host][other]) > TIMEOUT
    }

    pub(super) fn address(&self, host: Host) -> Address {
        self.nodes[host].state.address.clone()
    }

    /// Whether it is at work, and others hear of it.
    pub(super) fn is_there(&self, host: Host) -> bool {
        self.hosts[host].is_there()
    }

    /// Whether a copy has all that its master has, which can be told so.
    pub(super) fn is_in_step(&self, copy: Host) -> bool {
        let link = self.links[copy];
        let master = link.to.filter(|master| self.hears(*master, copy));
        master.is_some_and(|master| link.is_up && self.has(master) == self.has(copy))
    }

    /// Whether a master has copies, and all of them have what it has, and get at once what it writes.
    pub(super) fn copies_are_in_step(&self, master: Host, now: Duration) -> bool {
        let lags = |host: Host| self.lag_until[host] > now;
        // Who has none may be one whose former master doesn't know yet that it is a copy.
        let mut copies = self.followers(master).peekable();
        let has_copies = copies.peek().is_some();
        has_copies && !lags(master) && copies.all(|copy| self.is_in_step(copy) && !lags(copy))
    }

    /// Copies that were in step get what their master has just written.
    pub(super) fn copy_at_once(&mut self, master: Host) {
        let records = std::mem::take(&mut self.nodes[master].records);
        for copy in self.followers(master) {
            records
                .iter()
                .for_each(|record| self.nodes[copy].apply(record));
            let end = self.nodes[copy].state.offset;
            self.nodes[master].acks.insert(copy, end);
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.hosts.iter().all(|host| host.is_there())
    }

    /// Whom a server copies.
    pub(super) fn master_of(&self, host: Host) -> Option<Host> {
        self.links[host].to
    }

    pub(super) fn followers(&self, master: Host) -> impl Iterator<Item = Host> + use<> {
        let links = self.links.clone().into_iter().enumerate();
        links.filter_map(move |(host, link)| (link.to == Some(master)).then_some(host))
    }

    /// By which of two copies has more: the newer line of masters, and how much of it.
    pub(super) fn has(&self, host: Host) -> (u64, u64) {
        (self.nodes[host].history, self.nodes[host].state.offset)
    }

    /// A server copies another from now on.
    pub(super) fn follow(&mut self, host: Host, master: Host) {
        let address = self.address(master);
        self.nodes[host].follow(address);
        self.followers(host).for_each(|copy| self.lose(copy));
        self.links[host] = Link {
            to: Some(master),
            ..Link::default()
        };
    }

    /// A server is a master from now on.
    pub(super) fn promote(&mut self, host: Host) {
        self.lose(host);
        let history = self.number();
        self.nodes[host].promote(history);
        self.links[host] = Link::default();
    }

    fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
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
            let is_at_work = self.is_at_work(host);
            let node = &mut self.nodes[host];
            node.records.clear();
            io.done.append(&mut node.state.done);
            if let Some(time) = node.wakes_at().filter(|_| is_at_work) {
                io.wake_at(time);
            }
        }
        if let Some(((time, _), _)) = self.flights.first_key_value() {
            io.wake_at(*time);
        }
    }

    /// Sends it to a copy, or from one to its master, as late as usual, behind what was sent before.
    fn launch(&mut self, io: &mut Io<'_>, copy: Host, cargo: Cargo, end: u64, micros: Range<u64>) {
        let link = self.links[copy];
        let master = link.to.unwrap_or(copy);
        let usual = io.now + Duration::from_micros(io.random.u64(micros));
        let lags = [copy, master].map(|host| self.lag_until[host]);
        let mut time = usual.max(lags[0]).max(lags[1]);
        if !matches!(cargo, Cargo::Ack) {
            time = time.max(link.last);
            self.links[copy].last = time;
        }
        let (number, link) = (self.number(), link.number);
        let flight = Flight {
            copy,
            link,
            cargo,
            end,
        };
        self.flights.insert((time, number), flight);
    }

    /// Sends to a copy what its master has written now; all of it, if they have just found each other.
    fn replicate(&mut self, io: &mut Io<'_>, to: Host) {
        let link = self.links[to];
        let Some(from) = link.to else { return };
        if !self.reaches(from, to) {
            self.lose(to);
        } else if self.is_at_work(from) && link.number == 0 && !self.nodes[from].state.keys.is_copy
        {
            self.links[to].number = self.number();
            self.launch(io, to, Cargo::All, 0, WHOLE);
        } else if link.is_up {
            let records = self.nodes[from].records.clone();
            let first = self.nodes[from].state.offset - records.len() as u64;
            for (end, record) in (first + 1..).zip(records) {
                self.launch(io, to, Cargo::Record(record), end, USUAL);
            }
        }
    }

    /// The connection between a copy and its master is gone.
    fn lose(&mut self, copy: Host) {
        if let Some(master) = self.links[copy].to {
            self.nodes[master].acks.remove(&copy);
        }
        (self.links[copy].number, self.links[copy].is_up) = (0, false);
    }

    fn arrive(&mut self, io: &mut Io<'_>, flight: Flight) {
        let (copy, Link { to, number, .. }) = (flight.copy, self.links[flight.copy]);
        let Some(master) = to.filter(|_| number == flight.link) else {
            return;
        };
        let is_ack = matches!(flight.cargo, Cargo::Ack);
        let target = if is_ack { master } else { copy };
        if self.hosts[target].is_paused {
            self.unread[target].push(flight);
            return;
        }
        if self.hosts[master].is_cut || self.hosts[copy].is_cut || self.hosts[target].is_down {
            self.lose(copy);
            return;
        }
        match flight.cargo {
            Cargo::Ack => {
                // They may overtake each other.
                let known = self.nodes[master].acks.entry(copy).or_default();
                *known = flight.end.max(*known);
                return;
            }
            Cargo::All => {
                let both = self.nodes.get_disjoint_mut([master, copy]);
                let [master, copied] = both.expect("two servers");
                copied.copy_all(master);
                self.links[copy].is_up = true;
            }
            Cargo::Record(record) => self.nodes[copy].apply(&record),
        }
        let end = self.nodes[copy].state.offset;
        self.launch(io, copy, Cargo::Ack, end, USUAL);
    }

    /// What happens to a process, whatever it does.
    pub(super) fn suffer(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        self.hosts[at].suffer(fault);
        if matches!(fault, Fault::Start { .. } | Fault::Resume) {
            // It has missed nobody yet.
            self.heard[at].fill(io.now);
        }
        match fault {
            Fault::Kill => {
                self.unread[at].clear();
                self.nodes[at].lose_clients();
                let copies = self.followers(at).chain([at]);
                copies.for_each(|copy| self.lose(copy));
            }
            Fault::Resume => {
                for flight in std::mem::take(&mut self.unread[at]) {
                    self.arrive(io, flight);
                }
            }
            Fault::Start { with_data } => {
                let history = self.number();
                self.nodes[at].restart(with_data, history);
                self.nodes[at].set_time(io.now, io.wall(at));
            }
            _ => {}
        }
    }

    /// What happens to the data of a server that is at work, or to what goes to and from it.
    pub(super) fn suffer_own(&mut self, io: &mut Io<'_>, at: Host, fault: &str) {
        if fault == "lag" {
            let lag = Duration::from_millis(io.random.u64(LAG));
            self.lag_until[at] = io.now + lag;
            return;
        }
        // What a master lacks for a while comes back though it is a replica then.
        let is_its = fault == "full" || !self.nodes[at].state.keys.is_copy;
        if is_its && self.is_at_work(at) {
            self.nodes[at].suffer(fault, io.random);
        }
    }
}
