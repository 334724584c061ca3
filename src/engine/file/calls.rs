//! What the engine is asked for, as changes of names.

use std::collections::BTreeSet;
use std::slice;
use std::time::Duration;

use super::change::Names;
use super::files::Files;
use super::section::LockMode;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::{LostReason, Result};
use crate::base::inspection::Holder;
use crate::base::name::Key;
use crate::engine::rules::{Broken, Entry, PresenceId, Table};
use crate::engine::{Answer, Change, Outcome, Request};

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
#[derive(Default)]
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
    fn change_by_presence<T>(
        &self,
        request: Request<'_>,
        when: (LockMode, &Deadline),
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let (owner, error) = (request.owner, |e| self.error(request.key(), e));
        let is_new = self.take_presence(owner).map_err(error)?;
        let changed = self.change(request.claim.keys(), when, |names| {
            let presence = self.presences.found(owner, &self.root);
            let presence = presence.map_err(error)?;
            names.table.set_presence(owner, Some(presence));
            Ok((change(names)?, names.table.mentions(owner)))
        });
        if changed.is_err() && is_new {
            // Should anything have been written for it, that is over.
            self.presences.close(owner);
        }
        let (done, stays) = changed?;
        if !stays {
            self.presences.give_back(owner);
        }
        Ok(done)
    }

    pub(super) fn change_lease(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match change {
            // A lease lasts for as long as the process lives, unless somebody breaks it.
            Change::Renew | Change::Verify => self.verify(request, deadline),
            Change::Release(_) => self.release(request, change, deadline),
            Change::Store(_) | Change::Downgrade { .. } => {
                self.change_urgently(request, deadline, |names| names.change(request, change))
            }
            Change::Adopt { from, .. } => {
                let when = (LockMode::Urgent, deadline);
                let adopted = self.change_by_presence(request, when, |names| {
                    names.end_those_gone(&names.table.presences_of(from))?;
                    names.change(request, change)
                })?;
                if adopted.is_done() {
                    self.presences.give_back(from);
                }
                Ok(adopted)
            }
            Change::GiveAway => self.give_away(request, deadline),
        }
    }

    /// Others wait for what a holder does.
    fn change_urgently<T>(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
        change: impl FnOnce(&mut Names<'_>) -> Result<T>,
    ) -> Result<T> {
        let when = (LockMode::Urgent, deadline);
        self.change(request.claim.keys(), when, change)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let owner = request.owner;
        let Some(presence) = self.presences.of(owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let changed = self.change_urgently(request, deadline, |names| {
            names.table.set_presence(owner, Some(presence.id()));
            let released = names.change(request, release)?;
            if released == Outcome::BROKEN {
                names.table.remove_broken(owner);
            }
            Ok((released, names.table.mentions(owner)))
        });
        if changed.as_ref().is_err_and(|e| !e.may_pass()) {
            // Nobody tries it again.
            self.presences.close(owner);
        }
        let (released, stays) = changed?;
        if !stays {
            self.presences.give_back(owner);
        }
        Ok(released)
    }

    /// Whether the lease is the owner's, and whether others can see that its owner lives.
    fn verify(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        let Some(presence) = self.presences.of(request.owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let is_there = presence.is_at_its_path();
        if !is_there.map_err(|e| self.error(request.key(), e))? {
            return Ok(Outcome::NOT_OWNER);
        }
        if let Err(e) = presence.touch() {
            log::debug!("can't have a presence look new: {e}");
        }
        self.change_urgently(request, deadline, |names| {
            names.change(request, Change::Verify)
        })
    }

    /// The lease lasts for a ttl from now on, whether this process lives or not: its owner has no presence any more.
    fn give_away(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
        self.change_urgently(request, deadline, |names| {
            names.give_away(request);
            Ok(())
        })?;
        self.presences.give_back(request.owner);
        Ok(Outcome::DONE)
    }

    /// For a name without a file none is made.
    pub(super) fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let found = self.find(key).map_err(|e| self.error(key, e))?;
        if found.is_none() {
            return Ok(Vec::new());
        }
        let when = (LockMode::Urgent, deadline);
        let broken = self.change(slice::from_ref(key), when, |names| {
            let all = names.holders_of(key);
            let presences = all.iter().filter_map(|one| one.presence);
            let are_gone = names.end_those_gone(&presences.collect())?;
            let left = names.holders_of(key);
            let was_there = |one: &Entry| all.iter().any(|was| was.owner == one.owner);
            if are_gone && !left.iter().any(was_there) {
                // Nobody had it any more. Whom it was granted to just now keeps it.
                return Ok(Broken::default());
            }
            Ok(names.table.break_lock(key))
        })?;
        self.receivers.tell(&broken.owners, LostReason::Broken);
        Ok(broken.holders)
    }
}

impl Names<'_> {
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
}

#[cfg(test)]
mod tests;
