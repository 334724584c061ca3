//! How the state of names is changed: the one way to do it.
//!
//! The files of all names are locked, in the order in which the claim has them, and read; the rules make the change; what has
//! changed is written, the files are unlocked, and who is concerned is told. A process that dies on the way leaves each file as it was,
//! or as it was to be; its own part in it ends with its presence.

#[cfg(test)]
pub(super) mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::boot::BootId;
use super::calls::Ahead;
use super::dir::is_exhausted;
use super::files::Files;
use super::page::Found;
use super::presence::{self, PresenceId};
use super::section::{Entered, LockMode, NameFile, Section};
use super::text::Owners;
use super::text::written_of;
use super::text::{Presences, Written, text_of};
use crate::base::clock::{BootClock, BootInstant, Clock, Deadline};
use crate::base::error::Result;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::engine::Request;
use crate::engine::rules::{EntryState, NameState, Table};

/// However little time its caller has left: another process has the file locked for some microseconds, unless it is
/// stopped meanwhile.
const SHORTEST_TRY: Duration = Duration::from_millis(50);

/// However much it has left.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// Some names, while their files are locked.
pub(super) struct Names<'a> {
    files: &'a Files,
    pub(super) table: Table,
    presences: Presences,
    /// Whether an owner has another presence than the files say.
    has_other_presence: bool,
    /// Whose lease is to last without its presence.
    without_presence: Option<(Owner, PresenceId)>,
    pub(super) now: BootInstant,
    parts: Vec<Part<'a>>,
    /// Whose presence was looked at.
    alive: Owners,
}

/// One of them.
struct Part<'a> {
    key: &'a Key,
    section: Section<'a>,
    /// What it said.
    before: Written,
}

impl Files {
    /// Makes a change to these names. Nothing is written if it fails.
    pub(super) fn change<T>(
        &self,
        keys: &[Key],
        (lock_mode, deadline): (LockMode, &Deadline),
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let until = if deadline.remaining() < SHORTEST_TRY {
            Deadline::after(SHORTEST_TRY)
        } else {
            deadline.within(LONGEST_TRY)
        };
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
            match file
                .section(lock_mode, until)
                .map_err(|e| self.error(key, e))?
            {
                Entered::Section(section) => {
                    if self.root.hold(file.root()) {
                        self.presences.look_again();
                    }
                    names.add(key, section)?;
                }
                Entered::Replaced => {
                    self.forget_name(key, file);
                    return Ok(None);
                }
                Entered::Late => return Err(self.busy(key)),
            }
        }
        Ok(Some(names))
    }

    /// Tells owners to look again. One that isn't there any more needn't be told.
    fn notify(&self, presences: Vec<PresenceId>) {
        for presence in presences {
            let notified = self
                .root
                .held()
                .and_then(|root| presence::notify(&root, presence));
            if let Err(e) = notified {
                log::debug!("can't wake a waiter, which looks by itself later: {e}");
            }
        }
    }
}

impl<'a> Names<'a> {
    fn none(files: &'a Files) -> Self {
        Names {
            files,
            table: Table::default(),
            presences: Presences::default(),
            has_other_presence: false,
            without_presence: None,
            now: BootClock.now(),
            parts: Vec::new(),
            alive: Owners::default(),
        }
    }

    fn add(&mut self, key: &'a Key, mut section: Section<'a>) -> Result<()> {
        let read = section.read(&BootId::current());
        let found = read.map_err(|e| self.files.error(key, e))?;
        let before = found.and_then(|found| written_of(found, &mut self.presences));
        let before = before.ok_or_else(|| self.files.no_state(key))?;
        let state = before.name.clone();
        self.table.put(key, state, before.counter);
        self.parts.push(Part {
            key,
            section,
            before,
        });
        Ok(())
    }

    /// By which presence an owner of this process is known from now on.
    pub(super) fn set_presence(&mut self, owner: &Owner, presence: PresenceId) {
        let before = self.presences.insert(owner.clone(), presence);
        self.has_other_presence |= before.is_some_and(|before| before != presence);
    }

    /// Those ahead of an owner, as far as the files say it.
    pub(super) fn ahead(&self, request: Request<'_>) -> Ahead {
        Ahead::of(request, &self.table, &self.presences)
    }

    /// Whether its process lives doesn't matter any more.
    pub(super) fn leave_presence(&mut self, owner: &Owner) {
        self.without_presence = self.presences.remove_entry(owner);
    }

    /// Whether somebody's lease of one of these names has ended without a word: whoever is gone of those.
    pub(super) fn end_those_gone(&mut self, of: &[Owner]) -> Result<bool> {
        let mut gone = Owners::default();
        for owner in of {
            if self.is_gone(owner)? {
                gone.insert(owner.clone());
            }
        }
        self.read_notes_of(&gone)?;
        for part in &self.parts {
            self.table
                .end(part.key, &|owner| gone.contains(owner), self.now);
        }
        Ok(!gone.is_empty())
    }

