//! Requests of which a copy comes when their owner has lost what it had asked for, or has released it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosslock::{Locker, MutexGuard, Result};
use crosslock_world::{Message, add_message_fault, messages, time, violation};

use super::late::{IS_HELD, NEXT, WAS_TAKEN_AWAY, happens, hold_until_lost};
use super::{NAME, SHORT, hold};
use crate::events::Event;
use crate::judge::{self, Kind};
use crate::work::panic_with;

/// By then another has had the lock, and its first owner still has the guard.
const LATER: Duration = Duration::from_millis(60);

/// The part of a ttl for which that guard is kept: it isn't renewed meanwhile.
const UNRENEWED: f64 = 0.15;

/// What the process sends next is a request that the server knows how to carry out, and nobody else sends anything.
fn settle(locker: &Locker) -> Result<()> {
    locker.lock("other")?.unlock()?;
    time::sleep(LATER);
    Ok(())
}

/// Has a copy of the next message come later.
fn copy_next() {
    add_message_fault(messages() + 1, Message::Duplicate(LATER));
}

/// A reader whose lease is lost doesn't go on with what the copy brings.
pub fn read_what_is_lost(locker: &Locker) -> Result<()> {
    settle(locker)?;
    copy_next();
    hold_until_lost(locker.read(NAME)?, Kind::Shared)
}

/// What another has stored since stays.
pub fn store_what_is_lost(locker: &Locker) -> Result<()> {
    settle(locker)?;
    let value = locker.mutex(NAME, 0_i64)?;
    copy_next();
    let mut guard = value.lock()?;
    IS_HELD.store(true, Ordering::Relaxed);
    time::sleep(judge::plan().ttl.mul_f64(UNRENEWED));
    *guard = 1;
    let was_stored = NEXT.load(Ordering::Relaxed) > 0;
    let done = MutexGuard::unlock(guard);
    if was_stored && *value.lock()? != 2 {
        violation("a lease that was lost stored its value over a later one".to_owned());
    }
    done
}

pub fn store_what_was_lost(locker: &Locker) -> Result<()> {
    if happens(&WAS_TAKEN_AWAY) {
        let value = locker.mutex(NAME, 0_i64)?;
        let mut guard = value.lock()?;
        let token = MutexGuard::lease(&guard).fencing_token();
        *guard = 2;
        MutexGuard::unlock(guard)?;
        NEXT.store(token, Ordering::Relaxed);
    }
    Ok(())
}

static IS_RELEASED: AtomicBool = AtomicBool::new(false);

pub fn release_what_is_lost(locker: &Locker) -> Result<()> {
    settle(locker)?;
    copy_next();
    let guard = locker.lock(NAME)?;
    IS_HELD.store(true, Ordering::Relaxed);
    time::sleep(judge::plan().ttl.mul_f64(UNRENEWED));
    let done = guard.unlock();
    IS_RELEASED.store(true, Ordering::Relaxed);
    done
}

/// A thread panicked with the lock. The next holder learns of that, whatever comes in between.
pub fn abandon_what_was_lost(locker: &Locker) -> Result<()> {
    if happens(&WAS_TAKEN_AWAY) {
        panic_with(NAME, locker.lock(NAME)?)?;
        if happens(&IS_RELEASED) {
            let guard = locker.lock(NAME)?;
            if !guard.was_abandoned() {
                violation("the lock was abandoned, and nobody is told".to_owned());
            }
            return guard.unlock();
        }
    }
    Ok(())
}

const PERMITS: &str = "permits";
const OF: u32 = 5;

/// A copy of the request comes when its permits are kept out, and then one of the release.
pub fn keep_permits(locker: &Locker) -> Result<()> {
    settle(locker)?;
    let semaphore = locker.semaphore(PERMITS, OF)?;
    copy_next();
    let guard = semaphore.acquire_many(2)?;
    guard.at_least_for(judge::plan().ttl * 5);
    time::sleep(LATER / 3);
    copy_next();
    guard.unlock()
}

/// Two are kept out, and two may be taken for a ttl by the copy alone.
pub fn take_permits(locker: &Locker) -> Result<()> {
    time::sleep(LATER * 5);
    let semaphore = locker.semaphore(PERMITS, OF)?;
    match semaphore.try_acquire_many_for(2, judge::plan().ttl * 3)? {
        Some(guard) => hold(&[PERMITS], Kind::Permits { count: 2, of: OF }, guard, SHORT).unlock(),
        None if Event::has_happened(Duration::ZERO) => Ok(()),
        None => {
            violation("two permits of five are out, and no more are given".to_owned());
            Ok(())
        }
    }
}
