//! What guards say: exclusion, tokens, `abandoned`, `unlock`.

use super::{Excuse, Ghost, Judge, Rule, Since};
use crate::server::Mode;
use crate::setup::Setup;
use crate::world::{Lease, Phase, World};

/// What the records of its names say when there is a new guard.
struct Before {
    /// Whether its token is larger than those before.
    in_order: bool,
    /// Whether somebody had one of the names, and hasn't released it.
    is_unreleased: bool,
    since: Since,
}

impl World {
    /// No two guards are held at once that exclude each other.
    pub(crate) fn judge_guards(&mut self, setup: &Setup) {
        for one in 0..self.clients.len() {
            let Some(lease) = self.clients[one].held(setup) else {
                let is_holding = matches!(self.clients[one].phase, Phase::Holding(_));
                self.judge.watches[one].over |= is_holding;
                continue;
            };
            if self.judge.watches[one].over {
                self.judge.broke(Rule::LostForGood);
            }
            for other in one + 1..self.clients.len() {
                let Some(others) = self.clients[other].held(setup) else {
                    continue;
                };
                let names = self.want(setup, one).names;
                if names.meets(self.want(setup, other).names)
                    && !self.may_share(setup, (one, lease), (other, others))
                {
                    let held = |client: &usize| self.clients[*client].held(setup).is_some();
                    let forgotten = (0..self.clients.len())
                        .filter(held)
                        .any(|client| self.judge.watches[client].forgotten);
                    let watches = &self.judge.watches;
                    let broken = watches[one].broken || watches[other].broken;
                    let excuse = if broken {
                        Excuse::OverlapAfterBreak
                    } else {
                        Excuse::OverlapAfterForgetting
                    };
                    self.judge
                        .broke_unless(Rule::Exclusion, broken || forgotten, excuse);
                }
            }
        }
    }

    fn may_share(
        &self,
        setup: &Setup,
        (one, its): (usize, Lease),
        (other, others): (usize, Lease),
    ) -> bool {
        // What was broken is judged beside each that it meets, and not where two others meet.
        let counts =
            |client: usize| [one, other].contains(&client) || !self.judge.watches[client].broken;
        match (its.mode, others.mode) {
            (Mode::Read, Mode::Read) => true,
            (Mode::Permits { of, .. }, Mode::Permits { .. }) => {
                let all = self.clients.iter().enumerate();
                let held = all.filter_map(|(at, client)| client.held(setup).filter(|_| counts(at)));
                held.map(|lease| lease.mode.count()).sum::<u8>() <= of
            }
            _ => false,
        }
    }

    /// A client has a new guard; `again`: for a lease that it had.
    pub(crate) fn judge_guard(&mut self, setup: &Setup, client: usize, again: bool) {
        let Some(lease) = self.clients[client].lease() else {
            return;
        };
        for watch in &mut self.judge.watches {
            watch.unserved = 0;
        }
        let found = self.record_guard(setup, client, lease, again);
        if !found.in_order {
            let watch = self.judge.watches[client];
            let excuse = if watch.broken {
                Excuse::TokenAfterBreak
            } else {
                Excuse::GrantFromBefore
            };
            let is_excused = watch.broken || watch.forgotten;
            self.judge.broke_unless(Rule::Tokens, is_excused, excuse);
            return;
        }
        if !again {
            let told = lease.token.rem_euclid(4) == 3;
            self.judge
                .judge_abandonment(told, found.is_unreleased, found.since);
        }
    }

    /// Writes the guard's token down in the records of its names, and tells what they said before.
    fn record_guard(&mut self, setup: &Setup, client: usize, lease: Lease, again: bool) -> Before {
        let names = self.want(setup, client).names;
        let exclusive = lease.mode.is_exclusive();
        let watch = self.judge.watches[client];
        let forgotten = watch.forgotten || watch.broken;
        let (mut in_order, mut is_unreleased) = (true, false);
        let mut since = Since::default();
        for at in (0..self.names.len()).filter(|at| names.has(*at)) {
            let record = &mut self.judge.records[at];
            let after = if exclusive {
                record.last
            } else {
                record.last_exclusive
            };
            in_order &= lease.token > after;
            record.last = record.last.max(lease.token);
            is_unreleased |= record.unreleased.is_some();
            since = since.and(record.before).and(record.since);
            if exclusive && lease.token > after {
                record.last_exclusive = lease.token;
            }
            if exclusive && lease.token > after && !again {
                record.unreleased = Some(self.clients[client].owner);
                if !forgotten {
                    record.before = Since::default();
                }
            }
        }
        Before {
            in_order,
            is_unreleased,
            since,
        }
    }

    /// A holder is told that the lock isn't its own: from now on it knows what the server forgot, or what was broken.
    pub(crate) fn judge_refusal(&mut self, client: usize) {
        let watch = &mut self.judge.watches[client];
        (watch.forgotten, watch.broken) = (false, false);
    }

    /// `unlock` says Ok.
    pub(crate) fn judge_unlock(&mut self, client: usize) {
        let watch = self.judge.watches[client];
        // A replica may bring a lease back as it was.
        if (watch.broken || watch.intruded) && !watch.revived {
            self.judge.broke(Rule::Unlock);
        }
    }

    /// An acquisition is over, and its client believes that the server knows nothing of it any more; `left`: that it
    /// may.
    pub(crate) fn judge_finish(&mut self, setup: &Setup, client: usize, left: bool) {
        let owner = self.clients[client].owner;
        let watch = self.judge.watches[client];
        if left || watch.late || watch.forgotten || watch.revived || self.has_packet_of(owner) {
            return;
        }
        let names = setup.want(owner).names;
        let knows = |at: &usize| {
            let name = &self.names[*at];
            name.is_held_by(owner) || name.waiter(owner).is_some()
        };
        for at in (0..self.names.len()).filter(|at| names.has(*at) && knows(at)) {
            let torn = self.judge.records[at].torn;
            let excuse = Excuse::LineForgotten;
            self.judge.broke_unless(Rule::NothingLeft, torn, excuse);
        }
    }
}

impl Judge {
    /// Whether a new guard is told of an abandonment, and was to be.
    fn judge_abandonment(&mut self, told: bool, expected: bool, since: Since) {
        match (told, expected, since.ghost) {
            (true, false, Some(Ghost::LateCopy)) => self.excuse(Excuse::LateCopyAbandons),
            (true, false, Some(Ghost::UnknownGrant)) => self.excuse(Excuse::UnknownGrantAbandons),
            (true, false, None) => {
                self.broke_unless(Rule::Abandoned, since.forgot, Excuse::ReleaseForgotten);
            }
            (false, true, _) => {
                self.broke_unless(Rule::Abandoned, since.forgot, Excuse::AbandonmentForgotten);
            }
            _ => {}
        }
    }
}
