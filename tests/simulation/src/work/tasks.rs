//! Delayed tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosslock::{DelayQueue, Error, Locker, Prefer, Result, Task};
use crosslock_world::{record, thread_number, time, true_now, violation};

use super::{Worker, owned};
use crate::judge::tasks::{self, End, Taken};
use crate::judge::{self, Kind};
use crate::places::Site;
use crate::plan::{Plan, Step, Topology};

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// After so many tries a task is buried.
const TRIES: u32 = 3;

fn queue(locker: &Locker, name: &str) -> Result<DelayQueue<u64>> {
    locker.delay_queue::<u64>(name)
}

impl Worker {
    pub(super) fn task(&mut self) -> Result<()> {
        let name = self.name("tasks");
        let queue = queue(&self.locker, &name)?;
        match self.random.u32(..11) {
            0..=3 => self.insert(&name, &queue),
            4..=5 => self.kick(&queue),
            6 => self.workers(&name, &queue),
            _ => self.take(&name, &queue),
        }
    }

    fn insert(&mut self, name: &str, queue: &DelayQueue<u64>) -> Result<()> {
        let id = match self.random.u32(..3) {
            // Perhaps one that was there before.
            0 => self.random.u64(..10),
            _ => 1_000 + judge::number(),
        };
        let delay = match self.random.bool() {
            true => Duration::ZERO,
            false => self.plan.ttl.mul_f64(self.random.f64().powi(2) * 2.0),
        };
        let text = format!("{name}/{id}");
        tasks::inserting(name, &text, delay, TRIES);
        let entry = queue.entry(text.as_str()).after(delay).tries(TRIES);
        let was_new = entry.insert(&id)?;
        record(&format!("inserts {text} in {delay:?}: {was_new}"));
        tasks::inserted(name, &text, delay, was_new);
        Ok(())
    }

    fn kick(&mut self, queue: &DelayQueue<u64>) -> Result<()> {
        let counts = queue.counts()?;
        record(&format!("{}: {counts:?}", queue.name()));
        Ok(())
    }

    fn take(&mut self, name: &str, queue: &DelayQueue<u64>) -> Result<()> {
        let (began, token_before) = (true_now(), tasks::token(name));
        let timeout = self.plan.ttl.mul_f64(self.random.f64() * 1.5);
        let Some(task) = self.bounded(timeout, |_| queue.take_for(timeout))? else {
            tasks::found_none(name, began);
            return Ok(());
        };
        let (id, attempt) = (Task::id(&task).to_string(), Task::attempt(&task));
        let taken = Taken {
            id: &id,
            attempt,
            token: Task::fencing_token(&task),
            is_held: Task::lease(&task).is_held(),
            began,
            token_before,
        };
        tasks::taken(name, &taken);
        let (task, hold) = self.hold_on(&[&id], Kind::Exclusive, task, None);
        let how = match self.random.u32(..8) {
            0..=3 => End::Done,
            4..=5 => End::Retry(self.plan.ttl.mul_f64(self.random.f64())),
            6 => End::Bury,
            _ => End::Drop,
        };
        judge::ending(&[&id], hold, false);
        tasks::ending(name, &id, how);
        self.end(name, &id, how, owned(task))
    }

    /// Threads that take one task after the other, for a while.
    fn workers(&mut self, name: &str, queue: &DelayQueue<u64>) -> Result<()> {
        let (own, ttl) = (name.to_owned(), self.plan.ttl);
        let random = Mutex::new(self.random.fork());
        let start = (true_now(), tasks::token(name));
        // Since when each thread has no task, and the largest token then.
        let free = Mutex::new(BTreeMap::new());
        let handler = move |task: &Task<u64>| {
            let thread = thread_number();
            let since = locked(&free).get(&thread).copied().unwrap_or(start);
            let part = locked(&random).f64();
            let (id, done) = (Task::id(task).to_string(), part < 0.7);
            let taken = Taken {
                id: &id,
                attempt: Task::attempt(task),
                token: Task::fencing_token(task),
                is_held: Task::lease(task).is_held(),
                began: since.0,
                token_before: since.1,
            };
            tasks::taken(&own, &taken);
            // The next one follows on this try, which the judge of locks doesn't see.
            judge::abandoned(&id, None);
            time::sleep(ttl.mul_f64(part * part * 0.05));
            tasks::ending(&own, &id, if done { End::Done } else { End::Drop });
            locked(&free).insert(thread, (true_now(), tasks::token(&own)));
            if done { Ok(()) } else { Err("on purpose") }
        };
        let workers = queue.work(self.random.usize(1..=2), handler)?;
        time::sleep(ttl.mul_f64(self.random.f64()));
        drop(workers);
        Ok(())
    }

    fn end(&self, name: &str, id: &str, how: End, task: Task<u64>) -> Result<()> {
        let attempt = Task::attempt(&task);
        let ended = match how {
            End::Done => Task::done(task),
            End::Retry(delay) => Task::retry_in(task, delay),
            End::Bury => Task::bury(task, "it is of no use"),
            End::Drop => {
                drop(task);
                Ok(())
            }
        };
        record(&format!("{id} ends by {how:?}: {ended:?}"));
        tasks::ended(name, id, attempt, how, &ended);
        ended
    }
}

/// In the end all tasks are there, but for those that are done.
pub fn judge_remaining(plan: &Arc<Plan>, site: &Site) {
    if plan.topology == Topology::Memory {
        // They were in processes that are gone.
        return;
    }
    if plan.topology == Topology::Redis && plan.seed.is_multiple_of(2) && plan.does(Step::Tasks) {
        // What is empty is forgotten after a day, and tasks aren't.
        time::sleep(Duration::from_secs(25 * 3600));
    }
    for name in tasks::queues() {
        let Some(locker) = super::open(plan, &site.url, Prefer::Fair, 0) else {
            return;
        };
        for (id, is_there) in tasks::remaining(&name) {
            match find(&locker, &name, &id) {
                Ok(found) if found != is_there && plan.is_safe() => {
                    let not = if is_there { "not " } else { "" };
                    violation(format!("{name}: in the end {id} is {not}there"));
                }
                Ok(_) => {}
                Err(error) => violation(format!("{name}: {id} can't be read in the end: {error}")),
            }
        }
    }
}

fn find(locker: &Locker, name: &str, id: &str) -> Result<bool> {
    let queue = queue(locker, name)?;
    for _ in 0..20 {
        match queue.get(&id.into()) {
            Ok(found) => return Ok(found.is_some()),
            Err(Error::Unavailable { .. }) => time::sleep(Duration::from_secs(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(queue.get(&id.into())?.is_some())
}
