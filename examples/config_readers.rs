//! A configuration that many processes read all the time, and one writes now and then, with each of the ways to say who
//! goes first.
//!
//! Each reader holds the lock for 2 ms, and comes again at once; the writer comes every 50 ms. A reader that found the
//! configuration half written would say so, and fail.
//!
//! ```text
//! cargo run --release --example config_readers                               # redis://127.0.0.1/
//! cargo run --release --example config_readers -- --url file:                # without a server
//! cargo run --release --example config_readers -- --readers 16 --seconds 5
//! ```

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Locker, Prefer, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "config_readers [--url URL] [--readers N] [--seconds S]";

/// How long a reader reads.
const READ: Duration = Duration::from_millis(2);
/// How often the writer comes.
const EVERY: Duration = Duration::from_millis(50);

/// What is shared: settings, of which `greeting` belongs to `version`. With serde's `derive` it could be a struct.
type Config = BTreeMap<String, String>;

fn config_of(version: u64) -> Config {
    let greeting = format!("hello from version {version}");
    let settings = [("version", version.to_string()), ("greeting", greeting)];
    settings.map(|(key, value)| (key.to_owned(), value)).into()
}

fn version_of(config: &Config) -> Result<u64> {
    Ok(config["version"].parse()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("config_readers: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let job = Job::from_args(env::args().skip(1))?;
    match job.role {
        Role::Driver => drive(&job),
        Role::Reader => work(&job, read).map(|()| ExitCode::SUCCESS),
        Role::Writer => work(&job, write).map(|()| ExitCode::SUCCESS),
    }
}

/// What the command line asks for.
struct Job {
    url: String,
    readers: u32,
    time: Duration,
    /// The lock's name, which no other run has.
    name: String,
    prefer: Prefer,
    role: Role,
}

#[derive(PartialEq)]
enum Role {
    Driver,
    Reader,
    Writer,
}

const ALL: [Prefer; 3] = [Prefer::Fair, Prefer::Readers, Prefer::Writers];

impl Job {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self> {
        // The URL may hold a password, so workers get it by the environment, where others can't see it.
        let url = env::var("CROSSLOCK_URL").unwrap_or_else(|_| "redis://127.0.0.1/".into());
        let mut job = Job {
            url,
            readers: 8,
            time: Duration::from_secs(2),
            name: format!("config-readers-{}", std::process::id()),
            prefer: Prefer::Fair,
            role: Role::Driver,
        };
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{arg} needs a value: {USAGE}"))
            };
            match arg.as_str() {
                "--url" => job.url = value()?,
                "--readers" => job.readers = value()?.parse()?,
                "--seconds" => job.time = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--name" => job.name = value()?,
                "--prefer" => job.prefer = ALL[value()?.parse::<usize>()? % ALL.len()],
                "--reader" => job.role = Role::Reader,
                "--writer" => job.role = Role::Writer,
                _ => return Err(format!("{arg} isn't known: {USAGE}").into()),
            }
        }
        if job.url.starts_with("memory:") {
            return Err("memory: is of one process; this reads with several".into());
        }
        Ok(job)
    }

    fn config(&self) -> Result<RwLock<Config>> {
        let lock = Locker::builder(&self.url).prefer(self.prefer).build()?;
        Ok(lock.rwlock(&self.name, config_of(0))?)
    }
}

