//! The threads that keep leases alive.
//!
//! A guard owns one for as long as it lives. A thread that isn't needed any more waits a little for the next
//! guard and then ends, so that a program which locks in a loop starts one thread and not one per lock.
//!
//! Who owns what: the guard, and between guards the pool, own the [`Renewer`], which has the sending half of
//! the thread's channel. The thread has the receiving half, and a `Weak` to the lease it tends. When the
//! `Renewer` is dropped the channel closes, and the thread ends.
//!
//! A message means "look at your slot". It is sent only when the thread would look too late by itself: the
//! slot says until when it sleeps. That way neither `lock` nor `unlock` wakes it when they follow each other
//! closely. The slot is changed first and the message sent second, and the thread sets `asleep_until` before
//! it sleeps; whoever changes the slot of a thread that isn't asleep sends the message in any case.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::base::limits::{LINGER, LONGEST_SLEEP};
use crate::base::sys::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use crate::base::sys::{self, time};
use crate::base::{BootInstant, sys::sync::Mutex};

/// The threads of one locker that have no guard at the moment.
#[derive(Debug, Default)]
pub(crate) struct Renewers {
    idle: Mutex<Vec<Renewer>>,
}

impl Renewers {
    /// A thread of this process that is ready to tend a lease: started before a lease is asked for, so that
    /// none is taken that nobody would renew.
    pub(crate) fn take(&self) -> io::Result<Renewer> {
        let mut idle = self.idle.lock();
        let rested = std::iter::from_fn(|| idle.pop()).find(Renewer::reserve);
        drop(idle);
        rested.map_or_else(Renewer::start, Ok)
    }

    pub(crate) fn give_back(&self, renewer: Renewer) {
        renewer.rest();
        let mut idle = self.idle.lock();
        idle.retain(|renewer| !renewer.has_ended());
        idle.push(renewer);
    }
}

/// A lease that a renewal thread keeps alive.
pub(crate) trait Tend: Send + Sync {
    /// In how long the thread has to look first.
    fn first_look(&self, now: BootInstant) -> Duration;

    /// Does what is due, and says how long to wait until the next; `None` when nothing is left to do.
    fn tend(&self) -> Option<Duration>;
}

/// A thread that keeps one lease alive at a time.
#[derive(Debug)]
pub(crate) struct Renewer {
    slot: Arc<Mutex<Slot>>,
    look: Sender<()>,
}

#[derive(Debug)]
struct Slot {
    duty: Duty,
    /// `None` while the thread is awake.
    asleep_until: Option<Instant>,
}

#[derive(Clone)]
enum Duty {
    /// In the pool.
    Rest {
        since: Instant,
    },
    /// Out of the pool, its lease not granted yet.
    Reserved {
        since: Instant,
    },
    Tend(Weak<dyn Tend>),
    Ended,
}

impl fmt::Debug for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Duty::Rest { .. } => "Rest",
            Duty::Reserved { .. } => "Reserved",
            Duty::Tend(_) => "Tend",
            Duty::Ended => "Ended",
        })
    }
}

impl Renewer {
    fn start() -> io::Result<Self> {
        // TLS and a logger are all that needs stack here.
        const STACK: usize = 512 * 1024;
        let slot = Slot {
            duty: Duty::Reserved { since: time::now() },
            asleep_until: None,
        };
        let (slot, (look, looks)) = (Arc::new(Mutex::new(slot)), bounded(1));
        let theirs = slot.clone();
        sys::spawn_with_stack("crosslock-renew", STACK, move || run(&theirs, &looks))?;
        Ok(Renewer { slot, look })
    }

    pub(crate) fn tend(&self, lease: Weak<dyn Tend>, first_look: Duration) {
        let first_look = first_look.min(LONGEST_SLEEP);
        self.assign(Duty::Tend(lease), time::now() + first_look);
    }

    fn rest(&self) {
        let now = time::now();
        self.assign(Duty::Rest { since: now }, now + LINGER);
    }

    /// Gives the thread something else to do, which it has to look at in time.
    fn assign(&self, duty: Duty, look_by: Instant) {
        let asleep_until = {
            let mut slot = self.slot.lock();
            slot.duty = duty;
            slot.asleep_until
        };
        if asleep_until.is_none_or(|until| until > look_by) {
            // A full channel holds a message already, a closed one has no thread.
            let _ = self.look.try_send(());
        }
    }

    /// Takes the thread out of its rest, unless it has ended.
    fn reserve(&self) -> bool {
        let mut slot = self.slot.lock();
        if matches!(slot.duty, Duty::Ended) {
            return false;
        }
        slot.duty = Duty::Reserved { since: time::now() };
        true
    }

    fn has_ended(&self) -> bool {
        matches!(self.slot.lock().duty, Duty::Ended)
    }
}

/// The thread.
fn run(slot: &Mutex<Slot>, looks: &Receiver<()>) {
    loop {
        let Some(duty) = next_duty(slot) else { return };
        let until = time::now() + work(duty);
        slot.lock().asleep_until = Some(until);
        if looks.recv_deadline(until) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// `None` when the thread has rested for long enough: from then on nobody gives it anything to do.
fn next_duty(slot: &Mutex<Slot>) -> Option<Duty> {
    let mut slot = slot.lock();
    slot.asleep_until = None;
    if matches!(slot.duty, Duty::Rest { since } if time::since(since) >= LINGER) {
        slot.duty = Duty::Ended;
        return None;
    }
    Some(slot.duty.clone())
}

/// Does what is to be done, and says how long to sleep.
fn work(duty: Duty) -> Duration {
    match duty {
        Duty::Rest { since } => LINGER.saturating_sub(time::since(since)),
        // In a loop of lock and unlock the lease comes within this time, and nobody has to wake the thread.
        Duty::Reserved { since } => time::since(since).max(LINGER),
        Duty::Ended => LONGEST_SLEEP,
        Duty::Tend(held) => {
            let Some(held) = held.upgrade() else {
                return LONGEST_SLEEP;
            };
            // A logger that panics must not end the renewing.
            let tended = catch_unwind(AssertUnwindSafe(|| held.tend()));
            tended
                .unwrap_or(Some(LINGER))
                .map_or(LONGEST_SLEEP, |pause| pause.min(LONGEST_SLEEP))
        }
    }
}
