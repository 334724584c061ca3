//! Delayed tasks: none is early, lost, done twice, or passed over by one that was due later.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crosslock::Error;
use crosslock_world::{Process, current, record, true_now, violation};

use super::{locked, plan};
use crate::plan::Topology;

/// By then who waits is called, where all is well.
const SOON: Duration = Duration::from_millis(150);

/// What is known of a task.
#[derive(Clone, Debug)]
struct Known {
    tries: u32,
    attempt: u32,
    /// It isn't due before the one, and is by the other.
    due: (Duration, Duration),
    /// Since when it is certainly in the queue and no worker has it.
    available: Option<Duration>,
    /// How many calls have begun to insert it.
    inserts: u32,
    /// It was inserted for certain.
    is_certain: bool,
    /// A call has said that it is the one that inserted it.
    was_new: bool,
    is_buried: bool,
    /// A call that would have it done has begun, and when it has succeeded.
    is_ending: bool,
    ends: Duration,
    done: Option<Duration>,
    holder: Option<Process>,
    token: u64,
}

/// A call that took a task, or found none, while this was the state of things.
#[derive(Clone, Copy, Debug)]
struct Taking {
    began: Duration,
    ended: Duration,
    /// When what it took was due at the earliest; `None`: it took nothing.
    due: Option<Duration>,
}

#[derive(Default)]
struct Queue {
    tasks: BTreeMap<String, Known>,
    takings: Vec<Taking>,
    token: u64,
}

static QUEUES: Mutex<BTreeMap<String, Queue>> = Mutex::new(BTreeMap::new());

fn with<T>(name: &str, work: impl FnOnce(&mut Queue) -> T) -> T {
    work(locked(&QUEUES).entry(name.to_owned()).or_default())
}

/// In memory a machine's clock measures, which may be fast.
fn least(delay: Duration) -> Duration {
    match plan().topology {
        Topology::Memory => delay.mul_f64(0.997),
        _ => delay,
    }
}

/// A task is to be inserted.
pub fn inserting(queue: &str, id: &str, delay: Duration, tries: u32) {
    let due = true_now() + least(delay);
    with(queue, |queue| {
        let task = queue.tasks.entry(id.to_owned()).or_insert(Known {
            tries,
            attempt: 0,
            due: (due, Duration::MAX),
            available: None,
            inserts: 0,
            is_certain: false,
            was_new: false,
            is_buried: false,
            is_ending: false,
            ends: Duration::ZERO,
            done: None,
            holder: None,
            token: 0,
        });
        task.inserts += 1;
        if !task.is_certain {
            // Of two calls that insert it at the same time either may be the first.
            task.due.0 = task.due.0.min(due);
        }
    });
}

/// It was; or it was there already, or is remembered.
pub fn inserted(queue: &str, id: &str, delay: Duration, was_new: bool) {
    let now = true_now();
    let wrong = with(queue, |queue| {
        let task = queue.tasks.get_mut(id).expect("it is known");
        let was_there = std::mem::replace(&mut task.is_certain, true);
        if !was_there && was_new && task.attempt == 0 {
            task.due.1 = now + delay;
            task.available = Some(now);
        }
        // Who takes it may do so before its insert returns.
        let was_told = task.was_new;
        task.was_new |= was_new;
        match was_new {
            true => was_told.then_some("was inserted twice"),
            // A repeated insert can't know one that may be done by then.
            false => (task.inserts == 1 && !task.is_ending)
                .then_some("was inserted, and told to be there before"),
        }
    });
    if let Some(text) = wrong.filter(|_| plan().is_safe()) {
        violation(format!("{queue}: {id} {text}"));
    }
}

/// The largest token so far.
pub fn token(queue: &str) -> u64 {
    with(queue, |queue| queue.token)
}

/// What a worker has been given.
pub struct Taken<'a> {
    pub id: &'a str,
    pub attempt: u32,
    pub token: u64,
    pub is_held: bool,
    /// When its call began, and the largest token then.
    pub began: Duration,
    pub token_before: u64,
}

/// A worker has a task.
pub fn taken(name: &str, taken: &Taken<'_>) {
    let now = true_now();
    record(&format!(
        "{name}: has {} by try {}",
        taken.id, taken.attempt
    ));
    let wrong = with(name, |queue| {
        let mut wrong = queue.judge_taken(taken, now);
        let one_shard = plan().topology != Topology::Cluster;
        if one_shard && taken.is_held && taken.token <= queue.token.min(taken.token_before) {
            wrong.push(format!(
                "token {} behind {}",
                taken.token, taken.token_before
            ));
        }
        queue.token = queue.token.max(taken.token);
        wrong
    });
    for text in wrong {
        if plan().is_safe() {
            violation(format!("{name}: {} {text}", taken.id));
        }
    }
}

