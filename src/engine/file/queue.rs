//! Delay queues in a directory: workers ask for tasks, wait for them, and end them.
//!
//! A worker is known by its presence, as one that waits for a lock is. So a task belongs to its worker until that ends
//! it, or its process is gone. The leader of the line watches the workers that have tasks, and each other waiter
//! watches the one ahead of it. A waiter that finds one of them gone writes that down.

use std::io::{self, ErrorKind};
use std::{collections::BTreeSet, sync::Arc};

use super::change::{Ahead, try_until};
use super::create::{open_to_read, replace_file};
use super::files::Files;
use super::journal::Journal;
use super::presence;
use super::section::{LockMode, NameFile, queue_name};
use super::step::{Step, Stepped};
use crate::base::{
    BootClock, BootInstant, Clock, Deadline, Ending, Error, Key, Owner, Result, TaskAnswer,
    TaskCall,
};
use crate::engine::rules::{PresenceId, tasks::Asked};
use crate::engine::{Answer, Change, Grant, Outcome, Release, Request};

/// So many workers are watched. That others are gone is found when one of these ends its task.
const MOST_WATCHED: usize = 64;

/// A queue, while its file is locked.
struct Queue<'a> {
    files: &'a Files,
    file: &'a NameFile,
    journal: &'a mut Journal,
    /// Whom to tell that they are to ask.
    told: Vec<PresenceId>,
}

/// An owner, as queues know it: `<presence> <owner>`.
fn name_of(presence: PresenceId, owner: &Owner) -> Arc<str> {
    format!("{presence} {}", owner.as_str()).into()
}

/// The other way. What isn't a name has no presence: it is gone.
fn presence_of(name: &str) -> Option<PresenceId> {
    PresenceId::parse(name.split_once(' ')?.0)
}

impl Files {
    pub(super) fn call_tasks(
        &self,
        key: &Key,
        call: TaskCall<'_>,
        deadline: &Deadline,
    ) -> Result<TaskAnswer> {
        let is_look = matches!(
            call,
            TaskCall::Get(_) | TaskCall::Counts | TaskCall::List(..)
        );
        if is_look && !self.has_queue(key)? {
            // A look makes no file.
            let mut none = Journal::default();
            return Ok(none.tasks.call(call, 0, 0));
        }
        self.with_queue(key, deadline, |queue| {
            let (now, ahead) = (queue.journal.now(), queue.journal.wall_ahead());
            let Some(step) = Step::of(call, now)? else {
                return Ok(queue.journal.tasks.call(call, now, ahead));
            };
            match queue.change(step)? {
                Stepped::Answer(answer) => Ok(answer),
                _ => Err(ErrorKind::InvalidData.into()),
            }
        })
    }

    /// Asks once for a task.
    pub(super) fn ask_for_task(
        &self,
        request: Request<'_>,
        waits: bool,
        deadline: &Deadline,
    ) -> Result<(Answer, Ahead)> {
        let (key, owner) = (request.key(), request.owner);
        let is_new = self
            .take_presence(owner)
            .map_err(|e| self.queue_error(key, e))?;
        let since = BootClock.now();
        let asked = self.with_queue(key, deadline, |queue| {
            let presence = self.presences.found(owner, &self.root)?;
            queue.ask(&name_of(presence, owner), waits, since)
        });
        match &asked {
            // Should anything have been written for it, that is over.
            Err(_) if is_new => self.presences.close(owner),
            Ok((
                Answer::Taken {
                    is_queued: false, ..
                },
                _,
            )) => self.presences.give_back(owner),
            _ => {}
        }
        asked
    }

    /// Renews or ends the lease of a task.
    pub(super) fn change_task(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (key, owner) = (request.key(), request.owner);
        let Some(presence) = self.presences.of(owner) else {
            return Ok(Outcome::NOT_OWNER);
        };
        let name = name_of(presence.id(), owner);
        let step = match change {
            Change::Release(Release {
                ending: Ending::Unknown,
                ..
            }) => Step::TakeBack { owner: name },
            Change::Release(Release { value, .. }) => Step::End {
                owner: name,
                end: value.map(|end| String::from_utf8_lossy(end).into_owned()),
                granted: request.granted,
            },
            // Nobody asks for another change of a task.
            _ => {
                let is_there = presence
                    .is_at_its_path()
                    .map_err(|e| self.queue_error(key, e))?;
                let is_its = self.with_queue(key, deadline, |queue| {
                    let (now, granted) = (queue.journal.now(), request.granted);
                    Ok(queue.journal.tasks.renew(&name, None, granted, now))
                })?;
                return Ok(Outcome::of(is_there && is_its));
            }
        };
        let ended = self.with_queue(key, deadline, |queue| {
            Ok(matches!(queue.change(step)?, Stepped::Was(true)))
        });
        match &ended {
            Ok(_) => self.presences.give_back(owner),
            // Nobody tries it again.
            Err(e) if !e.may_pass() => self.presences.close(owner),
            Err(_) => {}
        }
        ended.map(Outcome::of)
    }

    fn has_queue(&self, key: &Key) -> Result<bool> {
        let found = self.root.find().and_then(|root| match root {
            Some(root) => open_to_read(&root, &queue_name(key)),
            None => Ok(None),
        });
        Ok(found.map_err(|e| self.queue_error(key, e))?.is_some())
    }

