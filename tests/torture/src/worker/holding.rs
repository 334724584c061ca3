//! What a thread does with a lock that it has.

use std::borrow::Borrow;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crosslock::{Error, Leadership, LockGuard, MutexGuard};

use super::Worker;
use super::errors::{kind, reason};
use super::handing_over::was_handed_over;
use super::task::{Guard, Task};
use crate::history::{Event, HANDED_OVER, Mode, WAITED, now};
use crate::names::{COUNTER, LONG};

/// One lease in so many is passed on to another process.
const PASSED_ON_EVERY: u8 = 30;
/// One holder of a value in so many waits until that changes.
const WAITS_EVERY: u8 = 4;

impl Worker<'_> {
    pub(super) fn hold(&mut self, guard: Guard) -> io::Result<()> {
        let pause = self.pause();
        let values = self.come(&guard, pause)?;
        self.stay(&guard, pause);
        self.go(&guard, &values)?;
        match self.release(guard)? {
            Some(reading) => self.hold(reading),
            None => Ok(()),
        }
    }

    fn pause(&mut self) -> Duration {
        let (longer, shorter) = (self.rng.f64(), self.rng.f64());
        if self.of.name == LONG {
            return self.ttl.mul_f64(0.3 + 1.7 * longer);
        }
        match (self.of.mode, self.rng.u8(0..10)) {
            // They are renewed beside others.
            (Mode::Read | Mode::Permits(_), 0..2) => self.ttl.mul_f64(0.3 + 0.9 * longer),
            // Others have time to change what it would overwrite.
            (_, 0..6) if self.of.name == COUNTER => self.ttl.mul_f64(0.2 * shorter),
            (_, 0..3) => self.ttl.mul_f64(0.2 * shorter),
            _ => Duration::from_micros(self.rng.u64(0..500)),
        }
    }

    /// Gives what the register has for each name; `None` where it is too late.
    fn come(&mut self, guard: &Guard, pause: Duration) -> io::Result<Vec<Option<u64>>> {
        if let Guard::Value(value) = guard {
            self.history.tell(&Event {
                until: **value,
                ..self.event("value")
            });
        }
        let (token, id, micros) = (guard.lease().fencing_token(), self.of.id, pause.as_micros());
        let verb = self.one_of("peek", "read");
        let names = self.of.name.split(' ');
        names
            .map(|name| {
                self.register
                    .call(&format!("{verb} {name} {token} {id} {micros}"))
            })
            .collect()
    }

    fn one_of(&self, sharing: &'static str, exclusive: &'static str) -> &'static str {
        match self.of.mode {
            Mode::Exclusive => exclusive,
            Mode::Read | Mode::Permits(_) => sharing,
        }
    }

    /// Until the run is over at most: others wait for it.
    fn stay(&self, guard: &Guard, pause: Duration) {
        let mut lost = self.look(guard, false);
        let end = now() + u64::try_from(pause.as_nanos()).expect("it is short");
        while now() < end && !self.ends.load(Relaxed) {
            let left = Duration::from_nanos(end.saturating_sub(now()));
            thread::sleep(left.min(Duration::from_millis(10)));
            lost = self.look(guard, lost);
        }
    }

    /// Says whether the lease is lost; it may have been before.
    fn look(&self, guard: &Guard, lost: bool) -> bool {
        let mut event = self.event("look");
        event.until = valid_until(event.at, guard);
        if event.until > 0 {
            self.history.tell(&event);
            return false;
        }
        if !lost {
            event.op = "lost".to_owned();
            event.detail = match guard.lease().check() {
                Ok(()) => "held again",
                Err(error) => reason(&error),
            }
            .to_owned();
            self.history.tell(&event);
        }
        true
    }

    /// Writes, whether it still holds the lock or not: to refuse it is the register's business.
    fn go(&mut self, guard: &Guard, values: &[Option<u64>]) -> io::Result<()> {
        let (token, id) = (guard.lease().fencing_token(), self.of.id);
        let verb = self.one_of("leave", "write");
        for (name, value) in self.of.name.split(' ').zip(values) {
            let Some(value) = value else { continue };
            let next = value + 1;
            self.register
                .call(&format!("{verb} {name} {token} {id} {next}"))?;
        }
        Ok(())
    }

    /// Gives what is held after it: of a lock that was written to, one that reads.
    fn release(&mut self, guard: Guard) -> io::Result<Option<Guard>> {
        match guard {
            Guard::Lock(guard) => {
                let may_read_on = self.task == Task::Write && self.of.mode == Mode::Exclusive;
                if may_read_on && self.rng.bool() {
                    return Ok(self.downgrade(guard));
                }
                let is_one = !self.of.name.contains(' ');
                if is_one && self.rng.u8(0..PASSED_ON_EVERY) == 0 {
                    if let Guard::Lock(guard) = self.tell_release("pass", Guard::Lock(guard)) {
                        self.pass_on(guard)?;
                    }
                    return Ok(None);
                }
                self.release_lock(guard);
            }
            Guard::Lead(leadership) => self.resign(leadership),
            Guard::Value(guard) if self.rng.u8(0..WAITS_EVERY) == 0 => {
                return Ok(self.wait_for_change(guard));
            }
            Guard::Value(guard) => self.release_value(guard),
        }
        Ok(None)
    }

    fn resign(&mut self, leadership: Leadership) {
        if self.rng.bool() {
            // What others see of it is no business of the history.
            let _ = leadership.publish("here");
        }
        let how = ["unlock", "drop", "panic"][self.rng.usize(0..3)];
        let outcome = match (how, self.tell_release(how, Guard::Lead(leadership))) {
            ("unlock", Guard::Lead(leadership)) => said(leadership.resign()),
            (how, guard) => let_go(how, guard),
        };
        self.tell_released(outcome);
    }

    /// Releases, waits until another has changed the value, and takes the lock again. In the history that begins when
    /// it is over.
    fn wait_for_change(&mut self, mut guard: MutexGuard<u64>) -> Option<Guard> {
        let changes = self.rng.bool();
        *guard += u64::from(changes);
        let (seen, longest) = (*guard, self.ttl.mul_f64(self.rng.f64()));
        let how = if changes { "commit" } else { "unchanged" };
        let Guard::Value(guard) = self.tell_release(how, Guard::Value(guard)) else {
            return None;
        };
        let waited = MutexGuard::wait_while_for(guard, longest, |value| *value == seen);
        self.tell_released(match &waited {
            // A cancel ends the wait, behind the release.
            Ok(_) | Err(Error::Cancelled { .. }) => ("ok", WAITED),
            waited => match said(waited.as_ref()) {
                (outcome, "") => (outcome, WAITED),
                lost => lost,
            },
        });
        let again = Guard::Value(waited.ok()?.0);
        self.begin();
        self.history.tell(&Event {
            detail: "lock".to_owned(),
            token: self.number,
            ..self.event("ask")
        });
        self.tell_held(&again, self.event("answer"));
        Some(again)
    }

    fn release_lock(&mut self, guard: LockGuard) {
        let how = ["unlock", "drop", "drop", "panic"][self.rng.usize(0..4)];
        let guard = self.tell_release(how, Guard::Lock(guard));
        let outcome = match (how, guard) {
            ("unlock", Guard::Lock(guard)) => said(guard.unlock()),
            (how, guard) => let_go(how, guard),
        };
        self.tell_released(outcome);
    }

    fn release_value(&mut self, mut guard: MutexGuard<u64>) {
        const HOW: [&str; 6] = ["commit", "commit", "drop", "panic", "discard", "unchanged"];
        let how = HOW[self.rng.usize(0..HOW.len())];
        if how != "unchanged" {
            *guard += 1;
        }
        let guard = self.tell_release(how, Guard::Value(guard));
        let outcome = match (how, guard) {
            ("commit" | "unchanged", Guard::Value(guard)) => said(MutexGuard::unlock(guard)),
            ("discard", Guard::Value(guard)) => said(MutexGuard::discard(guard)),
            (how, guard) => let_go(how, guard),
        };
        self.tell_released(outcome);
    }

    fn downgrade(&mut self, guard: LockGuard) -> Option<Guard> {
        let guard = self.tell_release("downgrade", Guard::Lock(guard));
        let Guard::Lock(guard) = guard else {
            return None;
        };
        let downgraded = guard.downgrade();
        self.tell_released(said(downgraded.as_ref()));
        let reading = Guard::Lock(downgraded.ok()?);
        self.begin();
        self.of.mode = Mode::Read;
        self.tell_held(&reading, self.event("answer"));
        Some(reading)
    }

    fn tell_release(&self, how: &str, guard: Guard) -> Guard {
        let mut event = self.event("release");
        event.until = valid_until(event.at, &guard);
        event.detail = how.to_owned();
        self.history.tell(&event);
        guard
    }

    pub(super) fn tell_released(&self, (outcome, reason): Said) {
        self.history.tell(&Event {
            outcome: outcome.to_owned(),
            detail: reason.to_owned(),
            ..self.event("released")
        });
    }

    /// `event` was made before.
    pub(super) fn tell_held(&self, guard: &Guard, mut event: Event) {
        event.outcome = "held".to_owned();
        event.token = guard.lease().fencing_token();
        event.until = valid_until(event.at, guard);
        if guard.lease().was_abandoned() {
            event.detail = "abandoned".to_owned();
        } else if was_handed_over(event.token) {
            event.detail = HANDED_OVER.to_owned();
        }
        self.history.tell(&event);
    }
}

/// The outcome of a release, and why the lease was lost.
type Said = (&'static str, &'static str);

fn said<T>(outcome: Result<T, impl Borrow<Error>>) -> Said {
    match outcome {
        Ok(_) => ("ok", ""),
        Err(error) => (kind(error.borrow()), reason(error.borrow())),
    }
}

/// Drops, by a panic or not.
fn let_go(how: &str, guard: Guard) -> Said {
    if how == "panic" {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _guard = guard;
            resume_unwind(Box::new(()));
        }));
        assert!(unwound.is_err());
    } else {
        drop(guard);
    }
    ("dropped", "")
}

/// Zero when it isn't valid; `at` was read before.
fn valid_until(at: u64, guard: &Guard) -> u64 {
    match u64::try_from(guard.lease().remaining().as_nanos()) {
        Ok(0) => 0,
        Ok(remaining) => at.saturating_add(remaining),
        Err(_) => u64::MAX,
    }
}
