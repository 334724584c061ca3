//! Locks in a directory: what they cost, how fast they go from process to process, and who gets them.
//!
//! ```text
//! cargo bench --bench file [-- [SECTION] [--seconds SECONDS] [--rounds ROUNDS] [--old PROGRAM]]
//! ```
//!
//! Each SECTION (all, if none is named) compares `file:` with a private `redis-server` by its unix socket, and with a
//! loop of flock(2) that opens the file, locks, unlocks and closes, as flock(1) does. PROGRAM is this bench, built from
//! another commit: its `file:` is measured beside the one of this build, and named `old`. All are measured in turns in
//! one run, in an order that changes each time, in processes that are new each time; rates are medians of the rounds,
//! times are of all of them. Read the ratios, not the times. That no two held the lock at once, and that tokens
//! increase, is checked of every round.
//!
//! - `alone`: one process, nobody else: microseconds from asking for a lock to asking for the next. Pinned to one CPU.
//! - `fair`: 4 and 16 processes lock, hold for 1 ms and unlock in a loop for SECONDS (5). `ratio` is against 1000 locks
//!   a second; `held` is what a sleep of 1 ms came to. `fair` is how often the least served process had the lock,
//!   against the most served.
//! - `hand-off`: two processes that work for 0.2 ms while they hold. `gap` is from the last moment of one holder to the
//!   first of the other; `changes` is how many of all acquisitions were after the other process. On one CPU, so that it
//!   is a warm one; and each process on a CPU of its own, which has been idle when the lock comes.
//! - `timed`: a process that locks in a loop, and beside it one that calls `try_lock_for` with 1.5 s twelve times.
//!   `works`: the first one keeps its processor while it holds.
//! - `count`: 4 processes that add one to a number in a file under the lock, as the example `counter` does. `shares`
//!   are those of the processes, in percent.

mod support;

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::{Inside, MAX, P50, P99, Round, Server, Subject, Table, Task, Worker};
use support::{column, contest, monotonic, option, per, ratio};
use tempfile::TempDir;

fn main() {
    if support::serve(|_, _| None) {
        return;
    }
    let locks = Locks::start(option("--old"));
    let sections = [
        ("alone", Locks::alone as fn(&Locks)),
        ("fair", Locks::fair),
        ("hand-off", Locks::hand_off),
        ("timed", Locks::timed),
        ("count", Locks::count),
    ];
    let is_any_named = sections.iter().any(|(name, _)| support::has(name));
    for (name, run) in sections {
        if !is_any_named || support::has(name) {
            run(&locks);
        }
    }
}

/// One lock, and by whom it is used.
struct Lock {
    label: &'static str,
    program: PathBuf,
    url: String,
    name: String,
}

/// All of them, with the server that one of them needs.
struct Locks {
    all: Vec<Lock>,
    _server: Server,
    _directory: TempDir,
}

impl Locks {
    fn start(old: Option<PathBuf>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Server::start(directory.path());
        let this = env::current_exe().expect("the path of this bench");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let url = |name: &str| format!("file://{}", path(name));
        let lock = |label, program: &Path, url: String, name: &str| Lock {
            label,
            program: program.to_owned(),
            url,
            name: name.to_owned(),
        };
        let mut all = vec![lock("file:", &this, url("new"), "bench")];
        all.extend(old.map(|old| lock("file: old", &old, url("old"), "bench")));
        all.push(lock("redis", &this, server.unix(), "bench"));
        all.push(lock("flock", &this, url("by hand"), &path("flock")));
        Locks {
            all,
            _server: server,
            _directory: directory,
        }
    }

