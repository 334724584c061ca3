//! Delayed tasks: a worker gets each that is ready soon, whatever happened to those that were asked before it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crosslock::{DelayQueue, Locker, Result, Task};
use crosslock_world::{allow_threads, current, spawn, time, true_now, violation};

use super::{HAS_FAILED, NAME, SHORT, only_messages_fail};
use crate::events::Event;
use crate::judge;
use crate::work::causes;

const TASKS: u64 = 4;

static DONE: AtomicU64 = AtomicU64::new(0);

fn queue(locker: &Locker) -> Result<DelayQueue<u64>> {
    locker.delay_queue(NAME)
}

/// Awaits that so many are done, unless a call fails. If nothing goes wrong but with a message, they are before a lease
/// would end.
fn await_done(tasks: u64) {
    let (began, most) = (true_now(), judge::plan().ttl * 2);
    let has_failed = || HAS_FAILED.load(Ordering::Relaxed);
    while DONE.load(Ordering::Relaxed) < tasks && !has_failed() && true_now() < began + most {
        time::sleep(SHORT);
    }
    let took = true_now() - began;
    if took > judge::plan().ttl.mul_f64(0.75) && only_messages_fail() && !has_failed() {
        violation(format!("{tasks} tasks were ready, and took {took:?}"));
    }
}

pub fn insert(locker: &Locker) -> Result<()> {
    let queue = queue(locker)?;
    for value in 0..TASKS {
        queue.insert(&value, Duration::ZERO)?;
    }
    await_done(TASKS);
    Ok(())
}

/// A thread that ends each with the command by which it takes the next.
pub fn work(locker: &Locker) -> Result<()> {
    let queue = queue(locker)?;
    let workers = queue.work(1, |_: &Task<u64>| {
        time::sleep(SHORT);
        DONE.fetch_add(1, Ordering::Relaxed);
        Ok::<_, String>(())
    })?;
    await_done(TASKS);
    drop(workers);
    Ok(())
}

/// Can't hear, since its process can start no thread but one that renews a lease. Then it stands still: it is the
/// first in line, and asks no more.
pub fn wait_deaf(locker: &Locker) -> Result<()> {
    let process = current();
    let _ = spawn("limit", move || {
        time::sleep(SHORT / 100);
        allow_threads(process, false);
    });
    queue(locker)?.take_for(judge::plan().ttl).map(drop)
}

pub fn wait_behind(locker: &Locker) -> Result<()> {
    time::sleep(SHORT * 20);
    let task = queue(locker)?.take_for(judge::plan().ttl * 2)?;
    if let Some(task) = task {
        DONE.fetch_add(1, Ordering::Relaxed);
        Task::done(task)?;
    }
    Ok(())
}

/// When the first in line hasn't asked for long.
pub fn insert_later(locker: &Locker) -> Result<()> {
    time::sleep(judge::plan().ttl.mul_f64(1.2));
    queue(locker)?.insert(&0, Duration::ZERO)?;
    await_done(1);
    Ok(())
}

/// Of several shards, each call that doesn't wait takes what one has that answers, whichever others stand still.
pub fn try_each(locker: &Locker) -> Result<()> {
    let queue = queue(locker)?;
    for value in 0..TASKS {
        let has_frozen = Event::has_frozen_behind(Duration::ZERO);
        // The others are in a shard that stands still.
        if queue.insert(&value, Duration::ZERO).is_ok() {
            match queue.try_take() {
                Ok(Some(task)) => drop(Task::done(task)),
                // Nodes say so when one has stood still for long.
                Err(error) if causes(&error).contains("CLUSTERDOWN") => {}
                nothing if has_frozen => {
                    violation(format!("a task was ready, and a call returned {nothing:?}"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
