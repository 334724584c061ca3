//! What is on its way.

use super::{Body, Packet, Phase, Reply, World};
use crate::mutant::Mutant;
use crate::server::{Acquired, Answer, Call, Ear, Messages, run};
use crate::setup::Setup;

impl World {
    pub(super) fn send(&mut self, packet: Packet) {
        let at = self.wire.partition_point(|one| *one < packet);
        self.wire.insert(at, packet);
    }

    pub(super) fn request(&mut self, client: usize, call: Call) {
        self.send(Packet {
            client: Self::inbox(client),
            owner: self.clients[client].owner,
            body: Body::Request(call),
            slow: false,
            orphan: false,
        });
    }

    /// A packet arrives. A request that is repeated stays on its way, too.
    pub(super) fn deliver(&mut self, setup: &Setup, at: usize, repeats: bool) {
        let packet = self.wire.remove(at);
        if repeats {
            self.send(Packet {
                slow: true,
                orphan: true,
                ..packet
            });
        }
        match packet.body {
            Body::Request(call) => self.serve(setup, packet, call),
            Body::Reply(reply) => self.answered(setup, packet, reply),
            Body::Grant(token) => self.granted(setup, packet, token),
            Body::Revoked(below) => self.revoked(setup, packet, below),
        }
    }

    /// The server runs a script.
    fn serve(&mut self, setup: &Setup, packet: Packet, call: Call) {
        let names = setup.want(packet.owner).names;
        let (before, ears) = (self.names.clone(), self.ears);
        let mut messages = Messages::new();
        let server = self.server(setup, &ears);
        let answer = run(names.of(&mut self.names), call, server, &mut messages);
        self.publish(messages);
        if !packet.orphan {
            self.send(Packet {
                body: Body::Reply(reply(answer)),
                slow: false,
                ..packet
            });
        }
        self.judge_script(setup, &before, packet, call, answer);
    }

    /// A client closes its connection: what it asked may still arrive, and the answer goes nowhere.
    pub(super) fn close(&mut self, setup: &Setup, client: usize) {
        if setup.is(Mutant::ConnectionReused) {
            return;
        }
        let is_its = |packet: &Packet| usize::from(packet.client) == client;
        self.wire.retain(|packet| {
            let is_reply = matches!(packet.body, Body::Reply(_));
            !(is_its(packet) && is_reply)
        });
        for packet in &mut self.wire {
            if is_its(packet) && matches!(packet.body, Body::Request(_)) {
                packet.orphan = true;
            }
        }
        self.wire.sort_unstable();
    }

    /// What is still on its way to its inbox is of no interest any more.
    pub(super) fn stop_hearing(&mut self, client: usize) {
        self.clients[client].news = None;
        let is_its = |packet: &Packet| usize::from(packet.client) == client;
        self.wire
            .retain(|packet| !(is_its(packet) && matches!(packet.body, Body::Grant(_))));
    }

    /// The connection on which a client hears is gone, and the server knows, or doesn't.
    pub(super) fn deafen(&mut self, client: usize, ear: Ear) {
        self.ears[client] = ear;
        let is_its = |packet: &Packet| usize::from(packet.client) == client;
        let is_message = |packet: &Packet| matches!(packet.body, Body::Grant(_) | Body::Revoked(_));
        self.wire
            .retain(|packet| !(is_its(packet) && is_message(packet)));
    }

    /// Whether a packet has to arrive before time passes.
    pub(super) fn is_urgent(&self, packet: &Packet) -> bool {
        let client = &self.clients[usize::from(packet.client)];
        let to_server = matches!(packet.body, Body::Request(_));
        let is_due = !packet.slow && !matches!(packet.body, Body::Revoked(_));
        is_due && (to_server || !client.stopped)
    }

    pub(crate) fn has_packet_of(&self, owner: u8) -> bool {
        let mut packets = self.wire.iter();
        packets.any(|packet| packet.owner == owner && !matches!(packet.body, Body::Revoked(_)))
    }

    /// Whether a client is there to read a packet.
    pub(super) fn reads(&self, packet: &Packet) -> bool {
        let client = &self.clients[usize::from(packet.client)];
        !client.stopped && client.phase != Phase::Dead
    }
}

fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Acquired(Acquired::Granted { token, .. }) => Reply::Granted(token),
        Answer::Acquired(Acquired::Taken(taken)) => Reply::Taken {
            counter: taken.counter,
        },
        Answer::Acquired(Acquired::Broken) => Reply::Broken,
        Answer::Renewed(renewed) => Reply::Renewed(renewed),
        Answer::Released(released) => Reply::Released(released),
        Answer::Downgraded(token) => Reply::Downgraded(token),
        Answer::Adopted(token) => Reply::Adopted(token),
        Answer::Permits(_) | Answer::Broke(_) => unreachable!("no client asks in this model"),
    }
}
