//! How lines are looked at, and what that shows; and how a waiter watches those in its way, and its own entry.

use std::time::Duration;

use super::client::{Answer, Event, KeyValue, Op, Range, Watch};
use super::far::{settle, time_to_acquire};
use super::keys::{Keys, last_part, line_of};
use super::leases::Own;
use super::store::{EtcdStore, get, got, value_of};
use crate::base::{Deadline, Mode, Result};
use crate::engine::Request;
use crate::engine::line::{Blocker, Line, LineWatch, Presence, Snapshot, Watched, uuid_of};

/// What is looked at of the names of a request, besides whether the owner was broken there.
pub(super) struct Look<'a> {
    request: Request<'a>,
    own: &'a Own,
    keys: Vec<Keys>,
    /// Whether whole lines are looked at, and not only the owner's entry, and those ahead of it.
    is_whole: bool,
    /// When the entry was created, if that is known.
    created: Option<u64>,
    /// How many of those ahead decide, the nearest first; `None`: all.
    deciding: Option<u32>,
    /// Whether to read the holder markers and the value.
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
            Mode::Exclusive | Mode::Task => Some(1),
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
                ops.push(keys.some_markers(1));
            }
        }
        if self.for_grant && self.request.claim.has_value {
            ops.extend(self.keys.first().map(|keys| get(keys.value())));
        }
        ops
    }

    /// Of those ahead one more is asked for than decide, so that it shows whether there are more, and one for the
    /// owner's entry.
    fn limit(&self) -> Option<u32> {
        Some(self.deciding?.saturating_add(2))
    }

    /// What its part of an answer shows. And whether others have come behind the owner, so that of those ahead too
    /// few were looked at.
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
        let wants_value = self.for_grant && self.request.claim.has_value;
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

    /// What the owner has, which came into all lines at once. An entry that was put again late came later than others
    /// that weren't looked at.
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

/// A watch of some keys of one line, or of all of it.
#[derive(Debug)]
pub(super) struct EtcdWatch {
    watch: Watch,
    names: Vec<Keys>,
    ranges: Vec<Range>,
    has_puts: bool,
    /// Those that count.
    keys: Vec<String>,
    /// The one before that in the way, if just one is in the way. When it is gone, that one may have come to the
    /// front: it is looked at if it hasn't gone in soon.
    before: Option<String>,
    time_to_acquire: Duration,
    /// When.
    looks: Option<Deadline>,
    /// What happened later than this is news.
    revision: u64,
    endpoint: String,
}

/// More keys aren't watched one by one, but with all of their line.
const MOST_WATCHED: usize = 32;

impl EtcdWatch {
    pub(super) fn begin(
        store: &EtcdStore,
        request: Request<'_>,
        (blocker, seen): (&Blocker, &Snapshot),
        deadline: &Deadline,
    ) -> Result<Watched<Self>> {
        let names = store.keys(request.claim);
        let (keys, mut ranges) = watched(&names[blocker.name], blocker);
        let before = one_before(blocker, seen).map(|id| names[blocker.name].place(id));
        ranges.extend(before.clone().map(Range::Key));
        let watch = store.client.watch(&ranges, blocker.heeds_changes, deadline);
        let watch = watch.map_err(|e| store.error(Some(request.key().name()), e))?;
        Ok(Watched {
            // Not also when it begins earlier: after data was restored the revisions that come are smaller.
            is_current: watch.begins_after() == blocker.revision,
            watch: EtcdWatch {
                watch,
                names,
                ranges,
                has_puts: blocker.heeds_changes,
                keys,
                before,
                time_to_acquire: time_to_acquire(request.ttl),
                looks: None,
                revision: blocker.revision,
                endpoint: store.client.endpoint().to_owned(),
            },
            holder: None,
        })
    }

    /// Whether events tell of one that counts. A watch that goes on may tell of what is over.
    fn is_news(&self, events: &[Event]) -> bool {
        let mut new = events.iter().filter(|one| self.revision < one.revision);
        new.any(|event| self.keys.contains(&event.key))
    }
}

/// The entry before the one that is in the way.
fn one_before<'a>(blocker: &Blocker, seen: &'a Snapshot) -> Option<&'a str> {
    let line = &seen.lines[blocker.name].0;
    let in_way = blocker.ahead.first().filter(|_| blocker.is_one)?;
    let at = line.iter().position(|entry| entry.id == *in_way)?;
    Some(&line[at.checked_sub(1)?].id)
}

/// The keys that count, and what is watched for them.
fn watched(name: &Keys, blocker: &Blocker) -> (Vec<String>, Vec<Range>) {
    let ids = blocker.ahead.iter().chain([&blocker.own]);
    let keys: Vec<_> = ids.map(|id| name.place(id)).collect();
    let ranges = match keys.len() {
        ..=MOST_WATCHED => keys.iter().cloned().map(Range::Key).collect(),
        _ => vec![name.line()],
    };
    (keys, ranges)
}

impl LineWatch for EtcdWatch {
    fn goes_on_for(&mut self, blocker: &Blocker, seen: &Snapshot) -> bool {
        let name = &self.names[blocker.name];
        let (keys, mut ranges) = watched(name, blocker);
        let before = one_before(blocker, seen).map(|id| name.place(id));
        let is_before = before == self.before;
        ranges.extend(before.map(Range::Key));
        let is_it = is_before && ranges == self.ranges && blocker.heeds_changes == self.has_puts;
        if is_it {
            (self.keys, self.revision) = (keys, blocker.revision);
        }
        is_it
    }

    fn wait(&mut self, until: &Deadline) -> Result<bool> {
        loop {
            let next = self
                .looks
                .as_ref()
                .map_or_else(|| until.clone(), |at| until.within(at.remaining()));
            let events = self.watch.next(&next);
            let events = events.map_err(|e| e.into_error(None, &self.endpoint))?;
            if self.is_news(&events) || self.looks.take_if(|at| at.is_over()).is_some() {
                return Ok(true);
            }
            let is_before = |event: &Event| self.before.as_ref() == Some(&event.key);
            if events.iter().any(is_before) {
                self.before = None;
                self.looks = Some(Deadline::after(self.time_to_acquire));
            } else if events.is_empty() {
                return Ok(false);
            }
        }
    }
}
