//! What a guard does, and what is left of it: `src/guard/ending.rs`, `src/held.rs` and `src/farewell.rs`.

use super::lease::{Deferred, Guard, Lease, Loss};
use super::process::{Number, Phase, Word};
use super::server::Ending;
use super::world::{Network, World};
use super::{Mutant, RENEW_AFTER, TTL};

impl World<'_> {
    pub fn renew(&mut self, thread: Number, mut guard: Guard, network: Network) {
        if self.arrives(network) && !self.state.server.renew(guard.lease.owner) {
            if network == Network::Works {
                return self.lose(thread, guard, Loss::NotOwner);
            }
        } else if network == Network::Works {
            (guard.lease.left, guard.due) = (TTL, RENEW_AFTER);
        }
        *self.phase(thread) = Phase::Holding(guard);
    }

    /// A lease that is lost gives up its seat.
    pub fn lose(&mut self, thread: Number, mut guard: Guard, loss: Loss) {
        guard.lost = Some(loss);
        (guard.lease.left, guard.due) = (0, 0);
        let had_seat = guard.seat;
        guard.seat &= self.is(Mutant::LostLeaseKeepsSeat);
        *self.phase(thread) = Phase::Holding(guard);
        if had_seat && !guard.seat {
            self.drop_seat();
        }
    }

    /// The guard is dropped.
    pub fn unlock(&mut self, thread: Number, guard: Guard, panicked: bool) {
        if panicked {
            self.fault();
        }
        if guard.lost.is_none() && guard.lease.left == 0 {
            self.lose(thread, guard, Loss::Expired);
        }
        let Phase::Holding(guard) = *self.phase(thread) else {
            return;
        };
        *self.phase(thread) = Phase::Ending {
            lease: guard.lease,
            seat: guard.seat,
            panicked,
            gone: guard.lost == Some(Loss::NotOwner),
        };
    }

    /// The lease goes to the next thread.
    pub fn hand_over(&mut self, thread: Number, lease: Lease, panicked: bool) {
        let server = &self.state.server;
        let judge = &mut self.state.judge;
        judge.is_handed_over(lease.owner, panicked, server, self.setup);
        self.pass_seat(Word::Have(lease));
        if self.is(Mutant::HandedOverAndReleased) {
            *self.phase(thread) = Phase::Ending {
                lease,
                seat: false,
                panicked,
                gone: false,
            };
        } else {
            self.return_from_call(thread);
        }
    }

    /// A lease that has run out here may still be there: it is released so that nobody waits for it.
    pub fn release(&mut self, thread: Number, lease: &Lease, ending: Ending, network: Network) {
        let Phase::Ending { seat, gone, .. } = *self.phase(thread) else {
            return;
        };
        let owner = lease.owner;
        if !gone && self.arrives(network) {
            self.state.judge.releases(owner, ending);
            self.state.server.release(owner, ending, self.setup);
        }
        let mut unsaid = Deferred { owner, ending };
        if self.is(Mutant::DeferredReleaseOfOldToken) {
            let last_used = lease.token - 2 * lease.hand_overs;
            unsaid.ending = Ending::Clean { last_used };
        }
        let is_unsaid = network != Network::Works;
        *self.phase(thread) = Phase::Leaving {
            seat,
            unsaid: is_unsaid.then_some(unsaid),
        };
    }

    /// The call, or the guard, is at its end.
    pub fn finish(&mut self, thread: Number, seat: bool, unsaid: Option<Deferred>) {
        if let Some(unsaid) = unsaid {
            self.defer(unsaid);
        }
        self.return_from_call(thread);
        if seat {
            self.drop_seat();
        }
    }

    pub fn defer(&mut self, deferred: Deferred) {
        self.state.process.deferred.push(deferred);
    }

    /// The thread in the background makes a release.
    pub fn release_deferred(&mut self, at: usize, network: Network) {
        let Deferred { mut owner, ending } = self.state.process.deferred[at];
        if self.arrives(network) {
            self.state.judge.releases(owner, ending);
            if self.is(Mutant::DeferredReleaseOfOtherOwner) {
                let holders = self.state.process.phases().filter(|phase| phase.has_seat());
                let other = holders.filter_map(|phase| phase.lease()).next();
                owner = other.map_or(owner, |lease| lease.owner);
            }
            self.state.server.release(owner, ending, self.setup);
        }
        if network == Network::Works {
            self.state.process.deferred.remove(at);
        }
    }
}
