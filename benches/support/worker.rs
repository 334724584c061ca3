//! A process that takes a lock, holds it and lets go in a loop: the bench itself, started again.
//!
//! It says when it is ready, is told when to begin and when to end, and keeps what it saw in memory until then. Its
//! arguments and what it writes are the same in all builds, so that one of another commit can be measured beside this
//! one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crosslock::Prefer;
use rustix::time::{ClockId, clock_gettime};

use super::lock::{self, Lock, Opened};

/// The first argument of a worker.
const ROLE: &str = "worker";

/// How often somebody comes who waits for a limited time, and for how long.
pub(crate) const TIMED: (usize, Duration) = (12, Duration::from_millis(1500));

/// What a worker does in a loop.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// How it takes the lock: `Lock`, `Read`, `Write`; `Timed`, for [`TIMED`] at most, and so often only; `Flock`; or
    /// what the bench knows besides.
    pub(crate) kind: String,
    pub(crate) prefer: Prefer,
    pub(crate) hold: Duration,
    pub(crate) inside: Inside,
    /// How often it comes; zero: again at once.
    pub(crate) every: Duration,
}

/// What it does as long as it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inside {
    Sleep,
    /// Keeps its processor.
    Spin,
    /// Adds one to the number in a file of the locks' directory, and sleeps.
    Count,
}

impl Task {
    /// Locks again and again.
    pub(crate) fn holding(hold: Duration) -> Self {
        Task {
            kind: "Lock".to_owned(),
            prefer: Prefer::Fair,
            hold,
            inside: Inside::Sleep,
            every: Duration::ZERO,
        }
    }

    /// Works for so long while it holds.
    pub(crate) fn working(hold: Duration) -> Self {
        Task {
            inside: Inside::Spin,
            ..Task::holding(hold)
        }
    }

    pub(crate) fn by(self, kind: &str) -> Self {
        let kind = kind.to_owned();
        Task { kind, ..self }
    }

    fn to_args(&self) -> [String; 5] {
        let [hold, every] = [self.hold, self.every].map(|time| time.as_micros().to_string());
        let [prefer, inside] = [format!("{:?}", self.prefer), format!("{:?}", self.inside)];
        [self.kind.clone(), prefer, hold, every, inside]
    }

    fn from_args(args: &[String]) -> Self {
        let [kind, prefer, hold, every, inside] = args else {
            panic!("a worker's five arguments, not {args:?}");
        };
        let time = |text: &String| Duration::from_micros(text.parse().expect("microseconds"));
        Task {
            kind: kind.clone(),
            prefer: named([Prefer::Fair, Prefer::Readers, Prefer::Writers], prefer),
            hold: time(hold),
            inside: named([Inside::Sleep, Inside::Spin, Inside::Count], inside),
            every: time(every),
        }
    }
}

/// The one that is written so.
fn named<T: std::fmt::Debug>(all: [T; 3], name: &str) -> T {
    let mut all = all.into_iter();
    let found = all.find(|one| format!("{one:?}") == name);
    found.unwrap_or_else(|| panic!("what is {name}?"))
}

/// One acquisition. Times are of the clock that all processes of a host share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    pub(crate) token: u64,
    pub(crate) asked: Duration,
    /// From before the first to after the last moment at which it was held.
    pub(crate) held: [Duration; 2],
}

impl Cycle {
    pub(crate) fn waited(&self) -> Duration {
        self.held[0] - self.asked
    }

    fn write(&self) -> [[u8; 8]; 4] {
        let [asked, from, until] = [self.asked, self.held[0], self.held[1]].map(bytes);
        [self.token.to_le_bytes(), asked, from, until]
    }

    fn read([token, asked, from, until]: &[[u8; 8]; 4]) -> Self {
        let [asked, from, until] = [asked, from, until].map(|time| time_of(*time));
        Cycle {
            token: u64::from_le_bytes(*token),
            asked,
            held: [from, until],
        }
    }
}

pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// Starts a process that locks `names`. Each of several lines is for a thread of its own, and has names with tabs
    /// between, which it locks in turn.
    pub(crate) fn spawn(url: &str, names: &str, task: &Task) -> Self {
        let bench = std::env::current_exe().expect("the path of this bench");
        Worker::spawn_of(&bench, url, names, task)
    }

    /// A process of another build of the same bench.
    pub(crate) fn spawn_of(program: &Path, url: &str, names: &str, task: &Task) -> Self {
        let child = Command::new(program)
            .args([ROLE, url, names])
            .args(task.to_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        Worker { child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is connected, and has loaded the scripts.
    pub(crate) fn await_ready(&mut self) {
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut [0]).expect("a worker that is ready");
    }

    pub(crate) fn run(&mut self, [from, until]: [Duration; 2]) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        let times = [bytes(from), bytes(until)];
        let told = input.write_all(times.as_flattened());
        told.expect("a worker that listens");
    }

    /// What it did, from its first cycle to its last.
    pub(crate) fn cycles(mut self) -> Vec<Cycle> {
        let mut log = Vec::new();
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_to_end(&mut log).expect("a worker's log");
        let status = self.child.wait().expect("a worker's end");
        assert!(status.success(), "a worker failed: {status}");
        let numbers = log.as_chunks::<8>().0.as_chunks::<4>().0;
        numbers.iter().map(Cycle::read).collect()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Does the work of a worker if this process is one, and says whether it was. `open` knows what crosslock doesn't.
pub(crate) fn serve(open: impl Fn(&Task, &str) -> Option<Opened>) -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, url, names, task @ ..] = &arguments[..] else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    let task = Task::from_args(task);
    let locks = open(&task, url);
    let locks = locks.unwrap_or_else(|| lock::open(&task.kind, task.prefer, url));
    let number = matches!(task.inside, Inside::Count).then(|| {
        let directory = url.strip_prefix("file://").expect("locks in a directory");
        // The first lock would make it, but there is none yet.
        std::fs::create_dir_all(directory).expect("a directory");
        lock::open_file(&Path::new(directory).join("number"))
    });
    Work {
        locks,
        task,
        number,
    }
    .serve(names);
    true
}

