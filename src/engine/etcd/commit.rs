//! What an owner does with a lock that it has: only if its entries are as it has written them, or as they were found.

use super::client::{Answer, Compare, Failure, LeaseId, Op, OpResult, Txn};
use super::keys::{Keys, Text, entry_of, line_of};
use super::leases::{Own, ServerLease};
use super::store::{ENDING, EtcdStore, delete, get, got, next_keepalive, put_marker, reading};
use crate::base::{Deadline, Mode, Owner, Result};
use crate::engine::line::{
    Commit, Committed, Entry, Line, LineLeases, OwnSnapshot, Write, revision_of, until_answered,
    uuid_of,
};
use crate::engine::{Outcome, Request};

impl LineLeases for EtcdStore {
    /// Keeps the owner's lease alive, and then looks whether it has its entries: so the servers that had the lease
    /// kept alive are those that have the keys.
    fn prove(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        let error = |e| self.error(Some(request.key().name()), e);
        let Some(own) = self.owners.get(request.owner) else {
            // Its lease has ended long ago.
            return Ok(lost(&self.own(request, deadline)?));
        };
        let keys = self.keys(request.claim);
        let mut ops = show(&keys, &own, request.owner);
        if own.has_marker {
            ops.extend(keys.iter().map(|keys| get(keys.marker_of(&own.id))));
        }
        let kept = self.keep_alive(request, &own, &reading(ops), deadline);
        let mut kept = kept.map_err(error)?;
        let entered = kept.answer.results.split_off(2 * keys.len());
        let found = found(kept.answer, &keys, request);
        // Without its lease it loses its keys at any moment.
        let is_its = |one: &OwnSnapshot| {
            let entry = one.own.as_ref();
            entry.is_some_and(|entry| entry.session == Some(own.lease.id.0))
        };
        let Some(since) = kept.since.filter(|_| found.iter().all(is_its)) else {
            if !request.claim.is_multi() {
                self.drop_lease(request.owner, &deadline.within(ENDING));
            }
            return Ok(lost(&found));
        };
        if entered.contains(&OpResult::Got(Vec::new())) {
            self.remember(request, &keys, &own, deadline);
        }
        Ok(Outcome::since(since))
    }

    fn own(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<OwnSnapshot>> {
        let (own, keys) = (self.known(request.owner), self.keys(request.claim));
        let answer = self.read(show(&keys, &own, request.owner), deadline);
        let answer = answer.map_err(|e| self.error(Some(request.key().name()), e))?;
        Ok(found(answer, &keys, request))
    }

    fn commit(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        deadline: &Deadline,
    ) -> Result<Committed> {
        let error = |e| self.error(Some(request.key().name()), e);
        let from = other_owner(request, commit);
        let mut own = match from {
            Some(_) => self.own_of(request, deadline).map_err(error)?,
            None => self.known(request.owner),
        };
        let kept = match commit.entries {
            Write::Keep(time) => Some(self.leases.grant(time, deadline).map_err(error)?.0),
            _ => None,
        };
        let keys = self.keys_in(request, commit);
        let (old, text) = texts(request, commit, &mut own);
        let txn = Txn {
            compares: as_known(request, commit, &keys, &own),
            then: changes(commit, &keys, &own, (old, &text), kept),
            otherwise: show(&keys, &own, request.owner),
        };
        if let (Some(_), Some(text)) = (from, &text) {
            // Its release finds them where they are then, also without an answer.
            own.text = text.to_bytes();
            self.know(request, own.clone());
        }
        let (answer, is_repeated) = self.write_commit(request, commit, &txn, deadline)?;
        if answer.as_ref().is_some_and(|answer| answer.succeeded) {
            let since = from.map(|_| own.lease.since);
            self.committed(request, commit, (&own, text, from), deadline);
            return Ok(Committed::Done { is_repeated, since });
        }
        if let Some(lease) = kept {
            self.leases.revoke(lease.id, deadline);
        }
        let found = answer.map_or_else(Vec::new, |answer| found(answer, &keys, request));
        Ok(Committed::Refused { found, is_repeated })
    }

    fn lines(&self, request: Request<'_>, deadline: &Deadline) -> Result<Vec<Line>> {
        let keys = self.keys(request.claim);
        let ops: Vec<_> = keys.iter().map(|keys| Op::Get(keys.line())).collect();
        let answer = self.until_read(Some(request.key().name()), &ops, deadline)?;
        let lines = keys.iter().zip(got(answer));
        Ok(lines.map(|(keys, found)| line_of(keys, found)).collect())
    }

    fn resume(
        &self,
        request: Request<'_>,
        entries: &[Entry],
        _deadline: &Deadline,
    ) -> Result<bool> {
        let Some(entry) = entries.first() else {
            return Ok(false);
        };
        let (Some(lease), Some(text)) = (entry.session.map(LeaseId), Text::of(entry)) else {
            return Ok(false);
        };
        let mut own = self.known(request.owner);
        if own.lease.id != lease {
            own.lease = ServerLease {
                id: lease,
                ..own.lease
            };
            own.keepalive = next_keepalive(own.lease.since, request.ttl);
        }
        let is_alone = text.mode == Mode::Exclusive;
        match (own.has_marker, is_alone) {
            (true, false) => self.leases.forgets(),
            (false, true) => self.leases.remembers(),
            _ => {}
        }
        (own.id, own.text) = (entry.id.clone(), text.to_bytes());
        own.has_marker = is_alone;
        self.know(request, own);
        Ok(true)
    }
}

impl EtcdStore {
    /// The keys of the names that a commit is about.
    fn keys_in(&self, request: Request<'_>, commit: &Commit<'_>) -> Vec<Keys> {
        let keys = self.keys(request.claim);
        match commit.found {
            Some(found) => found.iter().map(|(name, _)| keys[*name].clone()).collect(),
            None => keys,
        }
    }

