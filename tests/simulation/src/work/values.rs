//! Values beside locks: counters, to which each store adds one.

use std::time::Duration;

use crosslock::{Error, Mutex, MutexGuard, Result, RwLockReadGuard, RwLockWriteGuard};
use crosslock_world::{record, time, true_now, violation};

use super::{Worker, owned};
use crate::judge::{self, Held, Kind, removals};
use crate::plan::Topology;

impl Worker {
    pub(super) fn counter(&mut self) -> Result<()> {
        let name = self.name("counter");
        let counter = self.locker.mutex(&name, 0_i64)?;
        match self.random.u32(..6) {
            0 => return self.peek(&name),
            1 => return update(&name, &counter),
            2 => {
                give_change_up(&name, &counter);
                return Ok(());
            }
            _ => {}
        }
        let (guard, call) = self
            .ask(&name, None, |_| counter.lock().map(Some))?
            .expect("it waits for ever");
        read(&name, *guard, Kind::Exclusive, &guard);
        let mut guard = self.hold(&[&name], Kind::Exclusive, (guard, call));
        *guard += 1;
        let id = judge::storing(&name);
        let stored = MutexGuard::unlock(guard);
        judge::unreleased(&[&name], true_now());
        judge::stored(&name, id, &stored);
        record(&format!("has stored {name}: {stored:?}"));
        stored
    }

    fn peek(&mut self, name: &str) -> Result<()> {
        let before = judge::peeking(name);
        let found = self.locker.mutex(name, 0_i64)?.peek()?;
        judge::peeked(name, before, found);
        Ok(())
    }

    /// Values that many read, and one changes.
    pub(super) fn shared_value(&mut self) -> Result<()> {
        let name = self.name("value");
        let shared = self.locker.rwlock(&name, 0_i64)?;
        if self.random.u32(..3) > 0 {
            let (guard, call) = self.ask_shared(&name, true, |_| shared.read())?;
            return self.read_value(&name, guard, Some(call));
        }
        let (guard, call) = self.ask_shared(&name, false, |_| shared.write())?;
        read(&name, *guard, Kind::Exclusive, &guard);
        let mut guard = self.hold(&[&name], Kind::Exclusive, (guard, call));
        let id = judge::storing(&name);
        *guard += 1;
        let value = *guard;
        if self.random.bool() {
            let stored = RwLockWriteGuard::unlock(guard);
            judge::unreleased(&[&name], true_now());
            judge::stored(&name, id, &stored);
            return stored;
        }
        let guard = RwLockWriteGuard::downgrade(guard);
        // It may have been stored, and lost behind that.
        if !matches!(guard, Err(Error::Lost { .. })) {
            judge::stored(&name, id, &guard);
        }
        let guard = guard?;
        if *guard != value {
            violation(format!(
                "{name} is {} when {value} was left to read",
                *guard
            ));
        }
        self.read_value(&name, guard, None)
    }

    /// Nobody changes it while a reader is inside.
    fn read_value(
        &mut self,
        name: &str,
        guard: RwLockReadGuard<i64>,
        call: Option<judge::Call>,
    ) -> Result<()> {
        read(name, *guard, Kind::Shared, &guard);
        let (guard, id) = self.hold_on(&[name], Kind::Shared, guard, call);
        let value = **guard;
        if self.random.u32(..4) == 0 {
            let found = self.locker.rwlock(name, 0_i64)?.peek();
            let is_valid = guard.lease().is_held()
                && self.plan.is_safe()
                && !judge::is_broken(name, Kind::Shared, &*guard);
            if let Ok(found) = found
                && found != value
                && is_valid
            {
                violation(format!(
                    "{name} is {found}, and a reader inside has {value}"
                ));
            }
        }
        judge::ending(&[name], id, false);
        self.release(&[name], owned(guard), RwLockReadGuard::unlock)
    }

    /// Waits until others have stored some more.
    pub(super) fn condition(&mut self) -> Result<()> {
        let name = self.name("condition");
        let value = self.locker.mutex(&name, 0_i64)?;
        let mut guard = value.lock()?;
        read(&name, *guard, Kind::Exclusive, &guard);
        let what = self.random.u32(..4);
        if what > 0 {
            time::sleep(self.plan.ttl.mul_f64(self.random.f64() * 0.01));
        }
        match what {
            0 => self.wait_for_stores(&name, guard),
            // It may come behind one that has stored, and tells nobody.
            1 => MutexGuard::unlock(guard),
            _ => {
                *guard += 1;
                store(&name, guard)
            }
        }
    }

