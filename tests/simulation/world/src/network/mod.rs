//! The network: connections of clients to hosts of services, and what happens to them on the way.
//!
//! A connection keeps the order of what is sent each way, as TCP does, and chance decides how long each piece takes. On
//! a way that is cut everything waits until the cut heals, as TCP would send it again. A way that is silent loses
//! everything, and nobody is told.

mod faults;
mod hosts;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use fastrand::Rng;

use crate::events::{Event, Nanos};
use crate::machine::Machine;
use crate::scheduler::{Inside, with};
use crate::service::{Connection, Host, Service};

pub use faults::{
    Message, add_message_fault, await_message, cut, fault, heal, messages, set_message_fault,
    set_piece, slow,
};
use hosts::Served;
pub use hosts::{contents, contents_of, lasting};

/// A host of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub service: usize,
    pub host: Host,
}

/// Which ways between a machine and a host are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub to_host: bool,
    pub to_client: bool,
}

pub(crate) struct Network {
    random: Rng,
    served: Vec<Served>,
    addresses: BTreeMap<SocketAddr, Place>,
    /// `None`: the look-up fails.
    names: BTreeMap<String, Option<Vec<IpAddr>>>,
    links: BTreeMap<Connection, Link>,
    next: Connection,
    cuts: BTreeMap<(Machine, Place), Cut>,
    /// How many bytes go at once where ways are slow.
    pieces: BTreeMap<(Machine, Place), usize>,
    /// By how much more what is sent there takes.
    slow: BTreeMap<(Machine, Place), Nanos>,
    /// How many pieces of bytes were sent.
    messages: u64,
    message_faults: BTreeMap<u64, Message>,
    /// Which message a thread waits for.
    awaited: Option<(u64, u64)>,
    /// Between which it was sent.
    awaited_ends: Option<(Place, usize)>,
}

/// A connection, as both ends see it.
pub(crate) struct Link {
    place: Place,
    process: usize,
    machine: Machine,
    pub(crate) state: LinkState,
    /// What the client's threads wait for, and what its waker waits for.
    pub(crate) news: u64,
    pub(crate) waker: Option<u64>,
    /// What has come to the client.
    pub(crate) came: VecDeque<u8>,
    pub(crate) end: Option<LinkEnd>,
    to_host: Way,
    to_client: Way,
    /// The rest of a message follows, of which the host has been sent a piece.
    is_in_message: bool,
    is_closed_here: bool,
    is_served: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Connecting,
    Open,
    Refused,
}

/// How a connection ended, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    Closed,
    Reset,
}

#[derive(Default)]
struct Way {
    /// When the last piece arrives.
    last: Nanos,
    is_silent: bool,
    /// What waits for the end of a cut.
    held: Vec<Packet>,
    /// Bytes that haven't arrived.
    under_way: usize,
}

/// What comes to one end of a connection.
pub(crate) enum Arrival {
    AtHost(Packet),
    AtClient(Packet),
}

#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Open,
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// How many bytes can be on their way to a host before a client has to wait.
const WINDOW: usize = 1 << 20;

impl Network {
    pub(crate) fn new(random: Rng) -> Self {
        Network {
            random,
            served: Vec::new(),
            addresses: BTreeMap::new(),
            names: BTreeMap::new(),
            links: BTreeMap::new(),
            next: 0,
            cuts: BTreeMap::new(),
            pieces: BTreeMap::new(),
            slow: BTreeMap::new(),
            messages: 0,
            message_faults: BTreeMap::new(),
            awaited: None,
            awaited_ends: None,
        }
    }

    pub(crate) fn link(&mut self, connection: Connection) -> Option<&mut Link> {
        self.links.get_mut(&connection)
    }

    /// The addresses of a name. `None`: the look-up fails.
    pub(crate) fn look_up(&self, host: &str) -> Option<Vec<IpAddr>> {
        self.names.get(host).cloned().flatten()
    }

    /// Where a way is slow, some connections aren't.
    fn slowness(&self, connection: Connection) -> Nanos {
        let link = self.links.get(&connection);
        let slow = link.and_then(|link| self.slow.get(&(link.machine, link.place)));
        slow.map_or(0, |by| by / 2 * (connection % 3))
    }

    /// Mostly a fraction of a millisecond, sometimes several.
    fn latency(&mut self) -> Nanos {
        let usual = self.random.u64(50_000..300_000);
        if self.random.u32(..64) == 0 {
            usual + self.random.u64(..5_000_000)
        } else {
            usual
        }
    }
}

impl Link {
    fn new(place: Place, process: usize, machine: Machine, news: u64) -> Self {
        Link {
            place,
            process,
            machine,
            state: LinkState::Connecting,
            news,
            waker: None,
            came: VecDeque::new(),
            end: None,
            to_host: Way::default(),
            to_client: Way::default(),
            is_in_message: false,
            is_closed_here: false,
            is_served: false,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.to_host.under_way < WINDOW
    }
}

/// Adds servers, and their addresses, one for each host, and gives their number.
pub fn add_service(service: Box<dyn Service>, addresses: &[SocketAddr]) -> usize {
    with(|inside| {
        assert_eq!(service.hosts(), addresses.len(), "each host has an address");
        let number = inside.network.served.len();
        inside.network.served.push(Served::new(service));
        for (host, address) in addresses.iter().enumerate() {
            let place = Place {
                service: number,
                host,
            };
            inside.network.addresses.insert(*address, place);
        }
        number
    })
}

/// Says which addresses a name has; `None`: looking it up fails.
pub fn set_names(name: &str, addresses: Option<Vec<IpAddr>>) {
    with(|inside| inside.network.names.insert(name.to_owned(), addresses));
}

// What clients do

impl Inside {
    /// `None`: no host has this address.
    pub(crate) fn connect(&mut self, address: &SocketAddr, thread: usize) -> Option<Connection> {
        let place = *self.network.addresses.get(address)?;
        let (process, machine) = (self.threads[thread].process, self.machine_of(thread));
        let news = self.new_wait();
        Some(self.add_link(Link::new(place, process, machine, news)))
    }

