//! A client that has a lock: what `src/held.rs` and `src/guard/ending.rs` do.

use super::{EVERY, Ending, KEEP, Lease, Phase, Reply, TRIES, TTL, World};
use crate::mutant::Mutant;
use crate::server::{Call, Mode, Release, Released, Renew, Renewed, Ticks, Token};
use crate::setup::Setup;

impl World {
    fn set_lease(&mut self, client: usize, lease: Lease) {
        self.clients[client].phase = Phase::Holding(lease);
    }

    pub(super) fn renew(&mut self, client: usize, lease: Lease) {
        let owner = self.clients[client].owner;
        self.set_lease(
            client,
            Lease {
                renewing: Some(0),
                ..lease
            },
        );
        self.request(
            client,
            Call::Renew(Renew {
                granted: lease.granted(),
                ..Renew::of(owner, TTL, lease.mode)
            }),
        );
    }

    /// A renewal wasn't answered in time: the old deadline stays, and it is tried again.
    pub(super) fn postpone(&mut self, setup: &Setup, client: usize, mut lease: Lease) {
        self.close(setup, client);
        if setup.is(Mutant::SilenceRenews) {
            lease.valid = TTL - lease.renewing.unwrap_or(0);
        }
        (lease.renewing, lease.due) = (None, 0);
        self.set_lease(client, lease);
    }

    pub(super) fn answered_holder(&mut self, setup: &Setup, client: usize, reply: Reply) {
        match (self.clients[client].phase, reply) {
            (Phase::Holding(lease), Reply::Renewed(renewed)) => {
                self.renewed(setup, client, lease, renewed);
            }
            (Phase::Downgrading { lease, age }, Reply::Downgraded(token)) => {
                self.downgraded(setup, client, lease, age, token);
            }
            (
                Phase::Ending {
                    ending, was_held, ..
                },
                Reply::Released(released),
            ) => {
                let is_ours = match released {
                    Released::Done => true,
                    Released::Unclear | Released::NotOwner | Released::Broken => false,
                };
                if is_ours && was_held {
                    self.judge_unlock(client);
                }
                self.end(setup, client, ending, false);
            }
            _ => {}
        }
    }

    fn renewed(&mut self, setup: &Setup, client: usize, mut lease: Lease, renewed: Renewed) {
        let age = lease.renewing.take().unwrap_or(0);
        let renewed = renewed == Renewed::Done;
        if !renewed {
            self.judge_refusal(client);
        }
        // What was lost stays lost.
        let is_over = lease.valid <= 0 && !setup.is(Mutant::LateRenewalRevives);
        if !is_over && (renewed || setup.is(Mutant::RefusalIgnored)) {
            let from_reply = setup.is(Mutant::ValidityFromReply);
            lease.valid = if from_reply { TTL } else { TTL - age };
            lease.due = (EVERY - age).max(0);
        } else if !is_over {
            lease.refused = true;
        }
        self.set_lease(client, lease);
    }

    fn downgraded(&mut self, setup: &Setup, client: usize, lease: Lease, age: Ticks, token: Token) {
        if token == 0 {
            self.finish(setup, client, false);
            return;
        }
        self.set_lease(
            client,
            Lease {
                token,
                mode: Mode::Read,
                valid: (TTL - age).max(0),
                due: (EVERY - age).max(0),
                renewing: None,
                hand_overs: 0,
                ..lease
            },
        );
        if age < TTL {
            self.judge_guard(setup, client, true);
        }
    }

    /// The guard ends: from now on it isn't held.
    pub(super) fn unlock(&mut self, setup: &Setup, client: usize, lease: Lease, ending: Ending) {
        let was_held = lease.is_held(setup);
        if lease.refused && self.want(setup, client).names.count == 1 {
            // The server said that it isn't its own.
            self.finish(setup, client, false);
            return;
        }
        // A renewal that is on its way is given up.
        self.close(setup, client);
        self.release(setup, client, lease, ending, 0, was_held);
    }

    pub(super) fn release(
        &mut self,
        setup: &Setup,
        client: usize,
        lease: Lease,
        ending: Ending,
        tries: u8,
        was_held: bool,
    ) {
        self.close(setup, client);
        if tries == TRIES {
            self.end(setup, client, ending, true);
            return;
        }
        let owner = self.clients[client].owner;
        self.clients[client].phase = Phase::Ending {
            lease,
            ending,
            age: 0,
            tries,
            was_held,
        };
        let counter_after = counter_after(lease.token, ending);
        self.request(
            client,
            Call::Release(Release {
                counter_after,
                keep: (ending == Ending::Kept).then_some(KEEP),
                ..Release::unknown(owner, lease.mode)
            }),
        );
    }

    /// A release was answered, or tried often enough. `left`: what it had is left to its ttl.
    fn end(&mut self, setup: &Setup, client: usize, ending: Ending, left: bool) {
        if ending == Ending::Downgraded {
            self.take_back(setup, client, Mode::Read, 0);
        } else {
            self.finish(setup, client, left);
        }
    }

    pub(super) fn downgrade(&mut self, setup: &Setup, client: usize, lease: Lease) {
        self.close(setup, client);
        let owner = self.clients[client].owner;
        self.clients[client].phase = Phase::Downgrading { lease, age: 0 };
        let ask = Renew::of(owner, TTL, Mode::Read);
        let counter_after = counter_after(lease.token, Ending::Clean);
        self.request(client, Call::Downgrade { ask, counter_after });
    }

    /// The next thread of the process has the lease, with a token of its own.
    pub(super) fn hand_over(&mut self, setup: &Setup, client: usize, lease: Lease) {
        self.set_lease(
            client,
            Lease {
                token: lease.token + 2,
                hand_overs: lease.hand_overs + 1,
                ..lease
            },
        );
        self.judge_guard(setup, client, true);
    }
}

/// What the counter becomes: see `src/fence.rs`.
fn counter_after(token: Token, ending: Ending) -> Token {
    match ending {
        Ending::Panicked => {
            let next = token + 2;
            if next.rem_euclid(8) == 7 {
                next + 2
            } else {
                next
            }
        }
        _ => token + 1,
    }
}