/// What the threads of a worker share.
struct Work {
    locks: Opened,
    task: Task,
    /// The number that they count up.
    number: Option<File>,
}

impl Work {
    fn serve(&self, names: &str) {
        let threads = names.lines().map(|line| line.split('\t').collect());
        let threads: Vec<Vec<&str>> = threads.collect();
        if self.task.kind != "Flock" {
            for name in threads.iter().flatten() {
                // Loads the scripts, and starts the renewal thread.
                let mut own = (self.locks)(&format!("{name} {}", std::process::id()));
                own.lock();
                own.unlock();
            }
        }
        sleep_precisely();
        let mut logs: Vec<_> = threads.iter().map(|_| empty_log()).collect();
        let mut output = std::io::stdout().lock();
        let told = output.write_all(&[1]).and_then(|()| output.flush());
        told.expect("a parent");
        let mut times = [[0; 8]; 2];
        let mut input = std::io::stdin().lock();
        let told = input.read_exact(times.as_flattened_mut());
        told.expect("a parent");
        let times = times.map(time_of);
        std::thread::scope(|scope| {
            for (names, log) in threads.iter().zip(&mut logs) {
                scope.spawn(|| self.run(names, times, log));
            }
        });
        let log: Vec<_> = logs.iter().flatten().flat_map(Cycle::write).collect();
        output.write_all(log.as_flattened()).expect("a parent");
    }

    fn run(&self, names: &[&str], [from, until]: [Duration; 2], log: &mut Vec<Cycle>) {
        let mut locks: Vec<_> = names.iter().map(|name| (self.locks)(name)).collect();
        let is_timed = self.task.kind == "Timed";
        sleep_until(from);
        while log.last().is_none_or(|last| last.held[1] < until) {
            let next = log.len() % locks.len();
            let cycle = self.cycle(&mut *locks[next]);
            log.push(cycle);
            if is_timed && log.len() == TIMED.0 {
                break;
            }
            if !self.task.every.is_zero() {
                sleep_until(cycle.asked + self.task.every);
            }
        }
    }

    fn cycle(&self, lock: &mut dyn Lock) -> Cycle {
        let asked = monotonic();
        let token = lock.lock();
        let got = monotonic();
        if token.is_some() {
            self.use_it(got);
        }
        let cycle = Cycle {
            token: token.unwrap_or(0),
            asked,
            held: [got, monotonic()],
        };
        if token.is_some() {
            lock::say(lock.unlock());
        }
        cycle
    }

    fn use_it(&self, since: Duration) {
        let hold = self.task.hold;
        if let Some(number) = &self.number {
            count(number);
        }
        if matches!(self.task.inside, Inside::Spin) {
            while monotonic() < since + hold {
                std::hint::spin_loop();
            }
        } else if !hold.is_zero() {
            std::thread::sleep(hold);
        }
    }
}

/// Adds one, as the example `counter` does.
fn count(number: &File) {
    let mut digits = [b'0'; 20];
    // There is none yet at the first time.
    let _ = number.read_exact_at(&mut digits, 0);
    let digits = str::from_utf8(&digits).expect("digits");
    let counted: u64 = digits.parse().expect("a number");
    let next = format!("{:020}", counted + 1);
    number.write_all_at(next.as_bytes(), 0).expect("a file");
}

/// With memory that is there already.
fn empty_log() -> Vec<Cycle> {
    const USUAL: usize = 1 << 16;
    let none = Cycle {
        token: u64::MAX,
        asked: Duration::MAX,
        held: [Duration::MAX; 2],
    };
    let mut cycles = vec![none; USUAL];
    cycles.clear();
    cycles
}

/// By default the kernel lets a sleep take 50 us longer than asked, which is not what is measured here.
fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).expect("a timer");
}

fn bytes(time: Duration) -> [u8; 8] {
    let nanos = u64::try_from(time.as_nanos());
    nanos
        .expect("a host that was started not long ago")
        .to_le_bytes()
}

fn time_of(bytes: [u8; 8]) -> Duration {
    Duration::from_nanos(u64::from_le_bytes(bytes))
}

/// The clock that all processes of a host share.
pub(crate) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = now.tv_sec.try_into().expect("a time since the start");
    Duration::new(seconds, now.tv_nsec.try_into().expect("nanoseconds"))
}

pub(crate) fn sleep_until(time: Duration) {
    std::thread::sleep(time.saturating_sub(monotonic()));
}
