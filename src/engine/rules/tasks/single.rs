//! What becomes of single tasks: how they are inserted, taken, tried again, buried and finished.

use std::{collections::BTreeMap, sync::Arc};

use super::{Asked, MOST_ENDED, Micros, Task, Tasks, after};
use crate::base::{IfExists, NewTask, Token};

/// What is said of a task whose worker vanished.
const VANISHED: &str = "its worker vanished";

impl Tasks {
    pub(super) fn insert(
        &mut self,
        new: &NewTask<'_>,
        due: Micros,
        nonce: &Arc<str>,
        now: Micros,
    ) -> bool {
        let Some(old) = self.tasks.get_mut(new.id) else {
            let is_finished = self.finished.get(new.id).is_some_and(|until| now < until);
            if !is_finished {
                self.put(new, due, nonce.clone());
            }
            return !is_finished;
        };
        if !nonce.is_empty() && old.nonce == *nonce {
            return true;
        }
        match new.if_exists {
            _ if old.owner.is_some() => return false,
            IfExists::Keep => return false,
            IfExists::Reset => {
                old.nonce = nonce.clone();
                self.reset(new.id, due);
            }
            IfExists::Replace => {
                self.remove(new.id);
                self.put(new, due, nonce.clone());
            }
        }
        true
    }

    fn put(&mut self, new: &NewTask<'_>, due: Micros, nonce: Arc<str>) {
        let id: Arc<str> = new.id.into();
        self.due.set(id.clone(), due);
        let task = Task {
            payload: new.payload.into(),
            policy: new.policy,
            nonce,
            due,
            attempt: 0,
            owner: None,
            token: 0,
            is_abandoned: false,
            error: Arc::default(),
        };
        self.tasks.insert(id, task);
    }

    /// A buried task begins anew.
    pub(super) fn reset(&mut self, id: &str, due: Micros) -> bool {
        let Some((id, task)) = entry(&mut self.tasks, id).filter(|(_, task)| task.owner.is_none())
        else {
            return false;
        };
        if self.buried.remove(&id) {
            task.attempt = 0;
        }
        task.due = due;
        self.due.set(id, due);
        true
    }

    pub(super) fn remove(&mut self, id: &str) -> bool {
        let is_there = self.tasks.get(id).is_some_and(|task| task.owner.is_none());
        if is_there {
            self.tasks.remove(id);
            self.due.remove(id);
            self.buried.remove(id);
        }
        is_there
    }

    /// Makes a task the owner's, for a try.
    pub(super) fn take(&mut self, id: &Arc<str>, owner: &str, ttl: Micros, now: Micros) {
        let owner: Arc<str> = owner.into();
        if let Some(task) = self.tasks.get_mut(id) {
            let floor = self.token.saturating_add(1).max(now);
            // As for locks: the second bit says that the last worker vanished.
            let (class, of) = if task.is_abandoned { (3, 8) } else { (1, 4) };
            self.token = floor + (class + of - floor % of) % of;
            task.owner = Some(owner.clone());
            task.token = self.token;
            task.attempt = task.attempt.saturating_add(1);
        }
        self.due.remove(id);
        self.running.insert(owner.clone(), id.clone());
        self.ends.set(owner, now + ttl);
    }

    pub(super) fn taken(&self, id: &str, now: Micros) -> Option<Asked> {
        Some(Asked::Task {
            token: Token::from_number(self.tasks.get(id)?.token),
            record: self.record(id, now, 0)?,
        })
    }

    /// Ends an owner's lease; gives the task.
    pub(super) fn free(&mut self, owner: &str) -> Option<Arc<str>> {
        self.ends.remove(owner);
        self.running.remove(owner)
    }

    pub(super) fn finish(&mut self, id: &Arc<str>, now: Micros) {
        if let Some(task) = self.tasks.remove(id) {
            self.forget_finished(now);
            if !task.policy.remember.is_zero() {
                let until = after(now, task.policy.remember);
                self.finished.set(id.clone(), until);
            }
        }
    }

    /// Has it tried again, by its backoff if no time is given; buries it after its last try.
    pub(super) fn retry(&mut self, id: &Arc<str>, due: Option<Micros>, error: &str, now: Micros) {
        let Some(task) = self.tasks.get_mut(id) else {
            return;
        };
        if task.policy.tries > 0 && task.attempt >= task.policy.tries {
            return self.bury(id, error, now);
        }
        task.is_abandoned = false;
        let due = due.unwrap_or_else(|| after(now, task.policy.backoff(task.attempt, now)));
        self.give_back(id, due, error);
    }

    fn give_back(&mut self, id: &Arc<str>, due: Micros, error: &str) {
        if let Some(task) = self.tasks.get_mut(id) {
            (task.owner, task.due, task.error) = (None, due, error.into());
            self.due.set(id.clone(), due);
        }
    }

    pub(super) fn bury(&mut self, id: &Arc<str>, why: &str, now: Micros) {
        if let Some(task) = self.tasks.get_mut(id) {
            (task.owner, task.is_abandoned, task.error) = (None, false, why.into());
            self.buried.set(id.clone(), now);
        }
    }

    pub(super) fn forget_finished(&mut self, now: Micros) {
        let over: Vec<_> = self.finished.until(now).cloned().collect();
        for id in over {
            self.finished.remove(&id);
        }
    }

    /// Ends the leases of workers that vanished: their tasks are ready at once.
    pub(super) fn end_leases(&mut self, now: Micros) {
        let over: Vec<_> = self.ends.until(now).take(MOST_ENDED).cloned().collect();
        for id in over
            .iter()
            .filter_map(|owner| self.free(owner))
            .collect::<Vec<_>>()
        {
            let Some(task) = self.tasks.get_mut(&id) else {
                continue;
            };
            if task.policy.tries > 0 && task.attempt >= task.policy.tries {
                self.bury(&id, VANISHED, now);
            } else {
                task.is_abandoned = true;
                self.give_back(&id, now, VANISHED);
            }
        }
    }
}

fn entry<'a>(
    tasks: &'a mut BTreeMap<Arc<str>, Task>,
    id: &str,
) -> Option<(Arc<str>, &'a mut Task)> {
    let id = tasks.get_key_value(id)?.0.clone();
    let task = tasks.get_mut(&id)?;
    Some((id, task))
}
