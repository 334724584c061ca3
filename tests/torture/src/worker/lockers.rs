//! The lockers of a process: how they are opened, and closed.

use std::mem;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker, LockerBuilder};

use super::handing_over;
use super::{THREADS, Told};
use crate::history::{Event, History, now};
use support::say;

/// The locker of the process's threads, with its number. It is closed now and then, and they go on with the next.
pub(super) struct Shared(Mutex<(Locker, u64)>);

impl Shared {
    pub(super) fn open(told: &Told) -> Self {
        Shared(Mutex::new((open(told), 1)))
    }

    pub(super) fn get(&self) -> (Locker, u64) {
        self.0.lock().expect("no panics").clone()
    }

    pub(super) fn close(&self, told: &Told, history: &History) {
        let next = open(told);
        let (closed, number) = {
            let mut shared = self.0.lock().expect("no panics");
            let number = shared.1 + 1;
            mem::replace(&mut *shared, (next, number))
        };
        let of = Event {
            process: told.index,
            pid: std::process::id(),
            id: (told.life << 32) | (u64::from(THREADS) << 24) | number,
            token: number,
            ..Event::default()
        };
        let event = |op: &str| Event {
            at: now(),
            op: op.to_owned(),
            ..of.clone()
        };
        history.tell(&Event {
            detail: "close".to_owned(),
            ..event("ask")
        });
        closed.close();
        history.tell(&Event {
            outcome: "closed".to_owned(),
            ..event("answer")
        });
        say("closed");
    }
}

pub(super) fn builder(told: &Told) -> LockerBuilder {
    Locker::builder(&told.url)
        .ttl(told.ttl)
        .io_timeout(told.io_timeout)
        .connect_timeout(told.io_timeout)
        .outage_timeout(Duration::from_secs(1))
        .observer(handing_over::observer())
}

/// Opens, also while the server is away.
fn open(told: &Told) -> Locker {
    loop {
        match builder(told).build() {
            Ok(locker) => return locker,
            Err(Error::Unavailable { .. } | Error::Denied { .. } | Error::Engine { .. }) => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{error}"),
        }
    }
}
