//! A process that locks, looks at its guard, writes down what it sees, and releases, until it is told to end.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, MutexGuard, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::history::{History, What, now};
use support::{Child, hear, say};

/// Held exclusively.
const LOCK: &str = "lock";
/// Read by many, written by one.
const SHARED: &str = "shared";
/// Protects a number, which is increased.
pub(crate) const COUNTER: &str = "counter";

pub(crate) const NAMES: [&str; 3] = [LOCK, SHARED, COUNTER];

const THREADS: u32 = 4;
const BEAT: Duration = Duration::from_millis(10);
/// What refuses at once would be asked very often.
const PAUSE: Duration = Duration::from_millis(10);
const TOLD: &str = "TORTURE_WORKER";

#[derive(Deserialize, Serialize)]
pub(crate) struct Told {
    pub(crate) dir: PathBuf,
    pub(crate) number: u32,
    pub(crate) url: String,
    pub(crate) ttl: Duration,
    pub(crate) io_timeout: Duration,
    /// There are only locks that one holds at a time: each task takes one.
    pub(crate) only_locks: bool,
}

impl Told {
    pub(crate) fn start(&self, program: &Path) -> Child {
        let told = serde_json::to_string(self).expect("numbers and texts");
        Child::spawn_by(Command::new(program), "torture worker", &[(TOLD, &told)])
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

pub fn run() {
    let told = env::var(TOLD).expect("the driver sets it");
    let told: Told = serde_json::from_str(&told).expect("the driver writes it");
    let history = History::open(&told.dir, told.number).expect("write history");
    let locker = told.open();
    let (ends, calls) = (AtomicBool::new(false), AtomicU32::new(1));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let worker = Worker {
                locker: &locker,
                history: &history,
                ends: &ends,
                calls: &calls,
                ttl: told.ttl,
                only_locks: told.only_locks,
                rng: Rng::new(),
            };
            scope.spawn(move || worker.work());
        }
        say("ready");
        // Also when the driver is gone.
        while hear().is_some_and(|order| order != "end") {}
        ends.store(true, Relaxed);
    });
    drop(locker);
    say("done");
    hear();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Lock,
    Read,
    Write,
    Count,
}

enum Guard {
    Lock(LockGuard),
    Value(MutexGuard<u64>),
}

impl Task {
    const ALL: [Task; 4] = [Task::Lock, Task::Read, Task::Write, Task::Count];

    fn name(self) -> &'static str {
        match self {
            Task::Lock => LOCK,
            Task::Read | Task::Write => SHARED,
            Task::Count => COUNTER,
        }
    }

    /// The same as a lock of its name.
    fn call_plainly(self, locker: &Locker, timeout: Option<Duration>) -> Result<Option<Guard>> {
        let guard = match timeout {
            None => locker.lock(self.name()).map(Some),
            Some(time) => locker.try_lock_for(self.name(), time),
        };
        Ok(guard?.map(Guard::Lock))
    }

    fn call(self, locker: &Locker, timeout: Option<Duration>) -> Result<Option<Guard>> {
        let guard = match (self, timeout) {
            (Task::Lock, None) => locker.lock(LOCK).map(Some),
            (Task::Lock, Some(time)) => locker.try_lock_for(LOCK, time),
            (Task::Read, None) => locker.read(SHARED).map(Some),
            (Task::Read, Some(time)) => locker.try_read_for(SHARED, time),
            (Task::Write, None) => locker.write(SHARED).map(Some),
            (Task::Write, Some(time)) => locker.try_write_for(SHARED, time),
            (Task::Count, None) => {
                let guard = locker.mutex(COUNTER, 0u64)?.lock()?;
                return Ok(Some(Guard::Value(guard)));
            }
            (Task::Count, Some(time)) => {
                let guard = locker.mutex(COUNTER, 0u64)?.try_lock_for(time)?;
                return Ok(guard.map(Guard::Value));
            }
        };
        Ok(guard?.map(Guard::Lock))
    }
}

impl Guard {
    fn lease(&self) -> &LockGuard {
        match self {
            Guard::Lock(guard) => guard,
            Guard::Value(guard) => MutexGuard::lease(guard),
        }
    }

    /// When the lease ends; zero when it isn't valid. `at` was read before.
    fn valid_until(&self, at: u64) -> u64 {
        match u64::try_from(self.lease().remaining().as_nanos()) {
            Ok(0) => 0,
            Ok(remaining) => at.saturating_add(remaining),
            Err(_) => u64::MAX,
        }
    }
}

struct Worker<'a> {
    locker: &'a Locker,
    history: &'a History,
    ends: &'a AtomicBool,
    /// The number of the next call.
    calls: &'a AtomicU32,
    ttl: Duration,
    only_locks: bool,
    rng: Rng,
}

impl Worker<'_> {
    /// In the end it has each lock once more, so that a lock which nobody can have any more keeps it from ending.
    fn work(mut self) {
        while !self.ends.load(Relaxed) {
            let task = Task::ALL[self.rng.usize(..Task::ALL.len())];
            let timeout = match self.rng.u8(0..4) {
                0 => Some(Duration::ZERO),
                1 => Some(self.ttl.mul_f64(self.rng.f64())),
                _ => None,
            };
            self.call(task, timeout);
            thread::sleep(Duration::from_micros(self.rng.u64(0..3000)));
        }
        for task in Task::ALL {
            while !self.call(task, None) {}
        }
    }

    fn call(&mut self, task: Task, timeout: Option<Duration>) -> bool {
        let call = self.calls.fetch_add(1, Relaxed);
        let outcome = match self.only_locks {
            true => task.call_plainly(self.locker, timeout),
            false => task.call(self.locker, timeout),
        };
        let at = now();
        match outcome {
            Ok(Some(guard)) => {
                let held = What::Held {
                    is_shared: task == Task::Read && !self.only_locks,
                    token: guard.lease().fencing_token(),
                    until: guard.valid_until(at),
                };
                self.history.tell_at(at, call, task.name(), held);
                self.hold(call, task, &guard);
                self.release(call, task, guard);
                return true;
            }
            Ok(None) => {}
            Err(Error::Unavailable { .. }) => thread::sleep(PAUSE),
            Err(error) => panic!("{task:?} fails: {error}"),
        }
        false
    }

    fn hold(&mut self, call: u32, task: Task, guard: &Guard) {
        let history = self.history;
        if let Guard::Value(value) = guard {
            history.tell(call, task.name(), What::Found(**value));
        }
        let end = Instant::now() + self.pause();
        loop {
            let at = now();
            let until = guard.valid_until(at);
            if until > 0 {
                history.tell_at(at, call, task.name(), What::Valid { until });
            }
            let left = end.saturating_duration_since(Instant::now());
            // Others wait for it when the run is over.
            if left.is_zero() || self.ends.load(Relaxed) {
                return;
            }
            thread::sleep(left.min(BEAT));
        }
    }

    fn pause(&mut self) -> Duration {
        let part = self.rng.f64();
        match self.rng.u8(0..10) {
            // It is renewed, or another has it for long when one that was stopped comes back.
            0..3 => self.ttl.mul_f64(0.3 + 0.9 * part),
            3..6 => self.ttl.mul_f64(0.2 * part),
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
    let said = match outcome {
        Ok(()) => "ok",
        Err(Error::Lost { .. }) => "lost",
        Err(Error::Unavailable { .. }) => "unavailable",
        Err(error) => panic!("a release fails: {error}"),
    };
    said.to_owned()
}
