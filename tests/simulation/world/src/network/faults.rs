//! What goes wrong: with a host, between a machine and a host, and with one message.

use std::time::Duration;

use super::hosts::places;
use super::{Arrival, Cut, Link, LinkState, Packet, Place};
use crate::events::{Nanos, nanos};
use crate::machine::Machine;
use crate::process::Process;
use crate::scheduler::{Inside, block, with};
use crate::service::{Connection, Fault};
use crate::time::due_in;

/// What happens to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// It is lost, and so is everything behind it on its way: nobody is told.
    Drop,
    /// The connection breaks in front of it, and both ends are told.
    Close,
    /// It arrives, and then the connection breaks.
    CloseBehind,
    /// A request is carried out twice: so much later on a connection that nobody reads.
    Duplicate(Duration),
    /// It, and what is behind it, comes so much later.
    Delay(Duration),
    /// It comes as other bytes.
    Garble,
}

/// How many messages were sent so far.
#[must_use]
pub fn messages() -> u64 {
    with(|inside| inside.network.messages)
}

/// Waits until the message with that number is sent, so long at most. Says which host and which process it is between.
pub fn await_message(number: u64, within: Duration) -> Option<(Place, Process)> {
    let (on, until) = with(|inside| {
        let on = inside.new_wait();
        inside.network.awaited = Some((number, on));
        (on, due_in(inside, within))
    });
    block(Some(on), Some(until));
    let ends = with(|inside| inside.network.awaited_ends.take());
    ends.map(|(place, process)| (place, Process(process)))
}

/// Says what is to happen to the message with that number, and to no other; `None`: nothing.
pub fn set_message_fault(fault: Option<(u64, Message)>) {
    with(|inside| inside.network.message_faults = fault.into_iter().collect());
}

/// Says what is to happen to the message with that number, too.
pub fn add_message_fault(number: u64, fault: Message) {
    with(|inside| inside.network.message_faults.insert(number, fault));
}

/// Cuts ways between a machine and a host. What is sent there comes when the cut heals.
pub fn cut(machine: Machine, place: Place, which: Cut) {
    with(|inside| inside.network.cuts.insert((machine, place), which));
}

/// Ends a cut.
pub fn heal(machine: Machine, place: Place) {
    with(|inside| {
        inside.network.cuts.remove(&(machine, place));
        for connection in inside.links_to(place) {
            inside.send_held(connection);
        }
    });
}

/// Says how many bytes go at once between a machine and a host, as where one of them reads slowly; `None`: all.
pub fn set_piece(machine: Machine, place: Place, most: Option<usize>) {
    with(|inside| {
        let pieces = &mut inside.network.pieces;
        match most {
            Some(most) => pieces.insert((machine, place), most.max(1)),
            None => pieces.remove(&(machine, place)),
        }
    });
}

/// Has all that is sent between a machine and a host take up to so much longer; zero: as long as ever.
pub fn slow(machine: Machine, place: Place, by: Duration) {
    with(|inside| inside.network.slow.insert((machine, place), nanos(by)));
}

/// Something happens to a host.
pub fn fault(place: Place, fault: Fault) {
    with(|inside| inside.fault(place, fault));
}

impl Inside {
    fn send_held(&mut self, connection: Connection) {
        let Some(link) = self.network.link(connection) else {
            return;
        };
        let to_host = std::mem::take(&mut link.to_host.held);
        let to_client = std::mem::take(&mut link.to_client.held);
        for packet in to_host {
            self.transmit(connection, Arrival::AtHost(packet));
        }
        for packet in to_client {
            self.transmit(connection, Arrival::AtClient(packet));
        }
    }

    fn fault(&mut self, place: Place, fault: Fault) {
        assert!(
            places(self, place.service).any(|host| host == place.host),
            "no such host"
        );
        self.log(&format!("host {}.{}: {fault:?}", place.service, place.host));
        match fault {
            Fault::Kill => self.kill_host(place),
            Fault::Start { .. } => self.host(place).is_up = true,
            Fault::Pause => self.host(place).is_paused = true,
            Fault::Resume => self.host(place).is_paused = false,
            Fault::StepClock { micros } => self.host(place).day += micros * 1_000,
            Fault::Cut | Fault::Heal | Fault::Own(_) => {}
        }
        let Place { service, host } = place;
        self.tell(service, |service, io| service.fault(io, host, fault));
        if fault == Fault::Resume {
            let held = std::mem::take(&mut self.host(place).held);
            for (connection, packet) in held {
                self.serve(connection, place, &packet);
            }
        }
    }

