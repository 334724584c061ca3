//! A process that locks, reads, pauses, writes and releases until it is told to end.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::mem;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, Locker, LockerBuilder, LostReason, Result};
use fastrand::Rng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::cancelling::Canceller;
use self::task::{Guard, How, Task};
use super::delays::watch_threads;
use super::history::{Event, History, now};
use super::watcher::watch_process;
use support::{Child, eventually, hear, is_child, say, sockets, threads_named};

mod cancelling;
mod holding;
mod passing;
mod task;

pub(crate) const IO_TIMEOUT: Duration = Duration::from_millis(150);
pub(crate) const THREADS: u32 = 4;

/// There is one attempt, in which a connection, a login and a question have to fit: more than a loaded machine takes, and
/// less than what is allowed to it. An answer that doesn't come fails it all the same.
const OPENS_WITHIN: Duration = Duration::from_millis(400);
/// One call in so many opens a locker of its own.
const OWN_LOCKER_EVERY: u8 = 15;
/// One call in so many is cancelled, if it isn't over before.
const CANCELLED_EVERY: u8 = 8;

const ENTRY: &str = "torture worker";
const DIR: &str = "TORTURE_WORKER_DIR";
const INDEX: &str = "TORTURE_WORKER_INDEX";
const URL: &str = "TORTURE_WORKER_URL";
const TTL: &str = "TORTURE_WORKER_TTL_MS";
/// Process ids come again in a long run, this number does not.
const LIFE: &str = "TORTURE_WORKER_LIFE";
const SEED: &str = "TORTURE_WORKER_SEED";

/// Where the register of a run listens.
pub(crate) fn socket(dir: &Path) -> PathBuf {
    dir.join("register.sock")
}

/// Starts a worker of a run.
pub(crate) fn start(
    dir: &Path,
    (index, life, uid): (u32, u64, Option<u32>),
    url: &str,
    ttl: Duration,
    seed: u64,
) -> Child {
    let args = [
        (DIR, dir.display().to_string()),
        (INDEX, index.to_string()),
        (URL, url.to_owned()),
        (TTL, ttl.as_millis().to_string()),
        (SEED, seed.to_string()),
        (LIFE, life.to_string()),
    ];
    Child::spawn_as(
        uid,
        ENTRY,
        &args.each_ref().map(|(name, value)| (*name, value.as_str())),
    )
}

pub(crate) fn is_worker() -> bool {
    is_child(ENTRY)
}

/// What the driver has told a worker.
struct Told {
    dir: PathBuf,
    index: u32,
    life: u64,
    url: String,
    ttl: Duration,
    seed: u64,
}

