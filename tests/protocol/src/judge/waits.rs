//! What happens while time passes: who waits for what is to be had, and what ends by itself.

use super::{Excuse, Rule};
use crate::server::{Name, Owner, Says};
use crate::setup::Setup;
use crate::world::{CLIENTS, Phase, World};

/// For how many ticks a waiter may not be served that could be, whatever goes wrong: until its next heartbeat.
const HEARTBEAT: u8 = 1;
/// The same, after the server forgot a part of a line: who waits has to find that, and to enter anew.
const ANEW: u8 = 3;

impl World {
    /// Time is about to pass: nothing is to be done but what was slowed down.
    pub(crate) fn judge_tick(&mut self, setup: &Setup) {
        let could_be_served = self.could_be_served(setup);
        let calm = self.no_fault_yet(setup);
        for (client, could) in could_be_served.into_iter().enumerate() {
            let unserved = self.judge.watches[client].unserved;
            let unserved = if could { unserved + 1 } else { 0 };
            self.judge.watches[client].unserved = unserved.min(ANEW);
            if unserved > ANEW || (unserved > 0 && calm) {
                self.judge.broke(Rule::Service);
            } else if unserved > HEARTBEAT {
                let torn = self.is_torn(setup, client);
                let excuse = Excuse::LineForgotten;
                self.judge.broke_unless(Rule::Service, torn, excuse);
            }
        }
        let is_over = (0..self.clients.len()).all(|client| {
            let phase = self.clients[client].phase;
            phase == Phase::Idle && !self.has_wants(setup, client)
        });
        if calm && is_over && self.names.iter().any(is_something_left) {
            self.judge.broke(Rule::NothingLeft);
        }
    }

    /// Whether the server forgot a part of a line that a client stands in.
    fn is_torn(&self, setup: &Setup, client: usize) -> bool {
        let names = self.want(setup, client).names;
        let mut records = self.judge.records.iter().enumerate();
        records.any(|(at, record)| names.has(at) && record.torn)
    }

    /// Who waits for what nobody has, or only others that could be served.
    fn could_be_served(&self, setup: &Setup) -> [bool; CLIENTS] {
        let mut could = [false; CLIENTS];
        for (client, one) in self.clients.iter().enumerate() {
            could[client] = matches!(one.phase, Phase::Waiting { .. }) && !one.stopped;
        }
        loop {
            let is_stuck = |client: usize| {
                let names = self.want(setup, client).names;
                (0..self.names.len())
                    .filter(|at| names.has(*at))
                    .any(|at| !self.is_up_to(&self.names[at], &could))
            };
            let stuck = (0..CLIENTS).find(|client| could[*client] && is_stuck(*client));
            match stuck {
                Some(client) => could[client] = false,
                None => return could,
            }
        }
    }

    /// Whether nobody has a name but those.
    fn is_up_to(&self, name: &Name, those: &[bool; CLIENTS]) -> bool {
        let is_one = |owner: Owner| {
            let client = Setup::client_of(owner);
            those[client] && Setup::step_of(self.clients[client].owner) == Setup::step_of(owner)
        };
        match name.lock.map(|lock| lock.says) {
            None => true,
            Some(Says::Owner(owner)) => is_one(owner),
            Some(Says::Readers | Says::Permits(_)) => {
                let mut shares = name.shares.iter();
                shares.all(|share| !share.kept && is_one(share.owner))
            }
            Some(Says::Kept | Says::Foreign) => false,
        }
    }

    /// Time has passed: what these owners had exclusively may have ended by itself.
    pub(crate) fn judge_expiry(&mut self, owners: &[Option<Owner>]) {
        for (at, owner) in owners.iter().enumerate() {
            if let Some(owner) = *owner
                && self.names[at].owner() != Some(owner)
            {
                self.judge_ghost(at, owner);
            }
        }
    }
}

/// Whether there is more than the counter, and what is to stay taken for a while.
fn is_something_left(name: &Name) -> bool {
    let kept = name.shares.iter().all(|share| share.kept);
    let lock = match name.lock.map(|lock| lock.says) {
        None | Some(Says::Kept) => false,
        Some(says) => !says.is_shared() || !kept,
    };
    lock || !name.queue.is_empty() || !name.readers.is_empty() || !name.waiters.is_empty()
}
