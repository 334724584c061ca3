//! The main job: several processes count one counter up, and no increment is lost.
//!
//! Each process opens the file that holds the counter, and then, again and again: takes the lock, reads the
//! number, writes the next one, lets go. Nothing but the lock keeps two of them from reading the same number.
//!
//! ```text
//! cargo run --release --example counter                       # no server: locks in a directory
//! cargo run --release --example counter -- --url redis://127.0.0.1/     # locks in Redis
//! cargo run --release --example counter -- --url redis+sentinel://127.0.0.1:26379/mymaster
//! cargo run --release --example counter -- --url redis+cluster://127.0.0.1:7000,127.0.0.1:7001
//! cargo run --release --example counter -- --url redis+quorum://127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003
//! cargo run --release --example counter -- --processes 8 --increments 2000
//! cargo run --release --example counter -- --no-lock          # see increments get lost
//! ```

use std::env;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "counter [--url URL] [--processes N] [--increments N] [--no-lock]";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("counter: {e}");
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
        Some(counter) => work(&job, counter).map(|()| ExitCode::SUCCESS),
        None => drive(&job),
    }
}

/// What the command line asks for.
struct Job {
    url: String,
    processes: u32,
    increments: u32,
    locked: bool,
    /// The counter, in a process that was started to count.
    worker: Option<PathBuf>,
}

impl Job {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self> {
        // The URL may hold a password, so workers get it by the environment, where others can't see it.
        let url = env::var("CROSSLOCK_URL").unwrap_or_else(|_| "file:".into());
        let mut job = Job {
            url,
            processes: 4,
            increments: 1000,
            locked: true,
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
                "--no-lock" => job.locked = false,
                "--worker" => job.worker = Some(value()?.into()),
                _ => return Err(format!("{arg} isn't known: {USAGE}").into()),
            }
        }
        Ok(job)
    }
}

/// Starts the processes, shows how far they are, and counts what is lost.
fn drive(job: &Job) -> Result<ExitCode> {
    // Tells now, and once, if the engine isn't there.
    drop(Locker::open(&job.url)?);
    let directory = env::temp_dir().join(format!("crosslock-counter-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let counter = directory.join("counter");
    write(&File::create(&counter)?, 0)?;

    let start = Instant::now();
    let workers = (0..job.processes).map(|_| start_worker(job, &counter));
    let workers = workers.collect::<io::Result<Vec<_>>>()?;
    let expected = u64::from(job.processes) * u64::from(job.increments);
    let all_well = watch(workers, &counter, expected)?;
    let elapsed = start.elapsed();

    let counted = read(&File::open(&counter)?)?;
    fs::remove_dir_all(&directory)?;
    let lost = expected - counted.min(expected);
    println!("expected  {expected:>8}");
    println!("counted   {counted:>8}");
    println!("lost      {lost:>8}");
    let rate = expected as f64 / elapsed.as_secs_f64();
    println!(
        "{rate:.0} acquisitions/s, {} processes, {:.2?}",
        job.processes, elapsed
    );
    let as_it_should = all_well && (counted == expected || !job.locked);
    Ok(if as_it_should {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn start_worker(job: &Job, counter: &Path) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command
        .env("CROSSLOCK_URL", &job.url)
        .arg("--worker")
        .arg(counter);
    command.arg("--increments").arg(job.increments.to_string());
    if !job.locked {
        command.arg("--no-lock");
    }
    command.spawn()
}

/// Shows the counter until every process has ended, and says whether all ended well.
fn watch(workers: Vec<Child>, counter: &Path, expected: u64) -> Result<bool> {
    let counter = File::open(counter)?;
    let (work, is_over) = mpsc::channel();
    thread::scope(|scope| {
        if io::stderr().is_terminal() {
            scope.spawn(|| show(&counter, expected, is_over));
        }
        // Dropped when all have ended, or by an error.
        let _work: Sender<()> = work;
        let mut all_well = true;
        for mut worker in workers {
            all_well &= worker.wait()?.success();
        }
        Ok(all_well)
    })
}

fn show(counter: &File, expected: u64, is_over: Receiver<()>) {
    let show = || {
        // While somebody writes it, it is shown a little later.
        if let Ok(number) = read(counter) {
            eprint!("\rcounting  {number:>8} of {expected}");
        }
    };
    while is_over.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
        show();
    }
    show();
    eprintln!();
}

/// One process.
fn work(job: &Job, counter: &Path) -> Result<()> {
    let lock = Locker::open(&job.url)?;
    let counter = OpenOptions::new().read(true).write(true).open(counter)?;
    for _ in 0..job.increments {
        let guard = if job.locked {
            Some(lock.lock("counter")?)
        } else {
            None
        };
        let number = read(&counter)?;
        write(&counter, number + 1)?;
        if let Some(guard) = guard {
            guard.unlock()?;
        }
    }
    Ok(())
}

const DIGITS: usize = 20;

fn read(counter: &File) -> Result<u64> {
    let mut digits = [0; DIGITS];
    counter.read_exact_at(&mut digits, 0)?;
    Ok(str::from_utf8(&digits)?.parse()?)
}

fn write(counter: &File, number: u64) -> io::Result<()> {
    counter.write_all_at(format!("{number:0DIGITS$}").as_bytes(), 0)
}
