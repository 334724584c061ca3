//! A number that several processes share: `Mutex<u64>` next to a lock and a number that are kept apart.
//!
//! The number lives beside the lock, comes with it, and is stored by the command that releases it. So an increment
//! costs no more than the lock alone, and a process that has lost its lock can't overwrite what the next one wrote.
//! By hand it is four commands, and nothing refuses a late write.
//!
//! In a directory the number by hand is faster: it is written over the old one, and half of it may be lost in a crash.
//! That of the mutex is a new file each time, which is on the disk before it takes the place of the old one.
//!
//! ```text
//! cargo run --release --example shared_counter                               # no server: in a directory
//! cargo run --release --example shared_counter -- --url redis://127.0.0.1/
//! cargo run --release --example shared_counter -- --processes 8 --increments 2000
//! ```

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use crosslock::{Locker, MutexGuard};
use redis::{Client, Connection, IntoConnectionInfo};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "shared_counter [--url URL] [--processes N] [--increments N]";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("shared_counter: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let job = Job::from_args(env::args().skip(1))?;
    match &job.worker {
        Some(way) => work(&job, way).map(|()| ExitCode::SUCCESS),
        None => drive(&job),
    }
}

/// What the command line asks for.
struct Job {
    url: String,
    processes: u32,
    increments: u32,
    /// The lock's name, which no other run has.
    name: String,
    /// How to count, in a process that was started to count.
    worker: Option<String>,
}

// What a worker is told to do.
const TYPED: &str = "typed";
const BY_HAND: &str = "by-hand";

impl Job {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self> {
        // The URL may hold a password, so workers get it by the environment, where others can't see it.
        let url = env::var("CROSSLOCK_URL").unwrap_or_else(|_| "file:".into());
        let mut job = Job {
            url,
            processes: 4,
            increments: 1000,
            name: format!("shared-counter-{}", std::process::id()),
            worker: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{arg} needs a value: {USAGE}"))
            };
            match arg.as_str() {
                "--url" => job.url = value()?,
                "--processes" => job.processes = value()?.parse()?,
                "--increments" => job.increments = value()?.parse()?,
                "--name" => job.name = value()?,
                "--worker" => job.worker = Some(value()?),
                _ => return Err(format!("{arg} isn't known: {USAGE}").into()),
            }
        }
        if job.url.starts_with("memory:") {
            return Err("memory: is of one process; this counts with several".into());
        }
        Ok(job)
    }

    fn expected(&self) -> u64 {
        u64::from(self.processes) * u64::from(self.increments)
    }
}

/// Counts in both ways, and compares them.
fn drive(job: &Job) -> Result<ExitCode> {
    let counter = Locker::open(&job.url)?.mutex(&job.name, 0u64)?;
    let mut number = Number::open(job)?;
    let typed = count(job, TYPED, || Ok(counter.peek()?));
    let by_hand = count(job, BY_HAND, || number.read());
    // The numbers outlive all processes: until they are removed, for ever.
    counter.remove()?;
    number.remove()?;
    report(job, &[typed?, by_hand?])
}

/// Runs the processes, and looks how far they counted.
fn count(job: &Job, way: &str, counted: impl FnOnce() -> Result<u64>) -> Result<Outcome> {
    let start = Instant::now();
    let workers = (0..job.processes).map(|_| start_worker(job, way));
    let workers = workers.collect::<io::Result<Vec<_>>>()?;
    let mut all_well = true;
    for mut worker in workers {
        all_well &= worker.wait()?.success();
    }
    Ok(Outcome {
        elapsed: start.elapsed(),
        all_well,
        counted: counted()?,
    })
}

fn start_worker(job: &Job, way: &str) -> io::Result<Child> {
    let increments = job.increments.to_string();
    Command::new(env::current_exe()?)
        .env("CROSSLOCK_URL", &job.url)
        .args(["--worker", way, "--name", &job.name])
        .args(["--increments", &increments])
        .spawn()
}

