//! How the state of names is changed: the one way to do it.
//!
//! The files of all names are locked, in the order in which the claim has them, and read; the rules make the change;
//! what has changed is written, the files are unlocked, and who is concerned is told. A process that dies on the way
//! leaves each file as it was, or as it was to be; its own part in it ends with its presence.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use super::section::{LockMode, NameFile, Section};
use super::text::{Written, text_of, written_of};
use super::{dir::is_exhausted, files::Files, page::Found, presence};
use crate::base::{BootClock, BootInstant, Clock, Deadline, Key, Result};
use crate::engine::rules::{Entry, EntryState, PresenceId, Table};
use crate::engine::{Answer, Change, Outcome, Request};

/// However little time its caller has left: another process has the file locked for some microseconds, unless it is
/// stopped meanwhile.
const SHORTEST_TRY: Duration = Duration::from_millis(50);

/// However much it has left.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// Until when a file is tried that others have locked.
pub(super) fn try_until(deadline: &Deadline) -> Deadline {
    if deadline.remaining() < SHORTEST_TRY {
        Deadline::after(SHORTEST_TRY)
    } else {
        deadline.within(LONGEST_TRY)
    }
}

/// How an owner asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Whether it waits if the lock is taken.
    pub(super) waits: bool,
    /// Whether it looks if those ahead of it are gone. One that waits is told of that.
    pub(super) looks: bool,
    pub(super) lock_mode: LockMode,
}

/// What a waiter waits for.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The presences of those whose end may let it in.
    pub(super) presences: BTreeSet<PresenceId>,
    /// When it may come in although nobody does anything.
    pub(super) changes: Option<BootInstant>,
    /// How many wait ahead of it.
    pub(super) place: u32,
}

impl Ahead {
    pub(super) fn of(request: Request<'_>, table: &Table) -> Self {
        Ahead {
            presences: table.ahead_of(request),
            changes: table.changes(request),
            place: table.place_of(request),
        }
    }
}

/// A lease of a directory lasts until something ends it.
fn lasting(request: Request<'_>) -> Request<'_> {
    Request {
        ttl: Duration::MAX,
        ..request
    }
}

/// Some names, while their files are locked.
pub(super) struct Names<'a> {
    pub(super) files: &'a Files,
    pub(super) table: Table,
    parts: Vec<Part<'a>>,
    /// The presences that were looked at, and are open.
    alive: BTreeSet<PresenceId>,
}

/// One of them.
struct Part<'a> {
    key: &'a Key,
    section: Section<'a>,
    /// What it said.
    before: Written,
}

impl Files {
    /// Asks once. What fails has taken nothing, and an owner that was in the queue may still be there.
    pub(super) fn acquire(
        &self,
        request: Request<'_>,
        manner: Manner,
        deadline: &Deadline,
    ) -> Result<(Answer, Ahead)> {
        let when = (manner.lock_mode, deadline);
        self.change_by_presence(request, when, |names| names.ask(lasting(request), manner))
    }

    /// Makes a change that an owner may be named in from then on, by a presence that others find.
    pub(super) fn change_by_presence<T>(
        &self,
        request: Request<'_>,
        when: (LockMode, &Deadline),
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let (owner, error) = (request.owner, |e| self.error(request.key(), e));
        let is_new = self.take_presence(owner).map_err(error)?;
        let presence_of = || self.presences.of(owner).map(|one| one.id());
        let taken = presence_of();
        let changed = self.change(request.claim.keys(), when, |names| {
            let presence = self.presences.found(owner, &self.root);
            let presence = presence.map_err(error)?;
            names.table.set_presence(owner, Some(presence));
            Ok((change(names)?, names.table.mentions(owner)))
        });
        if changed.is_err() && (is_new || presence_of() != taken) {
            // Should anything have been written for it, that is over: by this presence, or by one that somebody has
            // removed.
            self.presences.close(owner);
        }
        let (done, stays) = changed?;
        if !stays {
            self.presences.give_back(owner);
        }
        Ok(done)
    }

