//! What ends without its holder: what a server forgets, and leases that end by themselves.

use std::ops::Range;

use super::Ghost;
use super::scripts::number;
use crate::server::Owner;
use crate::setup::Setup;
use crate::world::{AllNames, Phase, World};

impl World {
    /// The server is about to forget something of these names.
    pub(crate) fn judge_forgetting(&mut self, setup: &Setup, names: Range<usize>, lost: Lost) {
        for at in names.clone() {
            if let (Some(owner), true) = (self.names[at].owner(), lost.lease) {
                self.judge_ghost(at, owner);
            }
            if lost.line {
                self.judge.records[at].line.clear();
            }
        }
        // One token for several names: what one of them forgets makes a difference to all.
        for record in &mut self.judge.records {
            record.since.forgot |= lost.counter;
        }
        if lost.line {
            // Who wants several names and has lost one place gives up the others.
            for record in &mut self.judge.records {
                record.torn = true;
            }
        }
        if !lost.lease {
            return;
        }
        for client in 0..self.clients.len() {
            let one = &self.clients[client];
            let idle = matches!(one.phase, Phase::Idle | Phase::Dead);
            let is_of = names.clone().any(|at| setup.want(one.owner).names.has(at));
            if !idle && is_of {
                self.judge.watches[client].forgotten = true;
                self.judge.watches[client].broken = false;
            }
        }
    }

    /// The server is about to be replaced by a replica.
    pub(crate) fn judge_revival(&mut self, replica: &AllNames) {
        for (now, then) in self.names.iter().zip(replica) {
            for (client, one) in self.clients.iter().enumerate() {
                let is_same = now.is_held_by(one.owner) && number(now) == number(then);
                let stood = then.waiter(one.owner).is_some() && now.waiter(one.owner).is_none();
                let revived = stood || (then.is_held_by(one.owner) && !is_same);
                self.judge.watches[client].revived |= revived;
            }
        }
    }

    /// A lease ends by itself. If nobody ever had a guard of it, the next holder is told of an abandonment all the
    /// same.
    pub(crate) fn judge_ghost(&mut self, at: usize, owner: Owner) {
        let client = &self.clients[Setup::client_of(owner)];
        let waits = matches!(
            client.phase,
            Phase::Asking { .. } | Phase::Adopting { .. } | Phase::Waiting { .. }
        );
        let never_knew = client.owner == owner && (waits || client.is_dead());
        let record = &mut self.judge.records[at];
        if record.unreleased != Some(owner) {
            record.since.ghost = Some(if never_knew {
                Ghost::UnknownGrant
            } else {
                Ghost::LateCopy
            });
        }
    }
}

/// What a server forgets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) lease: bool,
    pub(crate) counter: bool,
    pub(crate) line: bool,
}

impl Lost {
    pub(crate) const ALL: Lost = Lost {
        lease: true,
        counter: true,
        line: true,
    };
}
