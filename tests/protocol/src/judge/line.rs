//! Those who wait: they stand in a line, are let in while they live, and in their order.

use super::scripts::Seen;
use super::{Excuse, Rule};
use crate::server::{Call, Ear, Mode, Name, Owner, Says};
use crate::setup::Setup;
use crate::world::{AllNames, Phase, World};

impl World {
    /// Nobody is let in who is known to be dead.
    pub(super) fn judge_grant_to_waiter(&mut self, seen: &Seen<'_>, owner: Owner) {
        let Some(waiter) = seen.before.waiter(owner) else {
            // Nobody asked for it.
            self.judge.broke(Rule::Service);
            return;
        };
        let ear = waiter.inbox.map(|inbox| self.ears[usize::from(inbox)]);
        if !waiter.lives() || ear == Some(Ear::Gone) {
            self.judge.broke(Rule::Service);
        }
    }

    pub(super) fn judge_order(&mut self, setup: &Setup, seen: &Seen<'_>, owner: Owner) {
        let mode = setup.want(owner).mode;
        let line = self.judge.records[seen.at].line.clone();
        let before = line.iter().take_while(|one| **one != owner);
        let holders = self.names[seen.at].holders();
        let reads_on = mode == Mode::Read
            && matches!(seen.before.lock, Some(lock) if lock.says == Says::Readers)
            && !holders_over(seen.before);
        for other in before.filter(|other| !holders.contains(other)) {
            let others = setup.want(*other).mode;
            let same_line = mode.is_read() == others.is_read();
            let is_passed = (same_line && mode != Mode::EagerRead)
                || (reads_on && others.is_exclusive() && !self.is_downgraded(seen, owner));
            if !is_passed {
                continue;
            }
            let is_late = self.judge.watches[Setup::client_of(owner)].late;
            if is_late || !self.is_waiting(owner) {
                self.judge.excuse(Excuse::LateCopyServed);
            } else if self.judge.records[seen.at].torn {
                self.judge.excuse(Excuse::LineForgotten);
            } else {
                let excused = self.is_passed_over(seen.before, *other);
                self.judge
                    .broke_unless(Rule::Order, excused, Excuse::PassedOver);
            }
        }
    }

    fn is_downgraded(&self, seen: &Seen<'_>, owner: Owner) -> bool {
        matches!(seen.call, Call::Downgrade { .. }) && seen.owner == Some(owner)
    }

    /// Whether its client wants the lock for this owner.
    fn is_waiting(&self, owner: Owner) -> bool {
        let client = &self.clients[Setup::client_of(owner)];
        client.owner == owner
            && matches!(client.phase, Phase::Asking { .. } | Phase::Waiting { .. })
    }

    /// Whether one that waits may lose its turn.
    fn is_passed_over(&self, name: &Name, owner: Owner) -> bool {
        let client = &self.clients[Setup::client_of(owner)];
        let has_moved = !self.is_waiting(owner) || client.stopped;
        let waiter = name.waiter(owner);
        let can_be_told = waiter.is_some_and(|waiter| {
            let ear = waiter.inbox.map(|inbox| self.ears[usize::from(inbox)]);
            waiter.lives() && ear == Some(Ear::Hears)
        });
        has_moved || !can_be_told
    }

    /// Who has lost one of several names gives up the others, and enters all lines anew.
    pub(super) fn judge_reentry(
        &mut self,
        setup: &Setup,
        before: &AllNames,
        owner: Owner,
        call: Call,
    ) {
        let names = setup.want(owner).names;
        if names.count < 2 || !matches!(call, Call::Acquire(_)) {
            return;
        }
        let knows = |name: &&Name| name.owner() == Some(owner) || name.waiter(owner).is_some();
        let known = before.iter().filter(knows).count();
        let lost_place = |name: &Name| name.waiter(owner).is_some() && !name.queue.contains(&owner);
        if known < usize::from(names.count) || before.iter().any(lost_place) {
            for record in &mut self.judge.records {
                record.line.retain(|one| *one != owner);
            }
        }
    }

    /// Who stands in line now.
    pub(super) fn judge_line(&mut self, seen: &Seen<'_>) {
        let line = self.judge.records[seen.at].line.clone();
        for owner in line {
            if self.names[seen.at].waiter(owner).is_some() {
                continue;
            }
            self.judge.records[seen.at].line.retain(|one| *one != owner);
            let asks = seen.owner == Some(owner);
            if !asks && self.judge.records[seen.at].torn {
                self.judge.excuse(Excuse::LineForgotten);
            } else if !asks {
                let excused = self.is_passed_over(seen.before, owner);
                self.judge
                    .broke_unless(Rule::Order, excused, Excuse::PassedOver);
            }
        }
        if let Some(owner) = seen.owner {
            let client = &self.clients[Setup::client_of(owner)];
            let waits = matches!(
                client.phase,
                Phase::Asking { waits: true, .. } | Phase::Waiting { .. }
            );
            let stands = self.names[seen.at].waiter(owner).is_some();
            let line = &mut self.judge.records[seen.at].line;
            if stands && waits && client.owner == owner && !line.contains(&owner) {
                line.push(owner);
            }
        }
        let name = &self.names[seen.at];
        let is_empty = name.queue.is_empty() && name.readers.is_empty() && name.waiters.is_empty();
        self.judge.records[seen.at].torn &= !is_empty;
    }
}

/// Whether those that share it are all over.
fn holders_over(name: &Name) -> bool {
    name.shares.iter().all(|share| share.lasts <= 0)
}
