//! A process that takes a lock, holds it and lets go in a loop: the bench itself, started again.
//!
//! It says when it is ready, is told when to begin and when to end, and keeps what it saw in memory until then.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crosslock::{LockGuard, Locker, Prefer};
use rustix::time::{ClockId, clock_gettime};

/// The first argument of a worker.
const ROLE: &str = "worker";

/// What a worker does in a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) way: Way,
    pub(crate) prefer: Prefer,
    pub(crate) hold: Duration,
    /// How often it comes; zero: again at once.
    pub(crate) every: Duration,
}

/// How it takes the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Lock,
    Read,
    Write,
}

/// One acquisition. Times are of the clock that all processes of a host share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    pub(crate) token: u64,
    pub(crate) asked: Duration,
    /// From before the first to after the last moment at which it was held.
    pub(crate) held: [Duration; 2],
}

pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// Starts a process that locks `name`, and holds it for as long each time. Each of several
    /// lines is for a thread of its own, and has names with tabs between, which it locks in turn.
    pub(crate) fn spawn(url: &str, name: &str, hold: Duration) -> Self {
        let task = Task {
            way: Way::Lock,
            prefer: Prefer::Nobody,
            hold,
            every: Duration::ZERO,
        };
        Worker::spawn_to(url, name, task)
    }

    pub(crate) fn spawn_to(url: &str, name: &str, task: Task) -> Self {
        let bench = std::env::current_exe().expect("the path of this bench");
        let child = Command::new(bench)
            .args([ROLE, url, name])
            .args(task.to_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        Worker { child }
    }

    /// Waits until it is connected, and has loaded the scripts.
    pub(crate) fn await_ready(&mut self) {
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut [0]).expect("a worker that is ready");
    }

    pub(crate) fn run(&mut self, from: Duration, until: Duration) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        for time in [from, until] {
            input
                .write_all(&bytes(time))
                .expect("a worker that listens");
        }
    }

    /// The CPU time that its threads have used.
    pub(crate) fn cpu_time(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        let used = tasks.filter_map(|task| {
            let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            times.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(used.sum())
    }

    /// What it did, from its first cycle to its last.
    pub(crate) fn cycles(mut self) -> Vec<Cycle> {
        let mut log = Vec::new();
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_to_end(&mut log).expect("a worker's log");
        let status = self.child.wait().expect("a worker's end");
        assert!(status.success(), "a worker failed: {status}");
        log.as_chunks::<32>().0.iter().map(Cycle::read).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does the work of a worker if this process is one, and says whether it was.
pub(crate) fn serve() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, url, name, task @ ..] = &arguments[..] else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    let task = Task::from_args(task);
    let lock = Locker::builder(url).prefer(task.prefer).build();
    work(&lock.expect("a server"), name, task);
    true
}

fn work(lock: &Locker, names: &str, task: Task) {
    let threads: Vec<Vec<&str>> = names
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    for name in threads.iter().flatten() {
        // Loads the scripts, and starts the renewal thread.
        drop(lock.lock(&format!("{name} {}", std::process::id())));
    }
    sleep_precisely();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut logs: Vec<_> = threads.iter().map(|_| empty_log()).collect();
    output.write_all(&[1]).expect("a parent");
    output.flush().expect("a parent");
    let times = [(); 2].map(|()| {
        let mut time = [0; 8];
        input.read_exact(&mut time).expect("a parent");
        Duration::from_nanos(u64::from_le_bytes(time))
    });
    std::thread::scope(|scope| {
        let mut threads = threads.iter().zip(&mut logs);
        let first = threads.next();
        for (names, log) in threads {
            scope.spawn(|| task.run(lock, names, times, log));
        }
        if let Some((names, log)) = first {
            task.run(lock, names, times, log);
        }
    });
    let log: Vec<u8> = logs.iter().flatten().flat_map(Cycle::write).collect();
    output.write_all(&log).expect("a parent");
}

/// With memory that is there already.
fn empty_log() -> Vec<Cycle> {
    const USUAL: usize = 1 << 16;
    let mut cycles = vec![Cycle::default(); USUAL];
    cycles.clear();
    cycles
}

/// By default the kernel lets a sleep take 50 us longer than asked, which is not what is measured here.
fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).expect("a timer");
}

impl Task {
    fn run(self, lock: &Locker, names: &[&str], times: [Duration; 2], log: &mut Vec<Cycle>) {
        let [from, until] = times;
        sleep_until(from);
        let mut names = names.iter().cycle();
        while log.last().is_none_or(|last| last.held[1] < until) {
            let Some(name) = names.next() else { break };
            let cycle = self.cycle(lock, name);
            log.push(cycle);
            if !self.every.is_zero() {
                sleep_until(cycle.asked + self.every);
            }
        }
    }

    fn cycle(self, lock: &Locker, name: &str) -> Cycle {
        let asked = monotonic();
        let guard = self.way.take(lock, name);
        let got = monotonic();
        if !self.hold.is_zero() {
            std::thread::sleep(self.hold);
        }
        let cycle = Cycle {
            token: guard.fencing_token(),
            asked,
            held: [got, monotonic()],
        };
        // On a machine that is busy with other work, no answer may come in time.
        guard.unlock().unwrap_or_else(|e| eprintln!("{e}"));
        cycle
    }

    fn to_args(self) -> [String; 4] {
        let [way, prefer] = [format!("{:?}", self.way), format!("{:?}", self.prefer)];
        let [hold, every] = [self.hold, self.every].map(|time| time.as_micros().to_string());
        [way, prefer, hold, every]
    }

    fn from_args(args: &[String]) -> Self {
        let [way, prefer, hold, every] = args else {
            panic!("a worker's four arguments, not {args:?}");
        };
        let [hold, every] =
            [hold, every].map(|time| Duration::from_micros(time.parse().expect("microseconds")));
        let way = match way.as_str() {
            "Read" => Way::Read,
            "Write" => Way::Write,
            _ => Way::Lock,
        };
        let prefer = match prefer.as_str() {
            "Readers" => Prefer::Readers,
            "Writers" => Prefer::Writers,
            _ => Prefer::Nobody,
        };
        Task {
            way,
            prefer,
            hold,
            every,
        }
    }
}

impl Way {
    fn take(self, lock: &Locker, name: &str) -> LockGuard {
        let taken = match self {
            Way::Lock => lock.lock(name),
            Way::Read => lock.read(name),
            Way::Write => lock.write(name),
        };
        taken.expect("the lock")
    }
}

impl Cycle {
    pub(crate) fn waited(&self) -> Duration {
        self.held[0] - self.asked
    }

    fn write(&self) -> Vec<u8> {
        let times = [self.asked, self.held[0], self.held[1]];
        [self.token.to_le_bytes()]
            .into_iter()
            .chain(times.map(bytes))
            .flatten()
            .collect()
    }

    fn read(log: &[u8; 32]) -> Self {
        let mut numbers = log
            .as_chunks::<8>()
            .0
            .iter()
            .copied()
            .map(u64::from_le_bytes);
        let mut next = || numbers.next().expect("four numbers");
        Cycle {
            token: next(),
            asked: Duration::from_nanos(next()),
            held: [next(), next()].map(Duration::from_nanos),
        }
    }
}

impl Default for Cycle {
    fn default() -> Self {
        Cycle {
            token: u64::MAX,
            asked: Duration::MAX,
            held: [Duration::MAX; 2],
        }
    }
}

fn bytes(time: Duration) -> [u8; 8] {
    u64::try_from(time.as_nanos())
        .expect("a host that was started not long ago")
        .to_le_bytes()
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