impl Told {
    fn read() -> Self {
        let arg = |name| env::var(name).expect("the driver sets it");
        let number = |name| arg(name).parse::<u64>().expect("a number");
        Told {
            dir: PathBuf::from(arg(DIR)),
            index: arg(INDEX).parse().expect("a number"),
            life: number(LIFE),
            url: arg(URL),
            ttl: Duration::from_millis(number(TTL)),
            seed: number(SEED),
        }
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
            let (ends, refused) = (&ends, &refused);
            scope.spawn(move || Worker::new(told, thread, locker, history, refused).work(ends));
        }
        say("ready");
        // Also when the driver is gone.
        while let Some(order) = hear().filter(|order| order != "end") {
            match order.as_str() {
                "close" => locker.close(&told, &history),
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

/// The locker of the process's threads, with its number. It is closed now and then, and they go on with the next.
struct Shared(Mutex<(Locker, u64)>);

impl Shared {
    fn open(told: &Told) -> Self {
        Shared(Mutex::new((open(&told.url, told.ttl), 1)))
    }

    fn get(&self) -> (Locker, u64) {
        self.0.lock().expect("no panics").clone()
    }

    fn close(&self, told: &Told, history: &History) {
        let next = open(&told.url, told.ttl);
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

fn builder(url: &str, ttl: Duration) -> LockerBuilder {
    Locker::builder(url)
        .ttl(ttl)
        .io_timeout(IO_TIMEOUT)
        .connect_timeout(IO_TIMEOUT)
        .unavailable_for(Duration::from_secs(1))
}

/// Opens, also while the server is away.
fn open(url: &str, ttl: Duration) -> Locker {
    loop {
        match builder(url, ttl).build() {
            Ok(locker) => return locker,
            Err(Error::Unavailable { .. } | Error::Denied { .. } | Error::Engine { .. }) => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Leaves this process no new descriptors, or threads, for a time: `threads exhausted: milliseconds`. Without threads
/// it is for so long that somebody is refused.
fn exhaust(order: &str, refused: &AtomicU64) {
    let (what, millis) = order.split_once(": ").expect("an order");
    let time = Duration::from_millis(millis.parse().expect("a number"));
    let (resource, few) = match what {
        "threads exhausted" => (Resource::Nproc, 0),
        _ => (Resource::Nofile, 4),
    };
    let before = getrlimit(resource);
    let limited = Rlimit {
        current: Some(few),
        ..before
    };
    refused.store(0, Relaxed);
    setrlimit(resource, limited).expect("less is always allowed");
    say("exhausted");
    thread::sleep(time);
    if resource == Resource::Nproc {
        eventually(Duration::from_secs(2), || refused.load(Relaxed) > 0);
    }
    setrlimit(resource, before).expect("it was allowed before");
    say(&format!("refused {}", refused.load(Relaxed)));
}

/// How soon they end is another test's: here it matters whether they do.
fn tell_what_is_left(history: &History, sockets_before: usize) {
    let mut left = (0, 0);
    let gone = eventually(Duration::from_secs(10), || {
        left = (threads_named("crosslock-"), sockets());
        left == (0, sockets_before)
    });
    if !gone {
        let (threads, sockets) = left;
        let detail =
            format!("{threads} threads, and {sockets} sockets instead of {sockets_before}");
        history.tell(&Event {
            detail,
            ..Event::now("left")
        });
    }
}

/// A thread's connection to what the locks protect.
struct Register(BufReader<UnixStream>);

impl Register {
    fn connect(dir: &Path, index: u32, pid: u32, thread: u32) -> io::Result<Self> {
        let stream = UnixStream::connect(socket(dir))?;
        writeln!(&stream, "{index} {pid} {thread}")?;
        Ok(Register(BufReader::new(stream)))
    }

    /// Gives the value, unless the token is stale.
    fn call(&mut self, request: &str) -> io::Result<Option<u64>> {
        let mut answer = String::new();
        writeln!(self.0.get_ref(), "{request}")?;
        self.0.read_line(&mut answer)?;
        Ok(answer.trim().parse().ok())
    }

    /// Leaves a ticket there, as many times as it may be taken.
    fn post(&mut self, passed: &Event) -> io::Result<()> {
        self.call(&format!("post {}", passed.to_json())).map(drop)
    }

    /// Gives a ticket that was left by any process, or by another than this.
    fn take(&mut self, whose: &str) -> io::Result<Option<Event>> {
        let mut answer = String::new();
        writeln!(self.0.get_ref(), "take {whose}")?;
        self.0.read_line(&mut answer)?;
        Ok(Event::from_json(answer.trim()))
    }
}

/// One thread.
struct Worker<'a> {
    locker: &'a Shared,
    canceller: Canceller,
    url: &'a str,
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
}

impl<'a> Worker<'a> {
    fn new(
        told: &'a Told,
        thread: u32,
        locker: &'a Shared,
        history: &'a History,
        refused: &'a AtomicU64,
    ) -> Self {
        let pid = std::process::id();
        let register = Register::connect(&told.dir, told.index, pid, thread);
        Worker {
            locker,
            canceller: Canceller::start(told.open_history()),
            url: &told.url,
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
        }
    }

    fn work(mut self, ends: &AtomicBool) {
        while !ends.load(Relaxed) {
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
        let builder = builder(self.url, self.ttl).connect_timeout(OPENS_WITHIN);
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
        let locker = locker.cancelled_by(&token);
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

/// Why a lease was lost.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Lost { reason, .. } => match reason {
            LostReason::Expired => "expired",
            LostReason::NotOwner => "not the owner",
            LostReason::Broken => "broken",
            LostReason::Closed => "closed",
            _ => "another reason",
        },
        _ => "",
    }
}

fn kind(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "busy",
        Error::Cancelled { .. } => "cancelled",
        Error::Lost { .. } => "lost",
        Error::Unavailable { .. } => "unavailable",
        Error::Denied { .. } => "denied",
        Error::Conflict { .. } => "conflict",
        Error::Engine { .. } => "engine",
        _ => "another error",
    }
}
