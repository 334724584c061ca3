//! Locks of all kinds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crosslock::{CancelToken, Error, LockGuard, Result};
use crosslock_world::{record, spawn, time, true_now, uninterrupted, violation};

use super::{Worker, in_time, owned};
use crate::judge::{self, Kind};
use crate::plan::{Busy, Topology};

/// The permits of a semaphore.
const PERMITS: u32 = 3;

impl Worker {
    pub(super) fn lock(&mut self) -> Result<()> {
        let name = self.name("lock");
        let held = self.ask(&name, None, |locker| locker.lock(&name).map(Some))?;
        let guard = self.hold(&[&name], Kind::Exclusive, held.expect("it waits for ever"));
        self.release(&[&name], guard, LockGuard::unlock)
    }

    pub(super) fn try_lock(&mut self) -> Result<()> {
        let name = self.name("lock");
        // It asks once, and a server that hangs is waited for. To connect, and to find the server, it asks, too.
        let questions = if self.plan.is_calm() { 1 } else { 10 };
        let most = self.plan.io_timeout * questions;
        let call = judge::began(&name, Some(most));
        let held = in_time(most, || self.bounded(most, |locker| locker.try_lock(&name)));
        let Some(held) = uninterrupted(|| match held {
            Ok(None) => {
                judge::refused(call);
                Ok(None)
            }
            held => {
                judge::ended(call, held.is_ok());
                held
            }
        })?
        else {
            return Ok(());
        };
        let guard = self.hold(&[&name], Kind::Exclusive, (held, call));
        self.release(&[&name], guard, LockGuard::unlock)
    }

    pub(super) fn timed(&mut self) -> Result<()> {
        let name = self.name("lock");
        let part = self.random.f64() * 1.5;
        let timeout = self.short_or(self.plan.ttl.mul_f64(part));
        let held = self.ask(&name, Some(timeout), |locker| {
            locker.try_lock_for(&name, timeout)
        })?;
        let Some(held) = held else {
            self.gave_up();
            return Ok(());
        };
        let guard = self.hold(&[&name], Kind::Exclusive, held);
        self.release(&[&name], guard, LockGuard::unlock)
    }

    /// Often a time that is over while the first question is on its way.
    fn short_or(&mut self, usual: Duration) -> Duration {
        match self.random.bool() || self.plan.busy == Some(Busy::GivesUp) {
            true => Duration::from_micros(self.random.u64(..600)),
            false => usual,
        }
    }

    /// A call that another thread cancels.
    pub(super) fn cancelled(&mut self) -> Result<()> {
        let name = self.name("lock");
        let token = CancelToken::new();
        let part = self.random.f64().powi(3);
        let lasts = self.short_or(self.plan.ttl.mul_f64(part));
        let (end, theirs) = (true_now() + lasts, token.clone());
        let _ = spawn("canceller", move || {
            time::sleep(lasts);
            theirs.cancel();
        });
        let call = judge::began(&name, Some(lasts));
        let held = self.locker.with_cancel(&token).lock(&name);
        judge::ended(call, held.is_ok());
        let late = true_now().saturating_sub(end);
        if late > Duration::from_millis(60) && self.plan.has_time() {
            violation(format!("a call goes on for {late:?} when it was cancelled"));
        }
        match held {
            Ok(guard) => {
                let guard = self.hold(&[&name], Kind::Exclusive, (guard, call));
                self.release(&[&name], guard, LockGuard::unlock)
            }
            Err(Error::Cancelled { .. }) => {
                self.gave_up();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The lock stays taken for a while, though its guard is gone.
    pub(super) fn least_time(&mut self) -> Result<()> {
        let name = self.name("least");
        let (guard, call) = self
            .ask(&name, None, |locker| locker.lock(&name).map(Some))?
            .expect("it waits for ever");
        let least = self.plan.ttl.mul_f64(self.random.f64() * 0.5);
        guard.at_least_for(least);
        let until = true_now() + least.mul_f64(0.98);

        let (guard, id) = self.hold_on(&[&name], Kind::Exclusive, guard, Some(call));
        judge::not_before(&name, until);
        judge::ending(&[&name], id, false);
        let done = self.release(&[&name], owned(guard), LockGuard::unlock);
        // On etcd it is rounded up to seconds, and to what a member allows.
        let rounded = match self.plan.topology {
            Topology::Etcd => Duration::from_secs(3),
            _ => Duration::ZERO,
        };
        judge::unreleased(&[&name], until + rounded);
        done
    }

    /// A thread that panics releases, and the next holder learns of it.
    pub(super) fn panic(&mut self) -> Result<()> {
        let name = self.name("lock");
        let held = self.ask(&name, None, |locker| locker.lock(&name).map(Some))?;
        let (guard, call) = held.expect("it waits for ever");
        let (guard, id) = self.hold_on(&[&name], Kind::Exclusive, guard, Some(call));
        judge::ending(&[&name], id, true);
        panic_with(&name, owned(guard))
    }

    /// The same name in another namespace is another lock.
    pub(super) fn other_namespace(&mut self) -> Result<()> {
        let name = self.name("lock");
        let other = self.locker.with_namespace("other")?;
        let full = format!("other/{name}");
        let held = self.ask(&full, None, |_| other.lock(&name).map(Some))?;
        let guard = self.hold(&[&full], Kind::Exclusive, held.expect("it waits for ever"));
        self.release(&[&full], guard, LockGuard::unlock)
    }

    pub(super) fn shared(&mut self) -> Result<()> {
        let name = self.name("shared");
        if self.random.u32(..3) > 0 {
            let held = self.ask_shared(&name, true, |locker| locker.read(&name))?;
            let guard = self.hold(&[&name], Kind::Shared, held);
            return self.release(&[&name], guard, LockGuard::unlock);
        }
        let (guard, call) = self.ask_shared(&name, false, |locker| locker.write(&name))?;
        let mut guard = self.hold(&[&name], Kind::Exclusive, (guard, call));
        if self.random.bool() {
            let before = guard.fencing_token();
            guard = guard.downgrade()?;
            if guard.fencing_token() <= before {
                violation(format!("{name}: a reader goes on with token {before}"));
            }
            guard = self.hold(&[&name], Kind::Shared, (guard, call));
        }
        self.release(&[&name], guard, LockGuard::unlock)
    }

    pub(super) fn permits(&mut self) -> Result<()> {
        let name = self.name("permits");
        let count = self.random.u32(1..=2);
        let semaphore = self.locker.semaphore(&name, PERMITS)?;
        let call = judge::began(&name, None);
        let guard = semaphore.acquire_many(count);
        judge::ended(call, false);
        let kind = Kind::Permits { count, of: PERMITS };
        let guard = self.hold(&[&name], kind, (guard?, call));
        self.release(&[&name], guard, LockGuard::unlock)
    }

    pub(super) fn all(&mut self) -> Result<()> {
        let mut names: Vec<String> = (0..self.random.usize(1..=3))
            .map(|_| self.name("lock"))
            .collect();
        names.sort();
        names.dedup();
        let guard = self.locker.lock_all(&names)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (guard, id) = self.hold_on(&names, Kind::Exclusive, guard, None);
        judge::ending(&names, id, false);
        self.release(&names, owned(guard), LockGuard::unlock)
    }
}

/// The thread panics, and that drops the guard.
pub fn panic_with<G>(name: &str, guard: G) -> Result<()> {
    record(&format!("panics with {name}"));
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        resume_unwind(Box::new("on purpose"));
    }));
    judge::unreleased(&[name], true_now());
    Ok(())
}