/// How it went in one of the ways.
struct Outcome {
    elapsed: Duration,
    all_well: bool,
    counted: u64,
}

impl Outcome {
    fn rate(&self) -> f64 {
        self.counted as f64 / self.elapsed.as_secs_f64()
    }
}

fn report(job: &Job, outcomes: &[Outcome; 2]) -> Result<ExitCode> {
    let expected = job.expected();
    println!(
        "{:<26} {:>8} {:>8} {:>5} {:>9}",
        "", "expected", "counted", "lost", "per s"
    );
    for (way, outcome) in ["Mutex<u64>", "lock, read, write, unlock"]
        .iter()
        .zip(outcomes)
    {
        let (counted, rate) = (outcome.counted, outcome.rate());
        let lost = expected.saturating_sub(counted);
        println!("{way:<26} {expected:>8} {counted:>8} {lost:>5} {rate:>9.0}");
    }
    let [typed, by_hand] = outcomes;
    println!(
        "Mutex<u64> is {:.2} times as fast, with {} processes",
        typed.rate() / by_hand.rate(),
        job.processes
    );
    let is_right = |outcome: &Outcome| outcome.all_well && outcome.counted == expected;
    Ok(if outcomes.iter().all(is_right) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One process.
fn work(job: &Job, way: &str) -> Result<()> {
    let lock = Locker::open(&job.url)?;
    match way {
        TYPED => count_typed(job, &lock),
        BY_HAND => count_by_hand(job, &lock),
        _ => Err(format!("a worker counts {TYPED} or {BY_HAND}, not {way}").into()),
    }
}

fn count_typed(job: &Job, lock: &Locker) -> Result<()> {
    let counter = lock.mutex(&job.name, 0u64)?;
    for _ in 0..job.increments {
        let mut guard = counter.lock()?;
        *guard += 1;
        MutexGuard::unlock(guard)?;
    }
    Ok(())
}

fn count_by_hand(job: &Job, lock: &Locker) -> Result<()> {
    let name = format!("{}-by-hand", job.name);
    let mut number = Number::open(job)?;
    for _ in 0..job.increments {
        let guard = lock.lock(&name)?;
        let next = number.read()? + 1;
        // A lock that was lost by now isn't known to the server of the number: it takes the write all the same.
        number.write(next)?;
        guard.unlock()?;
    }
    Ok(())
}

/// A number that knows nothing of locks, where the locks live.
enum Number {
    File(PathBuf),
    Redis(Box<Connection>, String),
}

impl Number {
    fn open(job: &Job) -> Result<Self> {
        if job.url.starts_with("file:") {
            return Ok(Number::File(env::temp_dir().join(&job.name)));
        }
        let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = job
            .url
            .as_str()
            .into_connection_info()?
            .set_tcp_settings(settings);
        let connection = Client::open(info)?.get_connection()?;
        Ok(Number::Redis(Box::new(connection), job.name.clone()))
    }

    /// Zero as long as none is there.
    fn read(&mut self) -> Result<u64> {
        match self {
            Number::File(path) => match fs::read_to_string(path) {
                Ok(number) => Ok(number.parse()?),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
                Err(e) => Err(e.into()),
            },
            Number::Redis(connection, key) => {
                let number: Option<u64> = redis::cmd("GET").arg(key).query(connection)?;
                Ok(number.unwrap_or_default())
            }
        }
    }

    fn write(&mut self, number: u64) -> Result<()> {
        match self {
            Number::File(path) => Ok(fs::write(path, number.to_string())?),
            Number::Redis(connection, key) => {
                Ok(redis::cmd("SET").arg(key).arg(number).exec(connection)?)
            }
        }
    }

    fn remove(self) -> Result<()> {
        match self {
            Number::File(path) => match fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
                _ => Ok(()),
            },
            Number::Redis(mut connection, key) => {
                Ok(redis::cmd("DEL").arg(key).exec(&mut connection)?)
            }
        }
    }
}
