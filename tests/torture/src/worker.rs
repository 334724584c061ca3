//! A process that locks, reads, pauses, writes and releases until it is told to end.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, Locker, Result};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use self::cancelling::Canceller;
use self::errors::kind;
use self::limits::{exhaust, fork_off, tell_what_is_left};
use self::lockers::{Shared, builder};
use self::register::Register;
use self::task::{Guard, How, Task};
use super::delays::watch_threads;
use super::history::{Event, History, Mode, now};
use super::names::MEETING;
use super::watcher::watch_process;
use support::{Child, hear, is_child, say, sockets};

mod cancelling;
mod errors;
mod handing_over;
mod holding;
mod limits;
mod lockers;
mod passing;
mod register;
mod task;

pub(crate) const THREADS: u32 = 4;

/// There is one attempt, in which a connection, a login and a question have to fit: more than a loaded machine takes,
/// and less than what is allowed to it. An answer that doesn't come fails it all the same.
const OPENS_WITHIN: Duration = Duration::from_millis(400);
/// One call in so many opens a locker of its own.
const OWN_LOCKER_EVERY: u8 = 15;
/// One call in so many is for a barrier.
const MEETS_EVERY: u8 = 20;
/// One call in so many is cancelled, if it isn't over before.
const CANCELLED_EVERY: u8 = 8;

const ENTRY: &str = "torture worker";
const TOLD: &str = "TORTURE_WORKER";

/// Where the register of a run listens.
pub(crate) fn socket(dir: &Path) -> PathBuf {
    dir.join("register.sock")
}

pub(crate) fn is_worker() -> bool {
    is_child(ENTRY)
}

/// What the driver tells a worker.
#[derive(Deserialize, Serialize)]
pub(crate) struct Told {
    pub(crate) dir: PathBuf,
    pub(crate) index: u32,
    /// Process ids come again in a long run, this number does not.
    pub(crate) life: u64,
    pub(crate) url: String,
    pub(crate) ttl: Duration,
    pub(crate) io_timeout: Duration,
    pub(crate) seed: u64,
}

impl Told {
    /// Starts a worker of a run, as this user.
    pub(crate) fn start(&self, uid: Option<u32>) -> Child {
        let told = serde_json::to_string(self).expect("numbers and texts");
        Child::spawn_self_as(uid, ENTRY, &[(TOLD, &told)])
    }

    fn read() -> Self {
        let told = env::var(TOLD).expect("the driver sets it");
        serde_json::from_str(&told).expect("the driver writes it")
    }

    fn open_history(&self) -> History {
        let file = format!("worker-{}-{}.jsonl", self.index, std::process::id());
        History::open(&self.dir, &file, self.index).expect("open it")
    }
}

/// The worker's `main`.
pub(crate) fn run() {
    let told = Told::read();
    let history = told.open_history();
    // Before it may be left without threads.
    let _probe = watch_process(told.open_history());
    let late = told.open_history();
    // Until the process ends.
    thread::spawn(move || watch_threads(&late, &AtomicBool::new(false)));
    let before = sockets();
    let locker = Shared::open(&told);
    let (ends, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (told, locker, history) = (&told, &locker, &history);
            let signs = (&ends, &refused);
            scope.spawn(move || Worker::new(told, thread, locker, history, signs).work());
        }
        say("ready");
        // Also when the driver is gone.
        while let Some(order) = hear().filter(|order| order != "end") {
            match order.as_str() {
                "close" => locker.close(&told, &history),
                "fork" => fork_off(),
                order => exhaust(order, &refused),
            }
        }
        ends.store(true, Relaxed);
    });
    drop(locker);
    tell_what_is_left(&history, before);
    say("done");
    hear();
}

/// One thread.
struct Worker<'a> {
    locker: &'a Shared,
    canceller: Canceller,
    told: &'a Told,
    /// Whether the run is over.
    ends: &'a AtomicBool,
    /// Counts the calls that were refused with an error of the engine.
    refused: &'a AtomicU64,
    history: &'a History,
    register: Register,
    rng: Rng,
    ttl: Duration,
    life: u64,
    /// What all its events have in common.
    of: Event,
    count: u64,
    task: Task,
    /// That of the locker of the last call; zero is one for that call.
    number: u64,
}

impl<'a> Worker<'a> {
    fn new(
        told: &'a Told,
        thread: u32,
        locker: &'a Shared,
        history: &'a History,
        (ends, refused): (&'a AtomicBool, &'a AtomicU64),
    ) -> Self {
        let pid = std::process::id();
        let register = Register::connect(&told.dir, told.index, pid, thread);
        Worker {
            locker,
            canceller: Canceller::start(told.open_history()),
            told,
            ends,
            refused,
            history,
            register: register.expect("the register"),
            rng: Rng::with_seed(told.seed ^ u64::from(thread)),
            ttl: told.ttl,
            life: told.life,
            of: Event {
                process: told.index,
                pid,
                thread,
                ..Event::default()
            },
            count: 0,
            task: Task::Read,
            number: 0,
        }
    }