    fn wait_for_stores(&mut self, name: &str, guard: MutexGuard<i64>) -> Result<()> {
        // The wait itself changes it in the beginning, or whenever it looks.
        let target = *guard + 1 + self.random.i64(1..=3);
        let often = self.random.bool();
        let timeout = Duration::from_millis(self.random.u64(500..8_000));
        let (began, stores) = (true_now(), judge::stores(name));
        let (mut own, mut is_changed) = (Vec::new(), false);
        let mut looks = 0;
        let (mut last, mut late) = (None, Duration::ZERO);
        let waited = MutexGuard::wait_while_for(guard, timeout, |value| {
            looks += 1;
            if let Some((at, seen)) = last {
                late = late.max(unseen(name, at, seen));
            }
            is_changed = own.is_empty() || often && *value + 1 < target;
            if is_changed {
                own.push(judge::storing(name));
                *value += 1;
            }
            last = Some((true_now(), *value));
            *value < target
        });
        let changes = own.len();
        // It looks again when that is stored. One that is lost may have lost the lock that it took then.
        let last = own.pop_if(|_| is_changed);
        own.iter().for_each(|id| judge::stored(name, *id, &Ok(())));
        let (guard, timed_out) = waited?;
        if last.is_none() {
            read(name, *guard, Kind::Exclusive, &guard);
        }
        judge_met(name, &guard, target, timed_out.then_some((began, timeout)));
        // The message of a store before the wait may come from a server behind its beginning.
        let is_told = usize::from(self.plan.topology != Topology::Memory);
        let most = judge::stores(name) - stores - changes + 1 + usize::from(timed_out) + is_told;
        if looks > most && self.plan.is_calm() {
            violation(format!("{name}: {looks} looks at {most} changes"));
        }
        self.judge_woken(name, late);
        let stored = MutexGuard::unlock(guard);
        if let Some(id) = last {
            judge::stored(name, id, &stored);
        }
        stored
    }

    /// Who waits looks soon after each change. All that wait have their turn, and each holds it for a hundredth of the
    /// ttl.
    fn judge_woken(&self, name: &str, late: Duration) {
        let others = u32::try_from(self.plan.processes * self.plan.threads).unwrap_or(1);
        let most = (self.plan.ttl.mul_f64(0.012) + Duration::from_millis(15)) * others;
        const SOON: Duration = Duration::from_millis(200);
        if late > most + SOON && self.plan.is_calm() {
            violation(format!(
                "{name} had changed for {late:?} when who waits looked"
            ));
        }
    }
}

/// A call that takes the lock, changes the value, and gives the lock back.
fn update(name: &str, counter: &Mutex<i64>) -> Result<()> {
    let mut id = None;
    let call = judge::began(name, None);
    let stored = counter.update(|value| {
        judge::ended(call, false);
        judge::abandoned(name, None);
        id = Some(judge::storing(name));
        *value += 1;
    });
    judge::ended(call, false);
    id.into_iter()
        .for_each(|id| judge::stored(name, id, &stored));
    stored
}

/// The same, but the change isn't to be stored.
fn give_change_up(name: &str, counter: &Mutex<i64>) {
    let call = judge::began(name, None);
    let changed: Result<(), Box<dyn std::error::Error>> = counter.try_update(|value| {
        judge::ended(call, false);
        judge::abandoned(name, None);
        *value += 7;
        Err("it isn't to be stored".into())
    });
    judge::ended(call, false);
    record(&format!("gives a change of {name} up: {changed:?}"));
}

/// The wait was until the value is that large, or for that time.
fn judge_met(
    name: &str,
    guard: &MutexGuard<i64>,
    target: i64,
    timed_out: Option<(Duration, Duration)>,
) {
    if timed_out.is_some() != (**guard < target) && MutexGuard::lease(guard).is_held() {
        let found = **guard;
        violation(format!("{name}: a wait for {target} ended with {found}"));
    }
    if let Some((began, timeout)) = timed_out
        && true_now() < began + timeout.mul_f64(0.99)
    {
        violation(format!("{name}: a wait for {timeout:?} was over too early"));
    }
}

/// For how long there was something to see that who looked then hasn't seen.
fn unseen(name: &str, at: Duration, seen: i64) -> Duration {
    let since = judge::reached(name, seen + 1);
    since.map_or(Duration::ZERO, |since| {
        true_now().saturating_sub(since.max(at))
    })
}

impl Worker {
    /// A value that is there or was removed, which some wait for.
    pub(super) fn remove(&mut self) -> Result<()> {
        let name = self.name("removed");
        let value = self.locker.mutex(&name, 0_i64)?;
        match self.random.u32(..3) {
            0 => {
                let sets = removals::removing(&name);
                value.remove()?;
                removals::removed(&name, sets);
                Ok(())
            }
            1 => {
                removals::setting(&name);
                let set = value.set(1);
                // It may come later otherwise.
                if set.is_ok() {
                    removals::set(&name);
                }
                set
            }
            _ => {
                let timeout = Duration::from_millis(self.random.u64(500..8_000));
                let began = true_now();
                let waited = MutexGuard::wait_while_for(value.lock()?, timeout, |value| *value > 0);
                let (guard, timed_out) = waited?;
                record(&format!("waited for {name}: {timed_out}"));
                removals::waited(&name, began);
                MutexGuard::unlock(guard)
            }
        }
    }
}

fn store(name: &str, guard: MutexGuard<i64>) -> Result<()> {
    let id = judge::storing(name);
    let stored = MutexGuard::unlock(guard);
    judge::stored(name, id, &stored);
    stored
}

/// Who has the lock has the value that was stored last.
fn read(name: &str, value: i64, kind: Kind, guard: &impl Held) {
    if guard.lease().is_held() && !judge::is_broken(name, kind, guard) {
        judge::read(name, value);
    }
}
