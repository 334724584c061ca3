//! How lines are looked at, and what that shows.

use super::client::{Answer, KeyValue, Op};
use super::entry::line_of;
use super::far::settle;
use super::keys::{Keys, last_part};
use super::owners::Own;
use super::store::{EtcdStore, get, got, value_of};
use crate::base::claim::Mode;
use crate::engine::Request;
use crate::engine::line::{Line, Presence, Snapshot, uuid_of};

/// What is looked at of the names of a request, besides whether the owner was broken there.
pub(super) struct Look<'a> {
    request: Request<'a>,
    own: &'a Own,
    keys: Vec<Keys>,
    /// Whether whole lines are looked at, and not only the owner's entry, and those ahead of it.
    is_whole: bool,
    /// When the entry was created, if that is known.
    created: Option<u64>,
    /// So many of those ahead decide, the nearest ones; `None`: all.
    deciding: Option<u32>,
    /// Whether to see who was let in alone, and hasn't released, and the value.
    for_grant: bool,
}

impl<'a> Look<'a> {
    /// What decides whether an owner has the names, which was created then, if it knows that it is in line.
    pub(super) fn of(
        store: &EtcdStore,
        request: Request<'a>,
        own: &'a Own,
        created: Option<u64>,
    ) -> Self {
        let deciding = match request.claim.mode {
            Mode::Exclusive => Some(1),
            // Each of them has one at least.
            Mode::Permits { count, of } => Some(of.saturating_sub(count).saturating_add(1)),
            // Only one that doesn't read is in the way of a reader, however many readers are between.
            Mode::Shared => None,
        };
        let keys = store.keys(request.claim);
        Look {
            // etcd takes 128 operations in a transaction: of 40 names each may have three.
            is_whole: keys.len() > 1,
            created,
            deciding,
            for_grant: !request.claim.is_exclusive(),
            request,
            own,
            keys,
        }
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::with_capacity(4 * self.keys.len() + 1);
        for keys in &self.keys {
            if self.is_whole {
                ops.push(Op::Get(keys.line()));
            } else {
                ops.push(get(keys.place(&self.own.id)));
                ops.push(Op::Newest {
                    range: keys.line(),
                    before: self.created,
                    limit: self.limit(),
                });
            }
            ops.push(get(keys.broken(uuid_of(self.request.owner))));
            if self.for_grant {
                ops.push(Op::Get(keys.entered()));
            }
        }
        if self.for_grant && self.request.claim.valued {
            ops.extend(self.keys.first().map(|keys| get(keys.value())));
        }
        ops
    }

    /// Of those ahead one more is asked for than decide, so that it shows whether there are more, and one for the owner's entry.
    fn limit(&self) -> Option<u32> {
        Some(self.deciding?.saturating_add(2))
    }

    /// What its part of an answer shows. And whether others have come behind the owner, so that of those ahead too few were looked
    /// at.
    pub(super) fn seen(&self, store: &EtcdStore, answer: Answer) -> (Snapshot, bool) {
        let mut seen = Snapshot {
            lines: Vec::with_capacity(self.keys.len()),
            is_whole: true,
            own: Presence::Nothing,
            is_broken: false,
            is_abandoned: false,
            value: None,
            revision: answer.revision,
        };
        let (mut got, mut is_short) = (got(answer), false);
        for keys in &self.keys {
            is_short |= self.show(keys, &mut got, &mut seen);
            let mut is_there = || got.next().is_some_and(|entries| !entries.is_empty());
            seen.is_broken |= is_there();
            seen.is_abandoned |= self.for_grant && is_there();
        }
        let wants_value = self.for_grant && self.request.claim.valued;
        seen.value = wants_value.then(|| got.next().and_then(value_of));
        seen.own = self.presence(store, &seen.lines);
        store.note_sleeper(self.request, &seen);
        (seen, is_short)
    }

    fn show(
        &self,
        keys: &Keys,
        got: &mut impl Iterator<Item = Vec<KeyValue>>,
        seen: &mut Snapshot,
    ) -> bool {
        let mut first = got.next().unwrap_or_default();
        if self.is_whole {
            seen.lines.push(line_of(keys, first));
            return false;
        }
        let newest = got.next().unwrap_or_default();
        let is_all = self
            .limit()
            .is_none_or(|limit| newest.len() < limit as usize);
        let own = first.pop();
        let is_ahead = |one: &KeyValue| own.as_ref().is_none_or(|own| one.created < own.created);
        let mut ahead: Vec<_> = newest.into_iter().filter(is_ahead).collect();
        let is_short = !is_all
            && self
                .deciding
                .is_some_and(|least| ahead.len() < least as usize);
        seen.is_whole &= is_all;
        ahead.extend(own);
        seen.lines.push(line_of(keys, ahead));
        is_short
    }

    /// What the owner has, which came into all lines at once. An entry that was put again late came later than others that weren't
    /// looked at.
    fn presence(&self, store: &EtcdStore, lines: &[Line]) -> Presence {
        let owner = self.request.owner;
        let created = |line: &Line| line.find(owner).map(|(_, entry)| entry.place);
        let mut all = lines.iter().map(created);
        let first = all.next().flatten();
        let is_as_known = match self.created.filter(|_| !self.is_whole) {
            Some(created) => first == Some(created),
            None => first.is_some(),
        };
        let is_whole = is_as_known && all.all(|other| other == first);
        let entry = lines.first().and_then(|line| line.find(owner));
        store.owners.change(owner, |own| {
            own.created = first.filter(|_| is_whole);
            if let Some((_, entry)) = entry {
                own.modified = entry.version;
                if own.moving.map(|lease| lease.id.0) == entry.session {
                    settle(own, self.request.ttl, entry.version);
                }
            }
        });
        if store.distrusts_lease(owner, lines) {
            Presence::Remains
        } else if is_whole {
            Presence::Entries
        } else if lines.iter().any(|line| created(line).is_some()) {
            Presence::Remains
        } else {
            Presence::Nothing
        }
    }
}

/// Whether another than that one was let in alone, and hasn't released: of the ranges of all names.
pub(super) fn others(entered: &[Vec<KeyValue>], id: &str) -> bool {
    let mut all = entered.iter().flatten();
    all.any(|entry| last_part(&entry.key) != id)
}