    /// All but some, in subjects that take turns.
    fn subjects<'a>(
        &'a self,
        columns: &[&'a str],
        but: &str,
        run: impl Fn(&Lock, &str) -> Round + Copy + 'a,
    ) -> Vec<Subject<'a>> {
        let locks = || self.all.iter().filter(|lock| lock.label != but);
        let all = columns
            .iter()
            .flat_map(|column| locks().map(move |lock| (lock, *column)));
        let subject = |(lock, column): (&'a Lock, &'a str)| {
            let name = format!("{}|{column}", lock.label);
            Subject::new(&name, move || run(lock, column)).to(&format!("file:|{column}"))
        };
        all.map(subject).collect()
    }

    fn alone(&self) {
        let columns = [
            column("p50 us", "cycle us", P50, 2),
            column("p99 us", "cycle us", P99, 2),
            ratio("cycle us").headed("to file:"),
        ];
        let subjects = self.subjects(&[""], "", |lock, _| lock.alone());
        // A round is short, so that many of each are in turns.
        Table::new(&["alone", ""], &columns, 20).run(subjects);
    }

    fn fair(&self) {
        let columns = [
            column("locks/s", "locks/s", P50, 0),
            column("ratio", "of 1000/s", P50, 2),
            column("changes", "changes", P50, 2),
            column("held", "held ms", P50, 2),
            column("fair", "fair", P50, 2),
            column("least", "least", P50, 0),
        ];
        let length = Duration::from_secs_f64(option("--seconds").unwrap_or(5.0));
        let subjects = self.subjects(&["4", "16"], "", |lock, processes| {
            let processes = processes.parse().expect("a number");
            let tasks = vec![Task::holding(Duration::from_millis(1)); processes];
            lock.contend(&tasks, Cpus::Any, length)
        });
        // Long ones: in a short one nobody is served as often as another.
        Table::new(&["fair", "P"], &columns, 3).run(subjects);
    }

    fn hand_off(&self) {
        let columns = [
            column("gap p50", "change us", P50, 1),
            column("p99 us", "change us", P99, 1),
            column("changes/s", "changes/s", P50, 0),
            column("changes", "changes", P50, 2),
            column("fair", "fair", P50, 2),
        ];
        let subjects = self.subjects(&["one CPU", "two CPUs"], "", |lock, place| {
            let is_one = place == "one CPU";
            let cpus = if is_one { Cpus::One } else { Cpus::OneEach };
            let tasks = [(); 2].map(|()| Task::working(Duration::from_micros(200)));
            lock.contend(&tasks, cpus, Duration::from_millis(800))
        });
        Table::new(&["hand-off", ""], &columns, 5).run(subjects);
    }

    fn timed(&self) {
        let columns = [
            column("got of 12", "got", P50, 0),
            column("p50 ms", "wait ms", P50, 2),
            column("max ms", "wait ms", MAX, 1),
        ];
        let holds = ["0 ms", "1 ms", "1 ms, works"];
        // flock(2) can't wait for a limited time.
        let subjects = self.subjects(&holds, "flock", |lock, holds| {
            let hold = Duration::from_millis(u64::from(holds != "0 ms"));
            let task = match holds {
                "1 ms, works" => Task::working(hold),
                _ => Task::holding(hold),
            };
            lock.beside_a_loop(holds, &task)
        });
        Table::new(&["timed", "loop holds"], &columns, 1).run(subjects);
    }

    fn count(&self) {
        let columns = [
            column("locks/s", "locks/s", P50, 0),
            ratio("locks/s").headed("to file:"),
            column("changes", "changes", P50, 2),
            column("fair", "fair", P50, 2),
            column("shares", "share 1", P50, 0),
            column("", "share 2", P50, 0),
            column("", "share 3", P50, 0),
            column("", "share 4", P50, 0),
        ];
        let subjects = self.subjects(&[""], "redis", |lock, _| {
            let task = Task {
                inside: Inside::Count,
                ..Task::holding(Duration::ZERO)
            };
            lock.contend(&vec![task; 4], Cpus::Any, Duration::from_secs(1))
        });
        Table::new(&["count", ""], &columns, 5).run(subjects);
    }
}

impl Lock {
    /// Starts a process that uses it.
    fn spawn(&self, name: &str, task: &Task, cpu: Option<usize>) -> Worker {
        let task = match self.label {
            "flock" => task.clone().by("Flock"),
            _ => task.clone(),
        };
        let spawn = || Worker::spawn_of(&self.program, &self.url, name, &task);
        cpu.map_or_else(spawn, |cpu| on_cpu(cpu, spawn))
    }

    fn contend(&self, tasks: &[Task], cpus: Cpus, length: Duration) -> Round {
        let spawn = |(number, task)| {
            let cpu = match cpus {
                Cpus::Any => None,
                Cpus::One => Some(1),
                Cpus::OneEach => Some(number),
            };
            self.spawn(&self.name, task, cpu)
        };
        let workers = tasks.iter().enumerate().map(spawn).collect();
        let (outcome, ()) = contest(workers, length, || || ());
        let of_1000 = outcome.per_second(outcome.count()) / 1000.0;
        outcome.round().with("of 1000/s", of_1000)
    }

    /// One process: the times from asking for the lock to asking again.
    fn alone(&self) -> Round {
        let task = Task::holding(Duration::ZERO);
        let workers = vec![self.spawn(&self.name, &task, Some(1))];
        let (outcome, ()) = contest(workers, Duration::from_millis(200), || || ());
        let mut round = Round::default();
        for pair in outcome.cycles[0].windows(2) {
            if outcome.counts(pair[0].asked) {
                round.micros("cycle us", pair[1].asked - pair[0].asked);
            }
        }
        round
    }

    /// What one gets who waits for a limited time, beside a process that locks in a loop.
    fn beside_a_loop(&self, name: &str, loops: &Task) -> Round {
        const FOREVER: Duration = Duration::from_secs(3600);
        let task = Task {
            every: Duration::from_millis(50),
            ..Task::holding(Duration::ZERO).by("Timed")
        };
        // Nobody who was killed has a lock of that name yet.
        let name = format!("{name} {}", fastrand::u64(..));
        let [mut looping, mut timed] = [loops, &task].map(|task| self.spawn(&name, task, None));
        looping.await_ready();
        timed.await_ready();
        let begin = monotonic() + Duration::from_millis(20);
        looping.run([begin, begin + FOREVER]);
        timed.run([begin + Duration::from_millis(100), begin + FOREVER]);
        let (mut round, mut got) = (Round::default(), 0);
        for cycle in timed.cycles() {
            got += usize::from(cycle.token > 0);
            round.millis("wait ms", cycle.waited());
        }
        round.with("got", per(got, 1))
    }
}

/// On which CPU each process is.
#[derive(Clone, Copy)]
enum Cpus {
    Any,
    One,
    OneEach,
}

/// A process stays on the CPUs of the thread that started it.
#[cfg(target_os = "linux")]
fn on_cpu<T>(cpu: usize, start: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
        .unwrap_or_else(|e| eprintln!("not pinned, ratios will wander: {e}"));
    let started = start();
    sched_setaffinity(None, &before).expect("those that it had");
    started
}

#[cfg(not(target_os = "linux"))]
fn on_cpu<T>(_: usize, start: impl FnOnce() -> T) -> T {
    start()
}
