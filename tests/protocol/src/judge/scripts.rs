//! What scripts do: the counter, ttls, who is let in, and how exclusive leases end.

use super::{Ghost, Rule};
use crate::server::{Acquired, Answer, Call, List, Name, Owner, Renewed, Token};
use crate::setup::Setup;
use crate::world::{AllNames, Body, Packet, Phase, Reply, World};

/// One script, and what there was before it.
pub(super) struct Seen<'a> {
    pub(super) before: &'a Name,
    pub(super) at: usize,
    /// Who asks; nobody where somebody breaks a lock.
    pub(super) owner: Option<Owner>,
    pub(super) call: Call,
    /// Who has the lock now and had it not.
    new: List<Owner>,
}

impl World {
    pub(crate) fn judge_script(
        &mut self,
        setup: &Setup,
        before: &AllNames,
        packet: Packet,
        call: Call,
        answer: Answer,
    ) {
        let owner = packet.owner;
        let client = Setup::client_of(owner);
        let is_current = self.clients[client].owner == owner;
        self.judge.watches[client].late |= packet.orphan && is_current;
        self.judge_reentry(setup, before, owner, call);
        for (at, before) in before.iter().enumerate() {
            if !setup.want(owner).names.has(at) {
                continue;
            }
            self.judge_name(setup, before, at, (Some(owner), call));
        }
        let renewed = answer == Answer::Renewed(Renewed::Done);
        if renewed && is_current && self.judge.watches[client].broken {
            self.judge.broke(Rule::Broken);
        }
        // A replica may bring a lease back as it was.
        let watch = self.judge.watches[client];
        let is_renewal = matches!(call, Call::Renew(_));
        if renewed && is_current && is_renewal && watch.intruded && !watch.revived {
            self.judge.broke(Rule::Renewal);
        }
        let kept = match answer {
            Answer::Acquired(Acquired::Granted { .. }) => true,
            Answer::Adopted(token) => token > 0,
            _ => renewed,
        };
        if kept && !packet.orphan {
            self.judge_known(owner);
        }
    }

    /// Somebody has broken the lock of a name.
    pub(crate) fn judge_break(&mut self, setup: &Setup, before: &Name, at: usize) {
        for (client, one) in self.clients.iter().enumerate() {
            let is_held = before.is_held_by(one.owner) && setup.want(one.owner).names.has(at);
            let watch = &mut self.judge.watches[client];
            // What it has released by now it has anew, by a late copy of its request.
            let is_over = watch.released && matches!(one.phase, Phase::Ending { .. });
            watch.broken |= is_held && !is_over;
        }
        if let Some(owner) = before.owner() {
            self.judge_ghost(at, owner);
        }
        self.judge_name(setup, before, at, (None, Call::Break));
    }

    fn judge_name(
        &mut self,
        setup: &Setup,
        before: &Name,
        at: usize,
        (owner, call): (Option<Owner>, Call),
    ) {
        let mut new = self.names[at].holders();
        let had = before.holders();
        new.retain(|one| !had.contains(one));
        let seen = Seen {
            before,
            at,
            owner,
            call,
            new,
        };
        self.judge_keys(&seen);
        self.judge_end(setup, &seen);
        self.judge_give_up(&seen);
        self.judge_grants(setup, &seen);
        self.judge_line(&seen);
    }

    /// Whether no grant from before is still on its way to an owner.
    fn hears_once(&self, owner: Owner) -> bool {
        let client = &self.clients[Setup::client_of(owner)];
        let is_grant = |one: &&Packet| {
            let tells = matches!(one.body, Body::Grant(_) | Body::Reply(Reply::Granted(_)));
            one.owner == owner && tells
        };
        client.news.is_none() && self.wire.iter().filter(is_grant).count() <= 1
    }

    /// The server knows of an owner's lease.
    fn judge_known(&mut self, owner: Owner) {
        let client = Setup::client_of(owner);
        let watch = &mut self.judge.watches[client];
        if self.clients[client].owner == owner && !watch.revived && !watch.intruded {
            watch.forgotten = false;
        }
    }

    fn judge_keys(&mut self, seen: &Seen<'_>) {
        let name = &self.names[seen.at];
        let went_back = number(seen.before).is_some_and(|old| number(name) < Some(old));
        let stays = name.lock.is_some_and(|lock| lock.lasts.is_none()) || name.stays;
        let stays = stays || (!name.shares.is_empty() && name.shares_last <= 0);
        if went_back {
            self.judge.broke(Rule::Counter);
        }
        if stays {
            self.judge.broke(Rule::Ttl);
        }
    }