    /// Makes a change to these names. Nothing is written if it fails.
    pub(super) fn change<T>(
        &self,
        keys: &[Key],
        (lock_mode, deadline): (LockMode, &Deadline),
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let until = try_until(deadline);
        let mut opened = Vec::with_capacity(keys.len());
        loop {
            opened.clear();
            for key in keys {
                opened.push(self.name(key)?);
            }
            let Some(mut names) = self.lock(keys, &opened, lock_mode, &until)? else {
                if until.is_over() {
                    return Err(self.busy(&keys[0]));
                }
                continue;
            };
            let done = change(&mut names)?;
            let told = names.write()?;
            drop(names);
            self.notify(told);
            return Ok(done);
        }
    }

    /// `None`: another file is at the path of one.
    fn lock<'a>(
        &'a self,
        keys: &'a [Key],
        opened: &'a [Arc<NameFile>],
        lock_mode: LockMode,
        until: &Deadline,
    ) -> Result<Option<Names<'a>>> {
        let mut names = Names::none(self);
        for (key, file) in keys.iter().zip(opened) {
            let section = file.section(lock_mode, until);
            let Some(section) = section.map_err(|e| self.error(key, e))? else {
                self.forget_name(key, file);
                return Ok(None);
            };
            if self.root.hold(file.root()) {
                self.presences.look_again();
            }
            names.add(key, section)?;
        }
        Ok(Some(names))
    }

    /// Tells owners to look again. One that isn't there any more needn't be told.
    pub(super) fn notify(&self, presences: impl IntoIterator<Item = PresenceId>) {
        for presence in presences {
            let notified = self
                .root
                .held()
                .and_then(|root| presence::notify(&root, presence));
            if let Err(e) = notified {
                log::debug!("can't wake a waiter, which will look by itself later: {e}");
            }
        }
    }
}

impl<'a> Names<'a> {
    fn none(files: &'a Files) -> Self {
        let mut table = Table::default();
        table.at(BootClock.now());
        Names {
            files,
            table,
            parts: Vec::new(),
            alive: BTreeSet::new(),
        }
    }

    fn add(&mut self, key: &'a Key, mut section: Section<'a>) -> Result<()> {
        let read = section.read();
        let found = read.map_err(|e| self.files.error(key, e))?;
        let before = found.and_then(written_of);
        let before = before.ok_or_else(|| self.files.no_state(key))?;
        self.table.put(key, before.name.clone(), before.counter);
        self.parts.push(Part {
            key,
            section,
            before,
        });
        Ok(())
    }

    fn ask(&mut self, request: Request<'_>, manner: Manner) -> Result<(Answer, Ahead)> {
        loop {
            let answer = self.table.ask(request, manner.waits, &self.files)?;
            match answer {
                Answer::Granted(_) => return Ok((answer, Ahead::default())),
                Answer::Broken => {
                    self.table.remove_broken(request.owner);
                    return Ok((answer, Ahead::default()));
                }
                Answer::Taken { .. } => {}
            }
            if !manner.looks || !self.end_those_gone(&self.table.ahead_of(request))? {
                return Ok((answer, Ahead::of(request, &self.table)));
            }
        }
    }

    pub(super) fn change(&mut self, request: Request<'_>, change: Change<'_>) -> Result<Outcome> {
        let table = &mut self.table;
        table.change(lasting(request), change, &mut self.files)
    }

    pub(super) fn give_away(&mut self, request: Request<'_>) {
        self.table.renew(request);
        self.table.set_presence(request.owner, None);
    }

    /// Whether somebody's lease of one of these names has ended without a word: whoever is gone of those.
    pub(super) fn end_those_gone(&mut self, of: &BTreeSet<PresenceId>) -> Result<bool> {
        let mut gone = BTreeSet::new();
        for presence in of {
            if self.is_gone(*presence)? {
                gone.insert(*presence);
            }
        }
        self.read_notes_of(&gone)?;
        self.table.end(&gone);
        Ok(!gone.is_empty())
    }

    /// Whoever was given a lease may have noted that it has seen it after the file was read, and before it ended.
    fn read_notes_of(&mut self, gone: &BTreeSet<PresenceId>) -> Result<()> {
        for part in &mut self.parts {
            if part.gave_to(gone) {
                let read = part.section.read();
                let found = read.map_err(|e| self.files.error(part.key, e))?;
                let found = found.ok_or_else(|| self.files.no_state(part.key))?;
                if let Found::Text { seen: Some(of), .. } = found
                    && let Some(state) = self.table.get_mut(part.key)
                {
                    state.has_seen(of);
                }
            }
        }
        Ok(())
    }