    fn add_link(&mut self, link: Link) -> Connection {
        let connection = self.network.next;
        self.network.next += 1;
        self.network.links.insert(connection, link);
        self.transmit(connection, Arrival::AtHost(Packet::Open));
        connection
    }

    /// Sends as many of them as go at once, and says how many these are.
    pub(crate) fn send_to_host(&mut self, connection: Connection, bytes: &[u8]) -> usize {
        let most = self.piece(connection).unwrap_or(bytes.len());
        let sent = &bytes[..most.min(bytes.len())];
        self.transmit_message(connection, Arrival::AtHost(Packet::Bytes(sent.to_vec())));
        if let Some(link) = self.network.link(connection) {
            link.is_in_message = sent.len() < bytes.len();
        }
        sent.len()
    }

    /// How many bytes go at once, where that is limited.
    fn piece(&self, connection: Connection) -> Option<usize> {
        let link = self.network.links.get(&connection)?;
        let pieces = &self.network.pieces;
        pieces.get(&(link.machine, link.place)).copied()
    }

    /// The client closes it; at once, or behind what it has sent.
    pub(crate) fn close(&mut self, connection: Connection, at_once: bool) {
        let Some(link) = self.network.link(connection) else {
            return;
        };
        if std::mem::replace(&mut link.is_closed_here, true) {
            return;
        }
        link.end.get_or_insert(LinkEnd::Closed);
        if at_once {
            link.to_host.held.clear();
        }
        let news = [Some(link.news), link.waker];
        self.transmit(
            connection,
            Arrival::AtHost(if at_once { Packet::Reset } else { Packet::End }),
        );
        news.into_iter()
            .flatten()
            .for_each(|news| self.wake(news, true));
    }

    /// A process was killed.
    pub(crate) fn close_all(&mut self, process: usize) {
        for connection in self.links_of(|link| link.process == process) {
            self.close(connection, false);
        }
    }

    /// A machine has lost its power.
    pub(crate) fn silence_all(&mut self, process: usize) {
        for connection in self.links_of(|link| link.process == process) {
            let link = self.network.link(connection).expect("it was found");
            link.to_host.is_silent = true;
            link.to_client.is_silent = true;
            link.to_host.held.clear();
        }
    }

    fn links_of(&self, of: impl Fn(&Link) -> bool) -> Vec<Connection> {
        let links = self.network.links.iter();
        links
            .filter(|(_, link)| of(link))
            .map(|(connection, _)| *connection)
            .collect()
    }
}

// The way

impl Inside {
    /// Sends something on, unless it is lost on the way or has to wait.
    fn transmit(&mut self, connection: Connection, what: Arrival) {
        match (what, self.piece(connection)) {
            (Arrival::AtClient(Packet::Bytes(bytes)), Some(most)) => {
                for piece in bytes.chunks(most) {
                    let piece = Packet::Bytes(piece.to_vec());
                    self.transmit_in(connection, Arrival::AtClient(piece), 0);
                }
            }
            (what, _) => self.transmit_in(connection, what, 0),
        }
    }

    fn transmit_in(&mut self, connection: Connection, what: Arrival, later: Nanos) {
        let now = self.now;
        let at = now + self.network.latency() + self.network.slowness(connection) + later;
        let Some(link) = self.network.links.get_mut(&connection) else {
            return;
        };
        let cut = self
            .network
            .cuts
            .get(&(link.machine, link.place))
            .copied()
            .unwrap_or_default();
        let (way, is_cut, packet) = match &what {
            Arrival::AtHost(packet) => (&mut link.to_host, cut.to_host, packet),
            Arrival::AtClient(packet) => (&mut link.to_client, cut.to_client, packet),
        };
        if way.is_silent {
            return;
        }
        // Behind what another cut has held.
        if is_cut || !way.held.is_empty() {
            return way.held.push(packet.clone());
        }
        if let Packet::Bytes(bytes) = packet {
            way.under_way += bytes.len();
        }
        way.last = way.last.max(at);
        let at = way.last;
        self.events.push(at, Event::Arrive(connection, what));
    }

    pub(crate) fn arrive(&mut self, connection: Connection, arrival: Arrival) {
        self.history.mix(self.now, connection);
        match arrival {
            Arrival::AtHost(packet) => self.arrive_at_host(connection, packet),
            Arrival::AtClient(packet) => self.arrive_at_client(connection, packet),
        }
    }

    fn arrive_at_client(&mut self, connection: Connection, packet: Packet) {
        let Some(link) = self.network.links.get_mut(&connection) else {
            return;
        };
        match packet {
            Packet::Open => link.state = LinkState::Open,
            Packet::Bytes(bytes) => {
                link.to_client.under_way -= bytes.len();
                link.came.extend(bytes);
            }
            Packet::End => _ = link.end.get_or_insert(LinkEnd::Closed),
            Packet::Reset if link.state == LinkState::Connecting => {
                link.state = LinkState::Refused;
                link.end.get_or_insert(LinkEnd::Reset);
            }
            Packet::Reset => _ = link.end.get_or_insert(LinkEnd::Reset),
        }
        let news = [Some(link.news), link.waker];
        news.into_iter()
            .flatten()
            .for_each(|news| self.wake(news, true));
    }
}