/// Runs the processes with each of the ways, and removes what they leave.
fn drive(job: &Job) -> Result<ExitCode> {
    let config = job.config()?;
    println!(
        "{:<8} {:>8} {:>8} {:>14} {:>24} {:>24}",
        "prefer",
        "reads/s",
        "writes/s",
        "readers inside",
        "longest wait of a reader",
        "longest wait of a writer"
    );
    let mut all_well = true;
    let rounds = (0..ALL.len()).try_for_each(|prefer| {
        all_well &= round(job, prefer)?;
        Ok(())
    });
    config.remove()?;
    rounds.map(|()| {
        if all_well {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    })
}

/// Runs them with one of the ways, and says whether all ended well.
fn round(job: &Job, prefer: usize) -> Result<bool> {
    let readers = (0..job.readers).map(|_| Worker::start(job, "--reader", prefer));
    let mut readers = readers.collect::<Result<Vec<_>>>()?;
    let mut writer = Worker::start(job, "--writer", prefer)?;
    for worker in readers.iter_mut().chain([&mut writer]) {
        worker.await_ready()?;
    }
    for worker in readers.iter_mut().chain([&mut writer]) {
        worker.begin();
    }
    let (mut all, mut all_well) = (Tally::default(), true);
    for reader in readers {
        let (tally, well) = reader.end()?;
        all.add(&tally);
        all_well &= well;
    }
    let (writes, well) = writer.end()?;
    let seconds = job.time.as_secs_f64();
    println!(
        "{:<8} {:>8.0} {:>8.1} {:>14.2} {:>21.1} ms {:>21.1} ms",
        format!("{:?}", ALL[prefer]),
        all.count as f64 / seconds,
        writes.count as f64 / seconds,
        all.held.as_secs_f64() / seconds,
        all.longest.as_secs_f64() * 1e3,
        writes.longest.as_secs_f64() * 1e3,
    );
    Ok(all_well && well)
}

/// A process that reads or writes: this program, started again.
struct Worker {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(job: &Job, role: &str, prefer: usize) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .env("CROSSLOCK_URL", &job.url)
            .args([role, "--name", &job.name, "--prefer", &prefer.to_string()])
            .args(["--seconds", &job.time.as_secs_f64().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("a pipe was asked for")?;
        let output = BufReader::new(output);
        Ok(Worker { child, output })
    }

    /// Waits until it is connected.
    fn await_ready(&mut self) -> Result<()> {
        match self.output.read_line(&mut String::new())? {
            0 => Err("a process ended before it began".into()),
            _ => Ok(()),
        }
    }

    /// Closes its input, which it waits for.
    fn begin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it did, and whether it ended well.
    fn end(mut self) -> Result<(Tally, bool)> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let well = self.child.wait()?.success();
        Ok((Tally::parse(&line).unwrap_or_default(), well))
    }
}

/// What a process did.
#[derive(Default)]
struct Tally {
    count: u64,
    /// How long it had the lock, in all.
    held: Duration,
    longest: Duration,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.count += other.count;
        self.held += other.held;
        self.longest = self.longest.max(other.longest);
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Tally {
            count: next()?,
            held: Duration::from_micros(next()?),
            longest: Duration::from_micros(next()?),
        })
    }

    fn print(&self) {
        let [held, longest] = [self.held, self.longest].map(|time| time.as_micros());
        println!("{} {held} {longest}", self.count);
    }
}

/// One process.
fn work(job: &Job, work: fn(&RwLock<Config>, Instant) -> Result<Tally>) -> Result<()> {
    let config = job.config()?;
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_line(&mut String::new())?;
    work(&config, Instant::now() + job.time)?.print();
    Ok(())
}

fn read(config: &RwLock<Config>, end: Instant) -> Result<Tally> {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let asked = Instant::now();
        let guard = config.try_read_until(end)?;
        tally.longest = tally.longest.max(asked.elapsed());
        let Some(guard) = guard else {
            break;
        };
        let got = Instant::now();
        thread::sleep(READ);
        if *guard != config_of(version_of(&guard)?) {
            return Err(format!("half written: {:?}", *guard).into());
        }
        tally.held += got.elapsed();
        tally.count += 1;
        RwLockReadGuard::unlock(guard)?;
    }
    Ok(tally)
}

fn write(config: &RwLock<Config>, end: Instant) -> Result<Tally> {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let asked = Instant::now();
        let guard = config.try_write_until(end)?;
        tally.longest = tally.longest.max(asked.elapsed());
        let Some(mut guard) = guard else {
            break;
        };
        *guard = config_of(version_of(&guard)? + 1);
        tally.count += 1;
        RwLockWriteGuard::unlock(guard)?;
        thread::sleep((asked + EVERY).saturating_duration_since(Instant::now()));
    }
    Ok(tally)
}
