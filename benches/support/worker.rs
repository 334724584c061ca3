//! A process that takes a lock, holds it and lets go in a loop: the bench itself, started again.
//!
//! It says when it is ready, is told when to begin and when to end, and keeps what it saw in memory until then.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crosslock::{Locker, Prefer};
use rustix::time::{ClockId, clock_gettime};

use super::task::{Cycle, Held, Inside, TIMED, Task, Way, open};

/// The first argument of a worker.
const ROLE: &str = "worker";

pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// Starts a process that locks `name`, and holds it for as long each time. Each of several
    /// lines is for a thread of its own, and has names with tabs between, which it locks in turn.
    pub(crate) fn spawn(url: &str, name: &str, hold: Duration) -> Self {
        let task = Task {
            way: Way::Lock,
            prefer: Prefer::Fair,
            hold,
            inside: Inside::Sleep,
            every: Duration::ZERO,
        };
        Worker::spawn_to(url, name, task)
    }

    pub(crate) fn spawn_to(url: &str, name: &str, task: Task) -> Self {
        let bench = std::env::current_exe().expect("the path of this bench");
        Worker::spawn_of(&bench, url, name, task)
    }

    /// A process of another build of the same bench.
    pub(crate) fn spawn_of(program: &Path, url: &str, name: &str, task: Task) -> Self {
        let child = Command::new(program)
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
    Work::new(url, Task::from_args(task)).serve(name);
    true
}

/// What the threads of a worker share.
struct Work {
    lock: Locker,
    task: Task,
    /// The number that they count up.
    number: Option<File>,
}

impl Work {
    fn new(url: &str, task: Task) -> Self {
        let lock = Locker::builder(url).prefer(task.prefer).build();
        let number = matches!(task.inside, Inside::Count).then(|| {
            let directory = url.strip_prefix("file://").expect("locks in a directory");
            // The first lock would make it, but there is none yet.
            std::fs::create_dir_all(directory).expect("a directory");
            open(&Path::new(directory).join("number"))
        });
        let lock = lock.expect("a server");
        Work { lock, task, number }
    }

    fn serve(&self, names: &str) {
        let threads: Vec<Vec<&str>> = names
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        if !matches!(self.task.way, Way::Flock) {
            for name in threads.iter().flatten() {
                // Loads the scripts, and starts the renewal thread.
                drop(self.lock.lock(&format!("{name} {}", std::process::id())));
            }
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
                scope.spawn(|| self.run(names, times, log));
            }
            if let Some((names, log)) = first {
                self.run(names, times, log);
            }
        });
        let log: Vec<u8> = logs.iter().flatten().flat_map(Cycle::write).collect();
        output.write_all(&log).expect("a parent");
    }

    fn run(&self, names: &[&str], times: [Duration; 2], log: &mut Vec<Cycle>) {
        let [from, until] = times;
        let every = self.task.every;
        sleep_until(from);
        let mut names = names.iter().cycle();
        while log.last().is_none_or(|last| last.held[1] < until) {
            let Some(name) = names.next() else { break };
            let cycle = self.cycle(name);
            log.push(cycle);
            if matches!(self.task.way, Way::Timed) && log.len() == TIMED.0 {
                break;
            }
            if !every.is_zero() {
                sleep_until(cycle.asked + every);
            }
        }
    }

    fn cycle(&self, name: &str) -> Cycle {
        let asked = monotonic();
        let held = self.task.way.take(&self.lock, name);
        let got = monotonic();
        if !matches!(held, Held::Nothing) {
            self.use_it(got);
        }
        let cycle = Cycle {
            token: held.token(),
            asked,
            held: [got, monotonic()],
        };
        held.release();
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
    let counted: u64 = str::from_utf8(&digits)
        .expect("digits")
        .parse()
        .expect("a number");
    let next = format!("{:020}", counted + 1);
    number.write_all_at(next.as_bytes(), 0).expect("a file");
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

pub(super) fn bytes(time: Duration) -> [u8; 8] {
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