    fn is_gone(&mut self, presence: PresenceId) -> Result<bool> {
        if self.alive.contains(&presence) {
            return Ok(false);
        }
        let root = self.files.root.held();
        let is_gone = match root.and_then(|root| presence::is_gone(&root, presence)) {
            // Without a descriptor for it nobody can tell, so it counts as there.
            Err(e) if is_exhausted(&e) => Ok(false),
            looked => looked,
        };
        let is_gone = is_gone.map_err(|e| self.files.error(self.parts[0].key, e))?;
        if !is_gone {
            self.alive.insert(presence);
        }
        Ok(is_gone)
    }

    /// The owners that hold a name.
    pub(super) fn holders_of(&self, key: &Key) -> Vec<Entry> {
        let state = self.table.get(key);
        state.map_or_else(Vec::new, |state| state.owned().cloned().collect())
    }

    /// Writes what has changed, all of it or nothing, and says who is to be told.
    fn write(&mut self) -> Result<BTreeSet<PresenceId>> {
        let granted = self.table.take_granted();
        self.give(&granted);
        let mut told = granted.iter().filter_map(|one| one.presence).collect();
        // All of them before the first is written: a look at a presence may fail.
        let all: Result<Vec<_>> = (0..self.parts.len()).map(|at| self.after(at)).collect();
        for (at, after) in all?.into_iter().enumerate() {
            let part = &mut self.parts[at];
            if after == part.before {
                continue;
            }
            must_look_again(&part.before, &after, &mut told);
            if let Err(e) = part.section.write(&text_of(&after)) {
                let error = self.files.error(part.key, e);
                self.undo(at);
                return Err(error);
            }
        }
        Ok(told)
    }

    /// Those to whom the only name was granted that they wait for have their lease at once.
    fn give(&mut self, granted: &[Entry]) {
        // A change of several names may be undone in part.
        let [part] = &self.parts[..] else { return };
        for owner in granted.iter().filter_map(|one| one.owner.as_ref()) {
            if part.before.name.waits_alone(owner) {
                self.table.give(part.key, owner);
            }
        }
    }

    /// What is to be written of one. Of those whose lock was broken it leaves out who is gone, or had given it away.
    fn after(&mut self, at: usize) -> Result<Written> {
        let name = self.table.get(self.parts[at].key);
        let mut name = name.cloned().unwrap_or_default();
        let mut gone = BTreeSet::new();
        for broken in name.entries.iter().filter(|one| one.is_broken()) {
            match broken.presence {
                Some(presence) if !self.is_gone(presence)? => {}
                presence => drop(gone.insert(presence)),
            }
        }
        let entries = &mut name.entries;
        entries.retain(|one| !(one.is_broken() && gone.contains(&one.presence)));
        let counter = self.table.last_used();
        Ok(Written { counter, name })
    }

    /// Writes again what the parts before that one said.
    fn undo(&mut self, failed: usize) {
        for part in &mut self.parts[..=failed] {
            let text = text_of(&part.before);
            if let Err(e) = part.rewrite(&text) {
                log::warn!("can't undo a change of lock {:?}: {e}", part.key.name());
            }
        }
    }
}

/// Those that now wait for the end of another owner than before: they have to look, and to watch that one.
fn must_look_again(before: &Written, after: &Written, told: &mut BTreeSet<PresenceId>) {
    let mut waited = before.name.waiting();
    for (one, ahead) in after.name.waiting() {
        let Some((_, before)) = waited.find(|(was, _)| was.owner == one.owner) else {
            // It came just now, as all behind it.
            break;
        };
        // One without a presence ends at a time.
        let is_known = |one: &Option<PresenceId>| one.is_some() && before.contains(one);
        if ahead.is_empty() || !ahead.iter().all(is_known) {
            told.extend(one.presence);
        }
    }
}

impl Part<'_> {
    fn gave_to(&self, presences: &BTreeSet<PresenceId>) -> bool {
        let entries = self.before.name.entries.iter();
        let mut given = entries.filter(|one| matches!(one.state, EntryState::Given(_)));
        given.any(|one| one.presence.is_some_and(|one| presences.contains(&one)))
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        // Which of both texts it has now.
        self.section.read()?;
        self.section.write(text)
    }
}

#[cfg(test)]
mod tests;