    /// Does something with a queue while its file is locked, and tells those who are to ask.
    fn with_queue<T>(
        &self,
        key: &Key,
        deadline: &Deadline,
        act: impl FnOnce(&mut Queue<'_>) -> io::Result<T>,
    ) -> Result<T> {
        let until = try_until(deadline);
        let error = |e| self.queue_error(key, e);
        loop {
            let opened = self.queue(key).map_err(error)?;
            let section = opened.file.section(LockMode::Urgent, &until);
            let Some(section) = section.map_err(error)? else {
                self.forget_queue(key, &opened);
                if until.is_over() {
                    return Err(error(ErrorKind::TimedOut.into()));
                }
                continue;
            };
            if self.root.hold(opened.file.root()) {
                self.presences.look_again();
            }
            let mut journal = opened.journal.lock();
            let mut queue = Queue {
                files: self,
                file: &opened.file,
                journal: &mut journal,
                told: Vec::new(),
            };
            let done = queue
                .journal
                .read(opened.file.file())
                .and_then(|()| act(&mut queue));
            let told = queue.told;
            match &done {
                // What is in memory may be another queue than what is in the file.
                Err(_) => *journal = Journal::default(),
                Ok(_) => self.shorten(key, &journal),
            }
            drop(journal);
            drop(section);
            self.notify(told);
            return done.map_err(error);
        }
    }

    /// Has a new file take the place of a journal that has become long. Those who have the old one open find that.
    fn shorten(&self, key: &Key, journal: &Journal) {
        let shortened = journal.shortened().and_then(|text| match text {
            Some(text) => replace_file(&self.root.held()?, &queue_name(key), &text).map(drop),
            None => Ok(()),
        });
        if let Err(e) = shortened {
            log::debug!(
                "can't shorten the journal of delay queue {:?}: {e}",
                key.name()
            );
        }
    }

    fn queue_error(&self, key: &Key, cause: io::Error) -> Error {
        let file = queue_name(key);
        match cause.kind() {
            ErrorKind::InvalidData => Error::Conflict {
                name: key.name().to_owned(),
                key: self.root.path().join(file).display().to_string(),
                reason: "it doesn't contain a delay queue".to_owned(),
            },
            ErrorKind::TimedOut => self.busy(key),
            _ => self.error_at(key, file, cause),
        }
    }
}

impl Queue<'_> {
    /// Makes a change. Those who are to ask because of it are told later.
    fn change(&mut self, step: Step) -> io::Result<Stepped> {
        let owner = step.owner().cloned();
        let before = owner
            .as_deref()
            .and_then(|owner| self.journal.tasks.place_of(owner));
        let stepped = self.journal.change(self.file.file(), step)?;
        let tasks = &mut self.journal.tasks;
        let mut told = tasks.take_called();
        let after = owner.as_deref().and_then(|owner| tasks.place_of(owner));
        if let (Some(place), None) = (before, after) {
            // Whoever came behind it has to watch others.
            told.extend(tasks.waiting_at(place).cloned());
        }
        self.told
            .extend(told.iter().filter_map(|name| presence_of(name)));
        Ok(stepped)
    }

    fn ask(
        &mut self,
        name: &Arc<str>,
        waits: bool,
        since: BootInstant,
    ) -> io::Result<(Answer, Ahead)> {
        self.drop_those_gone(name)?;
        let step = Step::Ask {
            owner: name.clone(),
            waits,
        };
        let (place, next) = match self.change(step)? {
            Stepped::Asked(Asked::Task { token, record }) => {
                let grant = Grant::of_task(token, record, self.journal.wall_ahead(), since);
                return Ok((Answer::Granted(grant), Ahead::default()));
            }
            Stepped::Asked(Asked::Empty { place, next, .. }) => (place, next),
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        let next = next.and_then(|next| self.journal.since_boot(next));
        let answer = Answer::Taken {
            is_queued: place > 0,
            holder: None,
        };
        let place = place.saturating_sub(1);
        let ahead = Ahead {
            presences: self.ahead_of(place),
            changes: next.map(|next| BootInstant::START.plus(next)),
            place: place.try_into().unwrap_or(u32::MAX),
        };
        Ok((answer, ahead))
    }

    /// Whose end one at that place of the line has to find.
    fn ahead_of(&self, place: usize) -> BTreeSet<PresenceId> {
        let tasks = &self.journal.tasks;
        let watched: Vec<_> = match place.checked_sub(1) {
            None => tasks.working().take(MOST_WATCHED).collect(),
            Some(before) => tasks.waiting_at(before).into_iter().collect(),
        };
        watched
            .into_iter()
            .filter_map(|name| presence_of(name))
            .collect()
    }

    /// Writes down who is gone of those that keep tasks from the owner: the waiters just ahead of it, and if it is the
    /// first one, those that have tasks.
    fn drop_those_gone(&mut self, name: &str) -> io::Result<()> {
        loop {
            let tasks = &self.journal.tasks;
            let place = tasks.place_of(name).unwrap_or(tasks.waiting());
            let Some(before) = place
                .checked_sub(1)
                .and_then(|place| tasks.waiting_at(place))
            else {
                break;
            };
            if !self.is_gone(before)? {
                return Ok(());
            }
            let owner = before.clone();
            self.change(Step::Gone { owner })?;
        }
        let tasks = &self.journal.tasks;
        if tasks.is_ready_for(name, self.journal.now()) {
            return Ok(());
        }
        let working: Vec<_> = tasks.working().take(MOST_WATCHED).cloned().collect();
        for owner in working {
            if *owner != *name && self.is_gone(&owner)? {
                self.change(Step::Gone { owner })?;
            }
        }
        Ok(())
    }

    fn is_gone(&self, name: &str) -> io::Result<bool> {
        let Some(presence) = presence_of(name) else {
            return Ok(true);
        };
        match presence::is_gone(&*self.files.root.held()?, presence) {
            // Without a descriptor for it, or the right to look, nobody can tell, so it counts as there.
            Err(e) if super::dir::is_exhausted(&e) || e.kind() == ErrorKind::PermissionDenied => {
                Ok(false)
            }
            looked => looked,
        }
    }
}

#[cfg(test)]
mod tests;