    fn work(mut self) {
        while !self.ends.load(Relaxed) {
            // Otherwise the driver is gone, or is about to end this process.
            if self.work_once().is_err() {
                return;
            }
        }
    }

    fn work_once(&mut self) -> io::Result<()> {
        let (locker, number) = self.locker.get();
        if let Some(guard) = self.adopt(&locker, number)? {
            return self.hold(guard);
        }
        if self.rng.u8(0..MEETS_EVERY) == 0 {
            self.meet(&locker);
            return Ok(());
        }
        self.task = Task::any(&mut self.rng, self.of.thread);
        (self.of.name, self.of.mode) = (self.task.name(), self.task.mode());
        let (locker, number) = if self.rng.u8(0..OWN_LOCKER_EVERY) == 0 {
            let Some(own) = self.open() else {
                return Ok(());
            };
            (own, 0)
        } else {
            (locker, number)
        };
        self.begin();
        if let Some(guard) = self.ask(&locker, number) {
            return self.hold(guard);
        }
        thread::sleep(Duration::from_micros(self.rng.u64(0..3000)));
        Ok(())
    }

    /// Comes to a barrier for two.
    fn meet(&mut self, locker: &Locker) {
        (self.of.name, self.of.mode) = (MEETING.to_owned(), Mode::Exclusive);
        self.begin();
        self.history.tell(&self.event("meet"));
        let longest = self.ttl.mul_f64(self.rng.f64());
        let barrier = locker
            .with_namespace(MEETING)
            .and_then(|apart| apart.barrier(MEETING, 2));
        let met = barrier.and_then(|barrier| barrier.wait_for(longest));
        let outcome = match &met {
            Ok(Some(result)) if result.is_leader() => "leader",
            Ok(Some(_)) => "follower",
            Ok(None) => "none",
            Err(error) => kind(error),
        };
        self.history.tell(&Event {
            outcome: outcome.to_owned(),
            ..self.event("met")
        });
    }

    fn begin(&mut self) {
        self.count += 1;
        self.of.id =
            (self.life << 32) | (u64::from(self.of.thread) << 24) | (self.count & 0xFF_FFFF);
    }

    /// Opens a locker for one call, as a program does that is started for it: so connections and threads are needed
    /// now and then.
    fn open(&mut self) -> Option<Locker> {
        self.begin();
        self.history.tell(&Event {
            detail: "open".to_owned(),
            ..self.event("ask")
        });
        let builder = builder(self.told).connect_timeout(OPENS_WITHIN);
        let opened = builder.build();
        let mut event = self.event("answer");
        match &opened {
            Ok(_) => event.outcome = "opened".to_owned(),
            Err(error) => self.refuse(&mut event, error),
        }
        self.history.tell(&event);
        opened.ok()
    }

    fn refuse(&self, event: &mut Event, error: &Error) {
        event.outcome = kind(error).to_owned();
        event.detail = error.to_string();
        if event.outcome == "engine" {
            self.refused.fetch_add(1, Relaxed);
        }
    }

    fn event(&self, op: &str) -> Event {
        Event {
            at: now(),
            op: op.to_owned(),
            ..self.of.clone()
        }
    }

    /// By a locker with this number; zero is one for this call.
    fn ask(&mut self, locker: &Locker, number: u64) -> Option<Guard> {
        let how = self.task.how(&mut self.rng, self.ttl);
        self.number = number;
        self.history.tell(&Event {
            detail: how.name().to_owned(),
            token: number,
            until: how.timeout().as_nanos().try_into().expect("it is short"),
            ..self.event("ask")
        });
        let outcome = if self.rng.u8(0..CANCELLED_EVERY) == 0 {
            self.call_cancelled(locker, how)
        } else {
            self.task.call(locker, how)
        };
        let event = self.event("answer");
        self.tell_answer(outcome, event)
    }

    fn call_cancelled(&mut self, locker: &Locker, how: How) -> Result<Option<Guard>> {
        let token = CancelToken::default();
        let after = self.ttl.mul_f64(self.rng.f64().powi(2));
        let locker = locker.with_cancel(&token);
        self.canceller.cancel(token, after, self.event("cancel"));
        let outcome = self.task.call(&locker, how);
        if self.rng.bool() {
            // Otherwise it is cancelled while it holds what it has got.
            self.canceller.leave();
        }
        outcome
    }

    /// `event` was made when the call was over.
    fn tell_answer(&self, outcome: Result<Option<Guard>>, mut event: Event) -> Option<Guard> {
        match outcome {
            Ok(Some(guard)) => {
                self.tell_held(&guard, event);
                return Some(guard);
            }
            Ok(None) => {
                event.outcome = "none".to_owned();
                self.history.tell(&event);
            }
            Err(error) => {
                self.refuse(&mut event, &error);
                self.history.tell(&event);
                // What refuses at once would be asked very often.
                thread::sleep(Duration::from_millis(10));
            }
        }
        None
    }
}
