//! Orders: what a process can be told to do with locks, one line each. Each has one line of an answer.
//!
//! A lock that is taken is kept, and known by the names that were told: `unlock a`. Without names, the last one is
//! meant. A call that fails is answered with the name of its error.

use std::sync::Arc;
use std::thread;

use crosslock::{Error, Event, LeaseTicket, LockGuard, Locker, Observer, Result};

use super::places;
use super::*;
use support::{Stopwatch, hear, now, say};

const HOUR: Duration = Duration::from_secs(3600);

struct SaysThatItWaits;

impl Observer for SaysThatItWaits {
    fn event(&self, event: &Event<'_>) {
        if let Event::Waiting { .. } = event {
            say("waits");
        }
    }
}

pub(crate) fn obey() {
    let mut holder = Holder::default();
    holder.open().expect("open");
    say("ready");
    while let Some(order) = hear() {
        let answer = holder.obey(&order);
        say(&format!("done {answer}"));
    }
}

#[derive(Default)]
pub(crate) struct Holder {
    lock: Option<Locker>,
    held: Vec<(String, LockGuard)>,
}

impl Holder {
    pub(crate) fn of(lock: Locker) -> Self {
        Holder {
            lock: Some(lock),
            held: Vec::new(),
        }
    }

    fn open(&mut self) -> Result<()> {
        let ttl = env::var(TTL).map(|ttl| Duration::from_millis(ttl.parse().expect("a number")));
        let url = arg(URL);
        let mut builder = Locker::builder(&url).ttl(ttl.unwrap_or(HOUR));
        if url.starts_with("file:") {
            let observer = Arc::new(SaysThatItWaits);
            builder = builder.label("a puppet").observer(observer);
        }
        self.lock = Some(builder.build()?);
        Ok(())
    }

    pub(crate) fn lock(&self) -> &Locker {
        self.lock.as_ref().expect("it is open")
    }

    pub(crate) fn obey(&mut self, order: &str) -> String {
        let (verb, name) = order.split_once(' ').unwrap_or((order, ""));
        let lock = &self.lock.clone().expect("it is open");
        match verb {
            "lock" => self.keep(name, lock.lock(name).map(Some)),
            "read" => self.keep(name, lock.read(name).map(Some)),
            "all" => {
                let names: Vec<_> = name.split(' ').collect();
                self.keep(name, lock.lock_all(&names).map(Some))
            }
            "try" => self.keep(name, lock.try_lock(name)),
            "try-read" => self.keep(name, lock.try_read(name)),
            "try-for-2s" => self.keep(name, lock.try_lock_for(name, Duration::from_secs(2))),
            "adopt" => self.keep(name, adopt(lock, name).map(Some)),
            "break" => match lock.break_lock(name) {
                Ok(holders) => format!("broke {}", holders.len()),
                Err(e) => kind(&e),
            },
            "open" => outcome(self.open()),
            _ => self.obey_with_guard(verb, name),
        }
    }

    fn obey_with_guard(&mut self, verb: &str, name: &str) -> String {
        match verb {
            "verify" => outcome(self.guard(name).verify()),
            "state" => state(self.guard(name)),
            "remaining" => self.guard(name).remaining().as_millis().to_string(),
            "copy" => places::copy(self.guard(name)),
            "lost" => {
                let lost = self.guard(name).lost().recv_timeout(PATIENCE);
                format!("Lost {:?}", lost.expect("it is lost").reason)
            }
            "give" => self
                .take(name)
                .into_ticket()
                .map_or_else(|e| kind(&e), |ticket| ticket.to_secret()),
            "drop" => {
                drop(self.take(name));
                "ok".to_owned()
            }
            "drop-all" => {
                *self = Holder::default();
                "ok".to_owned()
            }
            "unlock" => outcome(self.take(name).unlock()),
            "hold-and-unlock" => hold(self.take(name)),
            _ => places::obey(self, verb, name),
        }
    }

    pub(crate) fn guard(&self, name: &str) -> &LockGuard {
        &self.held[self.find(name)].1
    }

    fn take(&mut self, name: &str) -> LockGuard {
        self.held.remove(self.find(name)).1
    }

    fn find(&self, name: &str) -> usize {
        let is_meant = |(own, _): &(String, _)| name.is_empty() || own == name;
        let found = self.held.iter().rposition(is_meant);
        found.unwrap_or_else(|| panic!("{name:?} isn't held"))
    }

    fn keep(&mut self, name: &str, got: Result<Option<LockGuard>>) -> String {
        match got {
            Ok(Some(guard)) => {
                let said = token(&guard);
                self.held.push((name.to_owned(), guard));
                said
            }
            Ok(None) => "taken".to_owned(),
            Err(e) => kind(&e),
        }
    }
}

fn token(guard: &LockGuard) -> String {
    format!("token {} {}", guard.fencing_token(), guard.was_abandoned())
}

fn adopt(lock: &Locker, secret: &str) -> Result<LockGuard> {
    lock.adopt(&secret.parse::<LeaseTicket>()?)
}

/// Asked locally first: nothing that does I/O may have told the guard before. Its renewer may need a moment for that.
fn state(guard: &LockGuard) -> String {
    let held = guard.is_held();
    let timeout = if held { Duration::ZERO } else { PATIENCE };
    let told = guard.lost().recv_timeout(timeout).is_ok();
    let verified = guard.verify().is_ok();
    format!("held={held} told={told} verified={verified}")
}

/// Holds the lock for three leases; or as long as it has it, where the machine was too late to renew it.
fn hold(guard: LockGuard) -> String {
    let lease = Duration::from_millis(arg(TTL).parse().expect("a number"));
    let watch = Stopwatch::start();
    let end = now() + 3 * lease;
    while now() < end {
        if let Err(error) = guard.check() {
            watch.assert_late(lease / 2, lease, error);
            return "ok".to_owned();
        }
        thread::sleep(lease / 20);
    }
    outcome(guard.verify().and_then(|()| guard.unlock()))
}

pub(crate) fn outcome(result: Result<()>) -> String {
    result.map_or_else(|e| kind(&e), |()| "ok".to_owned())
}

fn kind(error: &Error) -> String {
    let kind = match error {
        Error::Lost { reason, .. } => return format!("Lost {reason:?}"),
        Error::Unavailable { .. } => "Unavailable",
        Error::Denied { .. } => "Denied",
        Error::Conflict { .. } => "Conflict",
        Error::Engine { .. } => "Engine",
        other => panic!("{other:?}"),
    };
    kind.to_owned()
}