impl Queue {
    fn judge_taken(&mut self, taken: &Taken<'_>, now: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        let takings = std::mem::take(&mut self.takings);
        let Some(task) = self.tasks.get_mut(taken.id) else {
            return vec!["was never inserted".to_owned()];
        };
        if now < task.due.0 {
            wrong.push(format!(
                "was taken at {now:?}, and is due at {:?}",
                task.due.0
            ));
        }
        if task.done.is_some_and(|done| done < taken.began) {
            wrong.push("was done already".to_owned());
        }
        wrong.extend(task.judge_try(taken));
        // One of several shards is asked late by a worker that can't start a thread.
        let is_prompt = plan().topology != Topology::Cluster || plan().is_calm();
        if plan().gives_tasks() && is_prompt {
            wrong.extend(task.judge_order(&takings, taken.began, now));
        }
        task.attempt = taken.attempt.max(task.attempt);
        task.token = taken.token.max(task.token);
        task.is_certain = true;
        task.available = None;
        task.holder = Some(current());
        let due = task.due.0;
        self.takings = takings;
        self.takings.push(Taking {
            began: taken.began,
            ended: now,
            due: Some(due),
        });
        wrong
    }
}

/// Engines count the times of tasks in milliseconds.
const PRECISION: Duration = Duration::from_millis(1);

impl Known {
    /// Each try counts, and there are so many.
    fn judge_try(&self, taken: &Taken<'_>) -> Option<String> {
        let (try_, tries) = (taken.attempt, self.tries);
        let is_again = try_ <= self.attempt && taken.token > self.token;
        (is_again || try_ > tries)
            .then(|| format!("is tried as {try_} of {tries}, after {}", self.attempt))
    }

    /// Nobody who came before should have taken it.
    fn judge_order(&self, takings: &[Taking], began: Duration, now: Duration) -> Option<String> {
        let ready = self.available?.max(self.due.1);
        let late = now.saturating_sub(ready.max(began));
        // Of several shards each has an order of its own.
        let has_shards = plan().topology == Topology::Cluster;
        if late > if has_shards { SOON * 3 } else { SOON } {
            return Some(format!(
                "was given {late:?} after it was due and a worker had come"
            ));
        }
        if has_shards {
            return None;
        }
        let passed = takings.iter().find(|other| {
            let is_earlier = other.due.is_none_or(|due| self.due.1 + PRECISION < due);
            let was_ready =
                ready + SOON < other.ended && (other.due.is_none() || ready < other.began);
            other.ended < began && is_earlier && was_ready
        });
        passed.map(|other| format!("was ready at {ready:?}, and passed over by {other:?}"))
    }
}

/// A worker waited, and found nothing.
pub fn found_none(name: &str, began: Duration) {
    let ended = true_now();
    with(name, |queue| {
        queue.takings.push(Taking {
            began,
            ended,
            due: None,
        });
    });
}

/// How a worker ends a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Retry(Duration),
    Bury,
    Drop,
}

/// It begins to.
pub fn ending(name: &str, id: &str, how: End) {
    let now = true_now();
    with(name, |queue| {
        let Some(task) = queue.tasks.get_mut(id) else {
            return;
        };
        task.is_ending |= how == End::Done;
        task.holder = None;
        task.ends = now;
    });
}

/// It has.
pub fn ended(name: &str, id: &str, attempt: u32, how: End, result: &Result<(), Error>) {
    if result.is_err() {
        return;
    }
    let now = true_now();
    let wrong = with(name, |queue| {
        let task = queue.tasks.get_mut(id)?;
        let is_last = attempt >= task.tries;
        match how {
            End::Done => {
                let before = task.done.replace(now);
                return before.map(|_| "was done twice");
            }
            // Unless another try has begun meanwhile.
            End::Retry(delay) if task.attempt == attempt && !is_last => {
                task.due = (task.ends + least(delay), now + delay);
                task.available = Some(now);
            }
            End::Bury | End::Retry(_) => task.is_buried = true,
            End::Drop => {}
        }
        None
    });
    if let Some(text) = wrong
        && plan().is_safe()
    {
        violation(format!("{name}: {id} {text}"));
    }
}

pub(super) fn died(process: Process) {
    for queue in locked(&QUEUES).values_mut() {
        for task in queue.tasks.values_mut() {
            if task.holder == Some(process) {
                task.holder = None;
            }
        }
    }
}

pub(super) fn forget() {
    locked(&QUEUES).clear();
}

/// The names of all queues.
pub fn queues() -> Vec<String> {
    locked(&QUEUES).keys().cloned().collect()
}

/// Which tasks must be there in the end, and which must not.
pub fn remaining(name: &str) -> Vec<(String, bool)> {
    with(name, |queue| {
        let tasks = queue.tasks.iter();
        let sure = tasks.filter_map(|(id, task)| match task {
            Known { done: Some(_), .. } => Some((id.clone(), false)),
            Known {
                is_certain: true,
                is_ending: false,
                ..
            } => Some((id.clone(), true)),
            _ => None,
        });
        sure.collect()
    })
}
