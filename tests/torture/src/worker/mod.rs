//! A process that locks, looks at its guard, writes down what it sees, and releases, until it is told to end.

mod task;

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker, MutexGuard, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use self::task::{Guard, How, Task};
use super::history::{History, What, now};
use super::names::LONG;
use support::{Child, eventually, hear, is_child, say, sockets, threads_named};

const THREADS: u64 = 4;
/// How often a holder looks at its guard.
const BEAT: Duration = Duration::from_millis(10);
/// What refuses at once would be asked very often.
const PAUSE: Duration = Duration::from_millis(10);

const ENTRY: &str = "torture worker";
const TOLD: &str = "TORTURE_WORKER";

pub(crate) fn is_worker() -> bool {
    is_child(ENTRY)
}

/// What the driver tells a worker.
#[derive(Deserialize, Serialize)]
pub(crate) struct Told {
    pub(crate) dir: PathBuf,
    pub(crate) number: u32,
    pub(crate) url: String,
    pub(crate) ttl: Duration,
    pub(crate) io_timeout: Duration,
    pub(crate) seed: u64,
}

impl Told {
    /// Starts a worker of a run.
    pub(crate) fn start(&self) -> Child {
        let told = serde_json::to_string(self).expect("numbers and texts");
        Child::spawn_self(ENTRY, &[(TOLD, &told)])
    }

    fn read() -> Self {
        let told = env::var(TOLD).expect("the driver sets it");
        serde_json::from_str(&told).expect("the driver writes it")
    }

    /// Opens, also while the server is away.
    fn open(&self) -> Locker {
        let builder = Locker::builder(&self.url)
            .ttl(self.ttl)
            .io_timeout(self.io_timeout)
            .connect_timeout(self.io_timeout)
            .outage_timeout(Duration::from_secs(1));
        loop {
            match builder.clone().build() {
                Ok(locker) => return locker,
                Err(Error::Unavailable { .. }) => thread::sleep(PAUSE),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The worker's `main`.
pub(crate) fn run() {
    let told = Told::read();
    let file = format!("worker-{}", told.number);
    let history = History::open(&told.dir, &file, told.number).expect("write history");
    let before = sockets();
    let locker = told.open();
    let (ends, calls) = (AtomicBool::new(false), AtomicU32::new(1));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let worker = Worker {
                locker: &locker,
                history: &history,
                ends: &ends,
                calls: &calls,
                ttl: told.ttl,
                rng: Rng::with_seed(told.seed ^ thread),
            };
            scope.spawn(move || worker.work());
        }
        say("ready");
        // Also when the driver is gone.
        while hear().is_some_and(|order| order != "end") {}
        ends.store(true, Relaxed);
    });
    drop(locker);
    tell_what_is_left(&history, before);
    say("done");
    hear();
}

/// How soon they end is another test's: here it matters whether they do.
fn tell_what_is_left(history: &History, sockets_before: usize) {
    let mut left = (0, 0);
    let gone = eventually(Duration::from_secs(20), || {
        left = (threads_named("crosslock-"), sockets());
        left == (0, sockets_before)
    });
    if !gone {
        let (threads, sockets) = left;
        let text = format!("{threads} threads, and {sockets} sockets instead of {sockets_before}");
        history.tell(0, "", What::Left(text));
    }
}

/// One thread.
struct Worker<'a> {
    locker: &'a Locker,
    history: &'a History,
    /// Whether the run is over.
    ends: &'a AtomicBool,
    /// The number of the next call.
    calls: &'a AtomicU32,
    ttl: Duration,
    rng: Rng,
}

impl Worker<'_> {
    /// In the end it has each lock once more, so that a lock which nobody can have any more keeps it from ending.
    fn work(mut self) {
        while !self.ends.load(Relaxed) {
            let (task, how) = (Task::any(&mut self.rng), How::any(&mut self.rng, self.ttl));
            self.call(task, how);
            thread::sleep(Duration::from_micros(self.rng.u64(0..3000)));
        }
        for task in Task::ALL {
            while !self.call(task, How::Lock) {}
        }
    }

    /// Says whether it had the lock.
    fn call(&mut self, task: Task, how: How) -> bool {
        let call = self.calls.fetch_add(1, Relaxed);
        let tell = |what| self.history.tell(call, task.name(), what);
        let outcome = task.call(self.locker, how);
        let at = now();
        match outcome {
            Ok(Some(guard)) => {
                let held = What::Held {
                    mode: task.mode(),
                    token: guard.lease().fencing_token(),
                    until: valid_until(at, &guard),
                };
                self.history.tell_at(at, call, task.name(), held);
                self.hold(call, task, &guard);
                self.release(call, task, guard);
                return true;
            }
            Ok(None) => {}
            Err(error) => {
                tell(What::Failed(kind(&error)));
                thread::sleep(PAUSE);
            }
        }
        false
    }

    fn hold(&mut self, call: u32, task: Task, guard: &Guard) {
        let tell = |what| self.history.tell(call, task.name(), what);
        if let Guard::Value(value) = guard {
            tell(What::Found(**value));
        }
        let end = Instant::now() + self.pause(task);
        loop {
            let at = now();
            let until = valid_until(at, guard);
            if until > 0 {
                self.history
                    .tell_at(at, call, task.name(), What::Valid { until });
            }
            let left = end.saturating_duration_since(Instant::now());
            // Others wait for it when the run is over.
            if left.is_zero() || self.ends.load(Relaxed) {
                return;
            }
            thread::sleep(left.min(BEAT));
        }
    }

    fn pause(&mut self, task: Task) -> Duration {
        let part = self.rng.f64();
        if task == Task::Lock(LONG) {
            return self.ttl.mul_f64(0.3 + 1.2 * part);
        }
        match self.rng.u8(0..10) {
            // It is renewed.
            0 => self.ttl.mul_f64(0.3 + 0.9 * part),
            1..4 => self.ttl.mul_f64(0.2 * part),
            _ => Duration::from_micros(500).mul_f64(part),
        }
    }

    fn release(&mut self, call: u32, task: Task, mut guard: Guard) {
        let tell = |what| self.history.tell(call, task.name(), what);
        let (is_dropped, mut increased) = (self.rng.bool(), false);
        if let Guard::Value(value) = &mut guard
            && self.rng.bool()
        {
            **value += 1;
            increased = true;
        }
        tell(What::Releasing { increased });
        let released = match guard {
            guard if is_dropped => {
                drop(guard);
                "dropped".to_owned()
            }
            Guard::Lock(guard) => said(guard.unlock()),
            Guard::Value(guard) => said(MutexGuard::unlock(guard)),
        };
        tell(What::Released(released));
    }
}

fn said(outcome: Result<()>) -> String {
    outcome.map_or_else(|error| kind(&error), |()| "ok".to_owned())
}

/// What a history says of an error.
fn kind(error: &Error) -> String {
    let kind = match error {
        Error::Lost { .. } => "lost",
        Error::Unavailable { .. } => "unavailable",
        _ => return error.to_string(),
    };
    kind.to_owned()
}

/// When the lease ends; zero when it isn't valid. `at` was read before.
fn valid_until(at: u64, guard: &Guard) -> u64 {
    match u64::try_from(guard.lease().remaining().as_nanos()) {
        Ok(0) => 0,
        Ok(remaining) => at.saturating_add(remaining),
        Err(_) => u64::MAX,
    }
}
