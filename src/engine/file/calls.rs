//! What the engine is asked for, as changes of names.

use super::change::Names;
use super::files::Files;
use super::presence::PresenceId;
use super::section::LockMode;
use super::text::Presences;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Result;
use crate::base::inspection::Holder;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::rules::{Acquired, Table};
use crate::engine::{Outcome, Release, Request};

use std::fs::File;
use std::io;
use std::slice;
use std::time::Duration;

/// The answer to a question for a lock.
pub(super) enum Asked {
    Granted { token: Token, value: Option<Stored> },
    Taken(Ahead),
    Broken,
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
#[derive(Default)]
pub(super) struct Ahead {
    /// The presences of those whose end may let it in.
    pub(super) presences: Vec<PresenceId>,
    /// When it may come in although nobody does anything.
    pub(super) changes: Option<BootInstant>,
    /// How many wait ahead of it.
    pub(super) place: u32,
    /// One of the holders, for the log.
    pub(super) holder: Option<String>,
}

impl Ahead {
    pub(super) fn of(request: Request<'_>, table: &Table, presences: &Presences) -> Self {
        let ahead = table.ahead_of(request);
        Ahead {
            presences: ahead
                .iter()
                .filter_map(|one| presences.get(one).copied())
                .collect(),
            changes: table.changes(request),
            place: table.place_of(request),
            holder: None,
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
    ) -> Result<Asked> {
        let ask = |names: &mut Names<'_>| {
            let mut asked = names.acquire(lasting(request), manner)?;
            if let Asked::Granted { value, .. } = &mut asked {
                *value = self.value(request)?;
            }
            let stays = match asked {
                Asked::Granted { .. } => true,
                Asked::Taken(_) => manner.waits,
                Asked::Broken => false,
            };
            Ok((asked, stays))
        };
        self.change_by_presence(request, (manner.lock_mode, deadline), ask)
    }

    /// Makes a change that an owner may be named in from then on, by a presence that others find. It tells whether it is.
    fn change_by_presence<T>(
        &self,
        request: Request<'_>,
        when: (LockMode, &Deadline),
        change: impl FnOnce(&mut Names<'_>) -> Result<(T, bool)>,
    ) -> Result<T> {
        let (owner, error) = (request.owner, |e| self.error(request.key(), e));
        let is_new = self.take_presence(owner).map_err(error)?;
        let changed = self.change(request.claim.keys(), when, |names| {
            let presence = self.presences.found(owner, &self.root);
            names.set_presence(owner, presence.map_err(error)?);
            change(names)
        });
        match &changed {
            Ok((_, true)) => {}
            Ok((_, false)) => self.presences.give_back(owner),
            // Should anything have been written for it, that is over.
            Err(_) if is_new => self.presences.close(owner),
            Err(_) => {}
        }
        changed.map(|(done, _)| done)
    }

    pub(super) fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let owner = request.owner;
        let Some(presence) = self.presences.of(owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let changed = self.change(
            request.claim.keys(),
            (LockMode::Urgent, deadline),
            |names| {
                names.set_presence(owner, presence.id());
                let released = names.table.release(lasting(request), release, names.now);
                if released == Outcome::BROKEN {
                    names.remove_broken(owner);
                }
                if let (Outcome::Done(_), Some(value)) = (&released, release.value) {
                    self.store(request.key(), value)?;
                }
                Ok((released, names.mention(owner)))
            },
        );
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
    pub(super) fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<Outcome> {
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
        self.change(
            request.claim.keys(),
            (LockMode::Urgent, deadline),
            |names| Ok(names.table.is_owner(lasting(request), names.now)),
        )
    }

    /// Copies of its presence: whoever has one keeps it open.
    pub(super) fn lock_files(&self, owner: &Owner) -> io::Result<Vec<File>> {
        let copy = self.presences.copy(owner)?;
        Ok(copy.into_iter().collect())
    }

    pub(super) fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Option<(Token, Option<Stored>)>> {
        let adopt = |names: &mut Names<'_>| {
            names.end_those_gone(slice::from_ref(from))?;
            let (table, now) = (&mut names.table, names.now);
            let token = table.adopt(lasting(request), from, last_used, now);
            let value = self.value(request)?;
            Ok((token.map(|token| (token, value)), token.is_some()))
        };
        let adopted = self.change_by_presence(request, (LockMode::Urgent, deadline), adopt)?;
        if adopted.is_some() {
            self.presences.give_back(from);
        }
        Ok(adopted)
    }

    /// The lease lasts for a ttl from now on, whether this process lives or not: its owner has no presence any more.
    pub(super) fn give_away(&self, request: Request<'_>, deadline: &Deadline) -> Result<()> {
        let given = self.change(
            request.claim.keys(),
            (LockMode::Urgent, deadline),
            |names| {
                names.table.renew(request, names.now);
                names.leave_presence(request.owner);
                Ok(())
            },
        );
        if given.is_ok() {
            self.presences.give_back(request.owner);
        }
        given
    }

    /// Gives the token, if the lease was the owner's.
    pub(super) fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Token>> {
        self.change(
            request.claim.keys(),
            (LockMode::Urgent, deadline),
            |names| {
                let (table, now) = (&mut names.table, names.now);
                let Some((token, repeated)) = table.downgrade(lasting(request), last_used, now)
                else {
                    return Ok(None);
                };
                if let Some(value) = value.filter(|_| !repeated) {
                    self.store(request.key(), value)?;
                }
                Ok(Some(token))
            },
        )
    }

    /// For a name without a file none is made.
    pub(super) fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let found = self.find(key).map_err(|e| self.error(key, e))?;
        if found.is_none() {
            return Ok(Vec::new());
        }
        let broken = self.change(
            slice::from_ref(key),
            (LockMode::Urgent, deadline),
            |names| {
                let all = names.holders_of(key);
                let are_gone = names.end_those_gone(&all)?;
                let left = names.holders_of(key);
                if are_gone && !left.iter().any(|one| all.contains(one)) {
                    // Nobody had it any more. Whom it was granted to just now keeps it.
                    return Ok(None);
                }
                Ok(Some(names.table.break_lock(key, names.now)))
            },
        )?;
        let Some(broken) = broken else {
            return Ok(Vec::new());
        };
        self.tell_broken(&broken.owners);
        Ok(broken.holders)
    }

    /// Stores the value, if the lease is the owner's: the lock can't be broken in between.
    pub(super) fn store_if_held(
        &self,
        request: Request<'_>,
        value: &[u8],
        deadline: &Deadline,
    ) -> Result<Outcome> {
        self.change(
            request.claim.keys(),
            (LockMode::Urgent, deadline),
            |names| {
                if !names.table.holds(lasting(request), names.now) {
                    return Ok(Outcome::NOT_OWNER);
                }
                self.store(request.key(), value)?;
                Ok(Outcome::DONE)
            },
        )
    }
}

impl Names<'_> {
    fn acquire(&mut self, request: Request<'_>, manner: Manner) -> Result<Asked> {
        loop {
            let holder = match self.table.acquire(request, manner.waits, self.now) {
                Acquired::Granted(token) => {
                    return Ok(Asked::Granted { token, value: None });
                }
                Acquired::Broken => {
                    self.remove_broken(request.owner);
                    return Ok(Asked::Broken);
                }
                Acquired::Taken { holder } => holder,
            };
            if !manner.looks || !self.end_those_gone(&self.table.ahead_of(request))? {
                return Ok(Asked::Taken(Ahead {
                    holder,
                    ..self.ahead(request)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests;
