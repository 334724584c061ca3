//! What an operator does, who breaks a lock, and a lease that is passed on to another process.

use super::{Body, Packet, Phase, Ticket, World};
use crate::mutant::Mutant;
use crate::server::{Adopt, BROADCAST, Call, Ear, Messages, Names, Token, run};
use crate::setup::{Patience, Setup};
use crate::world::{Lease, TTL};

impl World {
    /// Somebody breaks a lock: that is one step, and its answer is nobody's.
    pub(super) fn break_lock(&mut self, setup: &Setup, at: usize) {
        self.breaks -= 1;
        let (before, ears) = (self.names.clone(), self.ears);
        let mut messages = Messages::new();
        let server = self.server(setup, &ears);
        let names = Names::one(at.try_into().unwrap_or(u8::MAX));
        run(
            names.of(&mut self.names),
            Call::Break,
            server,
            &mut messages,
        );
        self.publish(messages);
        self.judge_break(setup, &before[at], at);
    }

    /// Sends what was published.
    pub(super) fn publish(&mut self, messages: Messages) {
        for message in messages {
            let is_told_to_all = message.inbox == BROADCAST;
            let client = if is_told_to_all {
                let client = Setup::client_of(message.owner);
                let is_known = self
                    .clients
                    .get(client)
                    .is_some_and(|one| one.owner == message.owner);
                if !is_known || self.ears[client] != Ear::Hears {
                    continue;
                }
                Self::inbox(client)
            } else {
                message.inbox
            };
            self.send(Packet {
                client,
                owner: message.owner,
                body: if is_told_to_all {
                    Body::Revoked(message.token)
                } else {
                    Body::Grant(message.token)
                },
                slow: false,
                orphan: false,
            });
        }
    }

    /// A holder hears that its lease was broken.
    pub(super) fn revoked(&mut self, setup: &Setup, packet: Packet, below: Token) {
        let client = usize::from(packet.client);
        let one = &mut self.clients[client];
        if let Phase::Holding(lease) = &mut one.phase
            && one.owner == packet.owner
            && (lease.token < below || setup.is(Mutant::BreakEndsAnyLease))
        {
            lease.refused = true;
            self.judge_refusal(client);
        }
    }

    /// Its lease becomes a ticket: it neither renews nor releases it any more.
    pub(super) fn pass_on(&mut self, setup: &Setup, client: usize, lease: Lease) {
        self.close(setup, client);
        self.ticket = Some(Ticket {
            names: self.want(setup, client).names,
            mode: lease.mode,
            from: self.clients[client].owner,
            last_used: lease.token,
        });
        if !setup.is(Mutant::PassedOnIsHeld) {
            self.leave_acquisition(client);
        }
    }

    /// Whether there is a ticket for what a client wants to go on with.
    pub(super) fn may_adopt(&self, setup: &Setup, client: usize) -> bool {
        let want = self.next_want(setup, client);
        self.ticket
            .is_some_and(|ticket| (ticket.names, ticket.mode) == (want.names, want.mode.held()))
    }

    /// Sends what it has been given; a ticket may be used more than once.
    pub(super) fn adopt(&mut self, setup: &Setup, client: usize) {
        self.close(setup, client);
        let Some(ticket) = self.ticket else { return };
        self.clients[client].phase = Phase::Adopting { age: 0 };
        let owner = self.clients[client].owner;
        self.request(
            client,
            Call::Adopt(Adopt {
                owner,
                ttl: TTL,
                mode: ticket.mode,
                from: ticket.from,
                counter_after: ticket.last_used + 1,
            }),
        );
    }

    /// What a client that is idle wants next.
    fn next_want(&self, setup: &Setup, client: usize) -> crate::setup::Want {
        setup.want(Setup::owner(client, self.clients[client].step))
    }

    pub(super) fn may_begin(&self, setup: &Setup, client: usize) -> bool {
        let adopts = || self.next_want(setup, client).patience == Patience::Adopt;
        self.has_wants(setup, client) && (!adopts() || self.may_adopt(setup, client))
    }
}