    /// How a lease ended, if it did.
    fn judge_end(&mut self, setup: &Setup, seen: &Seen<'_>) {
        let Some(owner) = seen.owner else { return };
        self.judge_adoption(seen, owner);
        let was_its = seen.before.is_held_by(owner);
        let ends = matches!(seen.call, Call::Release(_) | Call::Downgrade { .. });
        let client = Setup::client_of(owner);
        if !ends || !was_its {
            return;
        }
        if self.clients[client].owner == owner {
            self.judge.watches[client].released = true;
        }
        let (Call::Release(_) | Call::Downgrade { .. }) = seen.call else {
            return;
        };
        let counter_after = match seen.call {
            Call::Release(release) => release.counter_after,
            Call::Downgrade { counter_after, .. } => counter_after,
            _ => 0,
        };
        let record = &mut self.judge.records[seen.at];
        if counter_after == 0 {
            // Nobody worked: what was to be told is still to be told.
            record.since = record.since.and(record.before);
            if setup.want(owner).names.count > 1 && tells_of_abandonment(seen.before) {
                // One token for several names: each of them tells it.
                record.since.ghost.get_or_insert(Ghost::UnknownGrant);
            }
        }
        let in_order = counter_after != 0 && counter_after % 2 == 0;
        if in_order && number(seen.before) >= Some(counter_after) {
            // A late copy of its request took the lock anew, by a token that the owner doesn't know.
            record.since.ghost = Some(Ghost::LateCopy);
        }
        if in_order && record.unreleased == Some(owner) && seen.before.owner().is_some() {
            record.unreleased = None;
        }
    }

    /// Of several names one was broken, and a request that came late gave up the others: as if nobody had worked with
    /// them.
    fn judge_give_up(&mut self, seen: &Seen<'_>) {
        let (Some(owner), Call::Acquire(_)) = (seen.owner, seen.call) else {
            return;
        };
        let is_broken = self.names.iter().any(|name| name.refuses_broken(owner));
        let gives_up = seen.before.is_held_by(owner) && !self.names[seen.at].is_held_by(owner);
        self.judge.records[seen.at].since.forgot |= is_broken && gives_up;
    }

    /// Who passed a lease on has ended it in order, when somebody else has it.
    fn judge_adoption(&mut self, seen: &Seen<'_>, owner: Owner) {
        let Call::Adopt(adopt) = seen.call else {
            return;
        };
        let is_adopted = seen.new.contains(&owner) && seen.before.is_held_by(adopt.from);
        let record = &mut self.judge.records[seen.at];
        if is_adopted && record.unreleased == Some(adopt.from) {
            record.unreleased = None;
        }
    }

    fn judge_grants(&mut self, setup: &Setup, seen: &Seen<'_>) {
        for owner in &seen.new {
            let asks = seen.owner == Some(*owner);
            if !asks {
                self.judge_grant_to_waiter(seen, *owner);
            }
            self.judge_broken(seen, *owner);
            if !matches!(seen.call, Call::Adopt(_)) {
                self.judge_order(setup, seen, *owner);
            }
            self.judge_intrusion(setup, seen, *owner);
            let record = &mut self.judge.records[seen.at];
            record.line.retain(|one| one != owner);
            if setup.want(*owner).mode.is_exclusive() {
                record.before = record.before.and(std::mem::take(&mut record.since));
            }
            if !asks && self.hears_once(*owner) {
                self.judge_known(*owner);
            }
        }
    }

    /// Nobody is let in whose lease was broken, while that would last.
    fn judge_broken(&mut self, seen: &Seen<'_>, owner: Owner) {
        let client = Setup::client_of(owner);
        let one = &self.clients[client];
        let is_current = one.owner == owner;
        let believes = one
            .lease()
            .is_some_and(|lease| lease.valid > 0 && !lease.refused);
        let watch = &mut self.judge.watches[client];
        if seen.before.refuses_broken(owner) || (is_current && watch.broken && believes) {
            self.judge.broke(Rule::Broken);
        } else if is_current {
            watch.broken = false;
        }
    }

    /// Others whose lease this is notice that they shared it with somebody who excludes them.
    fn judge_intrusion(&mut self, setup: &Setup, seen: &Seen<'_>, owner: Owner) {
        let mode = setup.want(owner).mode;
        for client in 0..self.clients.len() {
            let one = &self.clients[client];
            let Some(lease) = one.lease() else { continue };
            let is_out = one.owner != owner
                && !self.judge.watches[client].released
                && setup.want(one.owner).names.has(seen.at);
            if is_out && (mode.is_exclusive() || lease.mode.is_exclusive()) {
                self.judge.watches[client].intruded = true;
            }
        }
    }
}

fn tells_of_abandonment(name: &Name) -> bool {
    number(name).is_some_and(|number| number.rem_euclid(4) == 3)
}

pub(super) fn number(name: &Name) -> Option<Token> {
    name.counter.map(|counter| counter.number)
}
