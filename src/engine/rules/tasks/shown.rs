//! What is shown of a queue.

use std::sync::Arc;

use super::{Micros, Tasks};
use crate::base::{TaskCounts, TaskRecord, TaskState};

impl Tasks {
    pub(super) fn record(&self, id: &str, now: Micros, wall: i64) -> Option<TaskRecord> {
        let (id, task) = self.tasks.get_key_value(id)?;
        let state = match &task.owner {
            Some(_) => TaskState::Running,
            None if self.buried.get(id).is_some() => TaskState::Buried,
            None if task.due <= now => TaskState::Ready,
            None => TaskState::Delayed,
        };
        Some(TaskRecord {
            id: id.clone(),
            state,
            due: task.due.saturating_add_signed(wall),
            now: now.saturating_add_signed(wall),
            attempt: task.attempt,
            tries: task.policy.tries,
            error: task.error.clone(),
            payload: task.payload.clone(),
        })
    }

    pub(super) fn counts(&self, now: Micros) -> TaskCounts {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let ready = self.due.until(now).count();
        TaskCounts {
            delayed: count(self.due.order.len() - ready),
            ready: count(ready),
            running: count(self.running.len()),
            buried: count(self.buried.order.len()),
        }
    }

    pub(super) fn list(
        &self,
        state: TaskState,
        most: usize,
        now: Micros,
        wall: i64,
    ) -> Vec<TaskRecord> {
        let all: Box<dyn Iterator<Item = &Arc<str>>> = match state {
            TaskState::Running => {
                let owners = self.ends.until(Micros::MAX);
                Box::new(owners.filter_map(|owner| self.running.get(owner)))
            }
            TaskState::Buried => Box::new(self.buried.until(Micros::MAX)),
            TaskState::Ready => Box::new(self.due.until(now)),
            TaskState::Delayed => {
                let ready = self.due.until(now).count();
                Box::new(self.due.until(Micros::MAX).skip(ready))
            }
        };
        all.take(most)
            .filter_map(|id| self.record(id, now, wall))
            .collect()
    }
}