    /// `None`: the lease that the owner was to have is gone, and it takes another.
    fn write_commit(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<(Option<Answer>, bool)> {
        let may_lack_lease = matches!(commit.entries, Write::Become { .. });
        let write = || match self.write(request.owner, txn, deadline) {
            Err(e) if may_lack_lease && matches!(e.error, Failure::LeaseGone) => Ok(None),
            Err(e) => Err(self.failed(request.key().name(), e)),
            Ok(answer) => Ok(Some(answer)),
        };
        let (answer, is_repeated) = until_answered(deadline, write)?;
        if answer.is_none() {
            self.drop_lease(request.owner, deadline);
        }
        Ok((answer, is_repeated))
    }

    /// Knows what an owner has after a commit.
    fn committed(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        (own, text, from): (&Own, Option<Text>, Option<&Owner>),
        deadline: &Deadline,
    ) {
        if own.has_marker && commit.is_clean {
            self.leases.forgets();
        }
        match (commit.entries, text) {
            (Write::Nothing, _) => {}
            (Write::Leave | Write::Keep(_), _) => self.owners.change(request.owner, |own| {
                own.is_released = commit.is_clean;
                own.is_kept = commit.entries != Write::Leave;
            }),
            (Write::Become { .. }, text) => self.owners.change(request.owner, |own| {
                own.has_marker &= !commit.is_clean;
                own.text = text.map_or_else(Vec::new, |text| text.to_bytes());
            }),
        }
        if let Some(from) = from {
            self.follow(request, commit, from, deadline);
        }
    }

    /// The owner goes on in the entries of another.
    fn follow(&self, request: Request<'_>, commit: &Commit<'_>, from: &Owner, deadline: &Deadline) {
        if request.claim.is_exclusive() {
            self.leases.remembers();
            self.owners
                .change(request.owner, |own| own.has_marker = true);
        }
        let first = commit.found.and_then(<[_]>::first);
        if let Some(other) = self.owners.get(from) {
            // It was an owner of this process: what tells of it is counted once. The entries are still called after
            // its lease, so nobody else gets that.
            if other.has_marker {
                self.leases.forgets();
            }
            self.owners.change(from, |own| own.is_released = true);
            self.drop_lease(from, deadline);
        } else if let Some(lease) = first.and_then(|(_, entry)| entry.session) {
            // A question of the other that comes late would take the entries back.
            self.leases.revoke(LeaseId(lease), deadline);
        }
    }

    /// What the next has to be told if this owner doesn't release is told again: it lasts for a day.
    fn remember(&self, request: Request<'_>, keys: &[Keys], own: &Own, deadline: &Deadline) {
        let Ok(memory) = self.leases.memory(deadline) else {
            return;
        };
        let value = |keys: &Keys| Compare::Value(keys.place(&own.id), own.text.clone());
        let entered = |keys: &Keys| put_marker(keys, own, memory);
        let txn = Txn {
            compares: keys.iter().map(value).collect(),
            then: keys.iter().map(entered).collect(),
            otherwise: Vec::new(),
        };
        // The next renewal finds whether it was done.
        let written = self.write(request.owner, &txn, deadline);
        if matches!(written, Err(e) if matches!(e.error, Failure::LeaseGone)) {
            self.leases.lose_memory();
        }
    }
}

/// Why an owner has nothing any more.
fn lost(found: &[OwnSnapshot]) -> Outcome {
    match found.iter().any(|one| one.is_broken) {
        true => Outcome::BROKEN,
        false => Outcome::NOT_OWNER,
    }
}

/// Whose entries a commit makes the request's owner's.
fn other_owner<'a>(request: Request<'_>, commit: &Commit<'a>) -> Option<&'a Owner> {
    let (_, entry) = commit.found?.first()?;
    entry.owner().filter(|_| !entry.is_of(request.owner))
}

/// What is in the entries before a commit, and what it writes into them. The owner's are called as those that were
/// found.
fn texts(request: Request<'_>, commit: &Commit<'_>, own: &mut Own) -> (Option<Text>, Option<Text>) {
    let old = match commit.found.and_then(<[_]>::first) {
        Some((_, entry)) => {
            own.id = entry.id.clone();
            Text::of(entry)
        }
        None => Text::parse(&own.text),
    };
    let text = old.clone().and_then(|old| written(old, request, commit));
    (old, text)
}

/// What a commit writes into entries with that text.
fn written(old: Text, request: Request<'_>, commit: &Commit<'_>) -> Option<Text> {
    match commit.entries {
        Write::Nothing | Write::Leave => None,
        Write::Keep(_) => Some(Text { owner: None, ..old }),
        Write::Become { mode, token } => Some(Text {
            mode,
            owner: Some(request.owner.clone()),
            token: Some(token),
            ..old
        }),
    }
}

/// The entries are as they were found, or as their owner has written them.
fn as_known(request: Request<'_>, commit: &Commit<'_>, keys: &[Keys], own: &Own) -> Vec<Compare> {
    let place = |keys: &Keys| keys.place(&own.id);
    if let Some(found) = commit.found {
        let found = keys.iter().zip(found);
        let as_found = found.map(|(keys, (_, one))| Compare::ModifiedAt(place(keys), one.version));
        return as_found.collect();
    }
    let mut compares = Vec::with_capacity(2 * keys.len());
    for keys in keys {
        compares.extend(created(request).map(|at| Compare::CreatedAt(place(keys), at)));
        compares.push(Compare::Value(place(keys), own.text.clone()));
    }
    compares
}

fn changes(
    commit: &Commit<'_>,
    keys: &[Keys],
    own: &Own,
    (old, text): (Option<Text>, &Option<Text>),
    kept: Option<ServerLease>,
) -> Vec<Op> {
    let lease = kept.unwrap_or(own.lease).id;
    let was_alone = old.is_some_and(|old| old.mode == Mode::Exclusive);
    let mut ops = Vec::with_capacity(2 * keys.len() + 1);
    for keys in keys {
        let key = keys.place(&own.id);
        match (commit.entries, text) {
            (Write::Nothing, _) | (Write::Become { .. }, None) => {}
            (Write::Leave, _) | (Write::Keep(_), None) => ops.push(delete(key)),
            (Write::Keep(_) | Write::Become { .. }, Some(text)) => ops.push(Op::Put {
                key,
                value: text.to_bytes(),
                lease: Some(lease),
            }),
        }
        if was_alone && commit.is_clean {
            ops.push(Op::Delete(keys.markers()));
        }
    }
    if let (Some(keys), Some(value)) = (keys.first(), commit.value) {
        ops.push(Op::Put {
            key: keys.value(),
            value: value.to_vec(),
            lease: None,
        });
    }
    ops
}

/// Shows the entries of an owner, and whether it was broken.
fn show(keys: &[Keys], own: &Own, owner: &Owner) -> Vec<Op> {
    let ops = |keys: &Keys| [get(keys.place(&own.id)), get(keys.broken(uuid_of(owner)))];
    keys.iter().flat_map(ops).collect()
}

/// What [`show`] has shown.
fn found(answer: Answer, keys: &[Keys], request: Request<'_>) -> Vec<OwnSnapshot> {
    let mut got = got(answer);
    let mut found = Vec::with_capacity(keys.len());
    for keys in keys {
        let (entry, broken) = (got.next(), got.next());
        let entry = entry.and_then(|found| found.into_iter().next());
        let entry = entry.map(|entry| entry_of(keys, entry));
        found.push(OwnSnapshot {
            own: entry.filter(|entry| is_of(entry, request)),
            is_broken: broken.is_some_and(|broken| !broken.is_empty()),
        });
    }
    found
}

/// A late copy of the owner's question may have put its entry anew, when it was lost: then others may have had the
/// name since.
fn is_of(entry: &Entry, request: Request<'_>) -> bool {
    let is_same = created(request).is_none_or(|at| at == entry.place);
    is_same && entry.is_of(request.owner)
}

/// When the entries of the lease were created, if the request is about one that was granted.
fn created(request: Request<'_>) -> Option<u64> {
    request.granted.map(revision_of)
}