    fn kill_host(&mut self, place: Place) {
        let host = self.host(place);
        (host.is_up, host.is_paused) = (false, false);
        host.held.clear();
        for connection in self.links_to(place) {
            if let Some(link) = self.network.link(connection) {
                link.is_served = false;
            }
            self.transmit(connection, Arrival::AtClient(Packet::Reset));
        }
    }

    /// Sends bytes, unless this is the message that something happens to.
    pub(super) fn transmit_message(&mut self, connection: Connection, what: Arrival) {
        self.network.messages += 1;
        let number = self.network.messages;
        if let Some((_, on)) = self.network.awaited.take_if(|(at, _)| *at <= number) {
            let link = self.network.links.get(&connection);
            self.network.awaited_ends = link.map(|link| (link.place, link.process));
            self.wake(on, true);
        }
        match self.network.message_faults.remove(&number) {
            Some(fault) => self.fail_message(connection, what, fault),
            None => self.transmit(connection, what),
        }
    }

    fn fail_message(&mut self, connection: Connection, what: Arrival, fault: Message) {
        let way = match &what {
            Arrival::AtHost(_) => "to the host",
            Arrival::AtClient(_) => "to the client",
        };
        self.log(&format!(
            "message {} {way}: {fault:?}",
            self.network.messages
        ));
        match fault {
            Message::Drop => {
                if let Some(link) = self.network.link(connection) {
                    match what {
                        Arrival::AtHost(_) => link.to_host.is_silent = true,
                        Arrival::AtClient(_) => link.to_client.is_silent = true,
                    }
                }
            }
            Message::Close => self.break_link(connection),
            Message::CloseBehind => {
                self.transmit(connection, what);
                self.break_link(connection);
            }
            Message::Duplicate(by) => self.duplicate(connection, what, nanos(by)),
            Message::Delay(by) => self.transmit_in(connection, what, nanos(by)),
            Message::Garble => self.garble(connection, what),
        }
    }

    fn break_link(&mut self, connection: Connection) {
        self.transmit(connection, Arrival::AtHost(Packet::Reset));
        self.transmit(connection, Arrival::AtClient(Packet::Reset));
    }

    fn duplicate(&mut self, connection: Connection, what: Arrival, later: Nanos) {
        if let (Arrival::AtHost(packet), Some(link)) = (&what, self.network.link(connection)) {
            let (place, process, machine) = (link.place, link.process, link.machine);
            let copy = packet.clone();
            let news = self.new_wait();
            let mut ghost = Link::new(place, process, machine, news);
            ghost.state = LinkState::Open;
            let ghost = self.add_link(ghost);
            self.transmit_in(ghost, Arrival::AtHost(copy), later);
            self.close(ghost, false);
        }
        self.transmit(connection, what);
    }

    /// The rest of a message stays as it is: other bytes in the middle of it may be the name of another lock, and no
    /// client can see that.
    fn garble(&mut self, connection: Connection, what: Arrival) {
        let is_in_message = |link: &mut Link| link.is_in_message;
        let is_rest = self.network.link(connection).is_some_and(is_in_message);
        if is_rest && matches!(what, Arrival::AtHost(_)) {
            return self.transmit(connection, what);
        }
        let random = &mut self.network.random;
        let mut garbled = |packet| match packet {
            Packet::Bytes(bytes) => Packet::Bytes(bytes.iter().map(|_| random.u8(..)).collect()),
            other => other,
        };
        let what = match what {
            Arrival::AtHost(packet) => Arrival::AtHost(garbled(packet)),
            Arrival::AtClient(packet) => Arrival::AtClient(garbled(packet)),
        };
        self.transmit(connection, what);
    }
}