    /// Whoever was given a lease may have noted that it has seen it after the file was read, and before it ended.
    fn read_notes_of(&mut self, gone: &Owners) -> Result<()> {
        for part in &mut self.parts {
            if part.gave_to(gone) {
                let read = part.section.read(&BootId::current());
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

    fn is_gone(&mut self, owner: &Owner) -> Result<bool> {
        if self.alive.contains(owner) {
            return Ok(false);
        }
        let Some(presence) = self.presences.get(owner) else {
            return Ok(false);
        };
        let root = self.files.root.held();
        let is_gone = match root.and_then(|root| presence::is_gone(&root, *presence)) {
            // Without a descriptor for it nobody can tell, so it counts as there.
            Err(e) if is_exhausted(&e) => Ok(false),
            looked => looked,
        };
        let is_gone = is_gone.map_err(|e| self.files.error(self.parts[0].key, e))?;
        if !is_gone {
            self.alive.insert(owner.clone());
        }
        Ok(is_gone)
    }

    pub(super) fn holders_of(&self, key: &Key) -> Vec<Owner> {
        let state = self.table.get(key);
        state.map_or_else(Vec::new, |state| state.owners().cloned().collect())
    }

    /// One whose lease was broken was told so.
    pub(super) fn remove_broken(&mut self, owner: &Owner) {
        for part in &self.parts {
            self.table.remove_broken(part.key, owner);
        }
    }

    /// Whether an owner stands in one of the files as they will be written.
    pub(super) fn mention(&self, owner: &Owner) -> bool {
        let mut states = self.parts.iter().map(|part| self.table.get(part.key));
        states.any(|state| state.is_some_and(|state| state.mentions(owner)))
    }

    /// Writes what has changed, all of it or nothing, and says who is to be told.
    fn write(&mut self) -> Result<Vec<PresenceId>> {
        let granted = self.table.take_granted();
        self.give(&granted);
        let mut told: Owners = granted.into_iter().collect();
        // All of them before the first is written: a look at a presence may fail.
        let all: Result<Vec<_>> = (0..self.parts.len()).map(|at| self.after(at)).collect();
        for (at, after) in all?.into_iter().enumerate() {
            if after == self.parts[at].before && !self.has_other_presence {
                continue;
            }
            self.must_look_again(&self.parts[at].before, &after, &mut told);
            let text = text_of(&after, &self.presences);
            let part = &mut self.parts[at];
            if let Err(e) = part.section.write(&BootId::current(), &text) {
                let error = self.files.error(part.key, e);
                self.undo(at);
                return Err(error);
            }
        }
        let presences = told.iter().filter_map(|owner| self.presences.get(owner));
        Ok(presences.copied().collect())
    }

    /// Those to whom the only name was granted that they wait for have their lease at once.
    fn give(&mut self, granted: &[Owner]) {
        // A change of several names may be undone in part.
        let [part] = &self.parts[..] else { return };
        for owner in granted {
            if part.before.name.waits_alone(owner) {
                self.table.give(part.key, owner);
            }
        }
    }

    /// What is to be written of one. Of those whose lock was broken it leaves out who is gone, or had given it away.
    fn after(&mut self, at: usize) -> Result<Written> {
        let key = self.parts[at].key;
        let broken = self.table.get(key).into_iter().flat_map(NameState::broken);
        let broken: Vec<_> = broken.cloned().collect();
        for owner in broken {
            if !self.presences.contains_key(&owner) || self.is_gone(&owner)? {
                self.table.remove_broken(key, &owner);
            }
        }
        Ok(Written {
            counter: self.table.last_used(),
            name: self.table.get(key).cloned().unwrap_or_default(),
        })
    }

    /// Those that now wait for the end of another owner than before: they have to look, and to watch that one.
    fn must_look_again(&self, before: &Written, after: &Written, told: &mut Owners) {
        let mut waited = before.name.waiting();
        for (owner, ahead) in after.name.waiting() {
            let Some((_, before)) = waited.find(|(one, _)| *one == owner) else {
                // It came just now, as all behind it.
                break;
            };
            // One without a presence ends at a time.
            let is_known = |one: &&Owner| before.contains(one) && self.presences.contains_key(*one);
            if ahead.is_empty() || !ahead.iter().all(is_known) {
                told.insert(owner.clone());
            }
        }
    }

    /// Writes again what the parts before that one said.
    fn undo(&mut self, failed: usize) {
        self.presences.extend(self.without_presence.take());
        for part in &mut self.parts[..=failed] {
            let text = text_of(&part.before, &self.presences);
            if let Err(e) = part.rewrite(&text) {
                log::warn!("can't undo a change of lock {:?}: {e}", part.key.name());
            }
        }
    }
}

impl Part<'_> {
    fn gave_to(&self, owners: &Owners) -> bool {
        let entries = self.before.name.entries.iter();
        let mut given = entries.filter(|one| matches!(one.state, EntryState::Given(_)));
        given.any(|one| one.owner.as_ref().is_some_and(|one| owners.contains(one)))
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        let boot = BootId::current();
        // Which of both texts it has now.
        self.section.read(&boot)?;
        self.section.write(&boot, text)
    }
}
