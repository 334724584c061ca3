//! The hosts' end of connections.

use std::time::Duration;

use super::{Arrival, LinkState, Packet, Place};
use crate::events::{Event, Nanos, nanos};
use crate::machine::{EPOCH, local};
use crate::scheduler::{Inside, with};
use crate::service::{Connection, Done, Host, Io, Service};

pub(super) struct Served {
    /// `None` while it is told of something.
    service: Option<Box<dyn Service>>,
    pub(super) hosts: Vec<HostState>,
    wake_at: Option<Nanos>,
}

pub(super) struct HostState {
    pub(super) is_up: bool,
    pub(super) is_paused: bool,
    /// What its clock of the day showed when the world began, and by how many millionths it is fast.
    pub(super) day: i64,
    pub(super) fast: i64,
    /// What has come while it was paused.
    pub(super) held: Vec<(Connection, Packet)>,
}

impl Served {
    pub(super) fn new(service: Box<dyn Service>) -> Self {
        let hosts = (0..service.hosts()).map(|_| HostState {
            is_up: true,
            is_paused: false,
            day: EPOCH,
            fast: 0,
            held: Vec::new(),
        });
        Served {
            hosts: hosts.collect(),
            service: Some(service),
            wake_at: None,
        }
    }
}

impl HostState {
    fn wall(&self, now: Nanos) -> Duration {
        Duration::from_nanos(local(now, self.fast).saturating_add_signed(self.day))
    }
}

/// What clients have left in a service.
#[must_use]
pub fn contents(service: usize) -> Vec<String> {
    with(|inside| {
        let service = inside.network.served[service].service.as_ref();
        service.expect("nobody tells it anything").contents()
    })
}

/// What one host has, whether it is believed or not.
#[must_use]
pub fn contents_of(place: Place) -> Vec<String> {
    with(|inside| {
        let service = inside.network.served[place.service].service.as_ref();
        let service = service.expect("nobody tells it anything");
        service.contents_of(place.host)
    })
}

/// What ends with a lease or a session, and in how long.
#[must_use]
pub fn lasting(service: usize) -> Vec<(String, Duration)> {
    with(|inside| {
        let now = Duration::from_nanos(inside.now);
        let service = inside.network.served[service].service.as_ref();
        service.expect("nobody tells it anything").lasting(now)
    })
}

impl Inside {
    /// Tells a service something, and does what it says.
    pub(super) fn tell(&mut self, number: usize, what: impl FnOnce(&mut dyn Service, &mut Io<'_>)) {
        let now = self.now;
        let served = &mut self.network.served[number];
        let walls: Vec<Duration> = served.hosts.iter().map(|host| host.wall(now)).collect();
        let mut service = served
            .service
            .take()
            .expect("a service tells itself nothing");
        let mut io = Io {
            now: Duration::from_nanos(now),
            walls: &walls,
            random: &mut self.network.random,
            done: Vec::new(),
        };
        what(&mut *service, &mut io);
        let done = io.done;
        self.network.served[number].service = Some(service);
        for one in done {
            self.carry_out(number, one);
        }
    }

    fn carry_out(&mut self, number: usize, done: Done) {
        match done {
            Done::Send(connection, bytes) => {
                self.transmit_message(connection, Arrival::AtClient(Packet::Bytes(bytes)));
            }
            Done::Close(connection) => {
                if let Some(link) = self.network.link(connection) {
                    link.is_served = false;
                }
                self.transmit(connection, Arrival::AtClient(Packet::End));
            }
            Done::WakeAt(time) => {
                let at = nanos(time).max(self.now);
                let wake_at = &mut self.network.served[number].wake_at;
                if wake_at.is_none_or(|other| at < other) {
                    *wake_at = Some(at);
                    self.events.push(at, Event::Wake { service: number });
                }
            }
            Done::Log(line) => self.log(&format!("service {number}: {line}")),
        }
    }

    pub(crate) fn wake_service(&mut self, number: usize) {
        let wake_at = &mut self.network.served[number].wake_at;
        // A later time was replaced by an earlier one, which has come already.
        if wake_at.is_some_and(|at| at <= self.now) {
            *wake_at = None;
            self.tell(number, |service, io| service.woken(io));
        }
    }

    pub(super) fn host(&mut self, place: Place) -> &mut HostState {
        &mut self.network.served[place.service].hosts[place.host]
    }

    pub(super) fn arrive_at_host(&mut self, connection: Connection, packet: Packet) {
        let Some(link) = self.network.link(connection) else {
            return;
        };
        let (place, is_open) = (link.place, link.state != LinkState::Connecting);
        if let Packet::Bytes(bytes) = &packet {
            link.to_host.under_way -= bytes.len();
            let news = link.news;
            self.wake(news, true);
        }
        let host = self.host(place);
        if !host.is_up {
            if !matches!(packet, Packet::End | Packet::Reset) {
                self.transmit(connection, Arrival::AtClient(Packet::Reset));
            }
            return;
        }
        if host.is_paused {
            // The system accepts connections for the process.
            host.held.push((connection, packet.clone()));
            if matches!(packet, Packet::Open) && !is_open {
                self.transmit(connection, Arrival::AtClient(Packet::Open));
            }
            return;
        }
        if matches!(packet, Packet::Open) {
            self.transmit(connection, Arrival::AtClient(Packet::Open));
        }
        self.serve(connection, place, &packet);
    }

    /// Tells a host of what has come.
    pub(super) fn serve(&mut self, connection: Connection, place: Place, packet: &Packet) {
        let Some(link) = self.network.link(connection) else {
            return;
        };
        let Place { service, host } = place;
        match packet {
            Packet::Open => {
                link.is_served = true;
                self.tell(service, |service, io| {
                    service.connected(io, host, connection)
                });
            }
            Packet::Bytes(bytes) if link.is_served => {
                self.tell(service, |service, io| {
                    service.received(io, host, connection, bytes)
                });
            }
            Packet::Bytes(_) => self.transmit(connection, Arrival::AtClient(Packet::Reset)),
            Packet::End | Packet::Reset => {
                if std::mem::take(&mut link.is_served) {
                    self.tell(service, |service, io| service.closed(io, host, connection));
                }
                if self
                    .network
                    .link(connection)
                    .is_some_and(|link| link.is_closed_here)
                {
                    self.network.links.remove(&connection);
                }
            }
        }
    }

    /// The connections that a host has.
    pub(super) fn links_to(&self, place: Place) -> Vec<Connection> {
        self.links_of(|link| link.place == place)
    }
}

/// A host of a service, for a walk over all of them.
pub(super) fn places(inside: &Inside, service: usize) -> impl Iterator<Item = Host> + use<> {
    0..inside.network.served[service].hosts.len()
}
