//! Leases that are passed on to another process, by way of the register.

use std::io;
use std::thread;

use crosslock::{LeaseTicket, LockGuard, Locker};

use super::Worker;
use super::task::{Guard, Task};
use crate::history::{Event, Mode, now};

impl Worker<'_> {
    /// Gives up the lease, and leaves its ticket to one that takes it, to two, or to nobody.
    pub(super) fn pass_on(&mut self, guard: LockGuard) -> io::Result<()> {
        let Ok(ticket) = guard.into_ticket() else {
            self.tell_released(("lost", ""));
            return Ok(());
        };
        let ticket = serde_json::to_string(&ticket)?;
        let takers = [1, 1, 1, 2, 0][self.rng.usize(0..5)];
        if takers > 0 {
            self.register.post(&Event {
                until: takers,
                detail: ticket,
                ..self.event("pass")
            })?;
        }
        self.tell_released(("passed", ""));
        Ok(())
    }

    /// Goes on with a lease of another process, if one is passed on.
    pub(super) fn adopt(&mut self, locker: &Locker, number: u64) -> io::Result<Option<Guard>> {
        let who = if self.rng.u8(0..8) == 0 {
            "any"
        } else {
            "other"
        };
        let Some(passed) = self.register.take(who)? else {
            return Ok(None);
        };
        let ticket: LeaseTicket = serde_json::from_str(&passed.detail)?;
        (self.of.name, self.of.mode) = (passed.name, passed.mode);
        self.task = match self.of.mode {
            Mode::Exclusive => Task::Adopted,
            _ => Task::Read,
        };
        if self.rng.u8(0..4) == 0 {
            // Sometimes until it is too late.
            thread::sleep(self.ttl.mul_f64(1.2 * self.rng.f64()));
        }
        self.begin();
        self.history.tell(&Event {
            detail: "adopt".to_owned(),
            token: number,
            until: passed.id,
            ..self.event("ask")
        });
        let adopted = locker.adopt(ticket);
        let event = Event {
            at: now(),
            ..self.event("answer")
        };
        Ok(self.tell_answer(adopted.map(|guard| Some(Guard::Lock(guard))), event))
    }
}
