//! Ten processes that share something that bears only three at once: a semaphore, and a picture of who has a permit.
//!
//! Each process takes a permit, works for 200 to 600 ms, gives it back, rests, and comes again. On a terminal there
//! is one line for each, redrawn in place; elsewhere one line for each change. At the end it is computed from
//! what the processes say, by the clock that they share, that there were never more than three.
//!
//! ```text
//! cargo run --release --example rate_limit                               # redis://127.0.0.1/
//! cargo run --release --example rate_limit -- --url file:                # without a server
//! cargo run --release --example rate_limit -- --processes 20 --permits 5 --seconds 30
//! ```
//!
//! Kill one of the processes while it has a permit (their ids are shown): the permit comes back when its lease of 2 s
//! is over, or with `file:` at once.

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, IsTerminal, PipeWriter, Write};
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Locker, Semaphore};
use rustix::time::{ClockId, clock_gettime};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "rate_limit [--url URL] [--processes N] [--permits N] [--seconds S]";

const TTL: Duration = Duration::from_secs(2);
/// How many milliseconds a process works.
const WORK: std::ops::RangeInclusive<u64> = 200..=600;
const REST: Duration = Duration::from_millis(150);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("rate_limit: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let job = Job::from_args(env::args().skip(1))?;
    match job.worker {
        Some(process) => work(&job, process).map(|()| ExitCode::SUCCESS),
        None => drive(&job),
    }
}

/// What the command line asks for.
struct Job {
    url: String,
    processes: usize,
    permits: u32,
    time: Duration,
    /// The semaphore's name, which no other run has.
    name: String,
    /// Its number, in a process that was started to work.
    worker: Option<usize>,
}

impl Job {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self> {
        // The URL may hold a password, so workers get it by the environment, where others can't see it.
        let url = env::var("CROSSLOCK_URL").unwrap_or_else(|_| "redis://127.0.0.1/".into());
        let mut job = Job {
            url,
            processes: 10,
            permits: 3,
            time: Duration::from_secs(10),
            name: format!("rate-limit-{}", std::process::id()),
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
                "--permits" => job.permits = value()?.parse()?,
                "--seconds" => job.time = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--name" => job.name = value()?,
                "--worker" => job.worker = Some(value()?.parse()?),
                _ => return Err(format!("{arg} isn't known: {USAGE}").into()),
            }
        }
        if job.url.starts_with("memory:") {
            return Err("memory: is of one process; this limits several".into());
        }
        Ok(job)
    }

    fn semaphore(&self) -> Result<Semaphore> {
        let lock = Locker::builder(&self.url).ttl(TTL).build()?;
        Ok(lock.semaphore(&self.name, self.permits)?)
    }
}

/// What a process does, or did.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Rests,
    Waits,
    /// Since when, by the clock that all processes of a host share.
    Works(Duration),
    Ended,
}

/// Starts the processes, shows what they do, and counts.
fn drive(job: &Job) -> Result<ExitCode> {
    // Tells now, and once, if the engine isn't there or has no semaphores.
    job.semaphore()?;
    // One for all of them, so that lines come in the order in which they were written.
    let (input, output) = io::pipe()?;
    let workers = (0..job.processes).map(|process| start_worker(job, process, &output));
    let workers = workers.collect::<io::Result<Vec<_>>>()?;
    let mut picture = Picture::new(job, &workers);
    let mut log = Log::new(job.processes);
    let ends = workers.into_iter().enumerate().map(|(process, worker)| {
        let output = output.try_clone()?;
        Ok(thread::spawn(move || await_end(worker, process, output)))
    });
    let ends = ends.collect::<io::Result<Vec<_>>>()?;
    drop(output);
    for line in BufReader::new(input).lines() {
        let process = log.add(&line?)?;
        picture.change(&log.states, process)?;
    }
    let mut all_well = true;
    for end in ends {
        all_well &= end.join().expect("no panic")?;
    }
    let most = log.most_at_once();
    println!("never more than {most} at once, of {} permits", job.permits);
    println!("how often each had one: {:?}", log.counts());
    Ok(if all_well && most <= job.permits as usize {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn start_worker(job: &Job, process: usize, output: &PipeWriter) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .env("CROSSLOCK_URL", &job.url)
        .args(["--worker", &process.to_string(), "--name", &job.name])
        .args(["--permits", &job.permits.to_string()])
        .args(["--seconds", &job.time.as_secs_f64().to_string()])
        .stdout(output.try_clone()?)
        .spawn()
}

/// Says when a process has ended, also one that was killed, and whether it ended well.
fn await_end(mut worker: Child, process: usize, mut output: PipeWriter) -> io::Result<bool> {
    let status = worker.wait()?;
    output.write_all(format!("{process} ended 0\n").as_bytes())?;
    Ok(status.success())
}

/// When each process had a permit.
struct Log {
    states: Vec<State>,
    held: Vec<Vec<[Duration; 2]>>,
}

impl Log {
    fn new(processes: usize) -> Self {
        Log {
            states: vec![State::Rests; processes],
            held: vec![Vec::new(); processes],
        }
    }

    /// Gives the process that said it.
    fn add(&mut self, line: &str) -> Result<usize> {
        let [process, word, time] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("a process said {line:?}").into());
        };
        let process: usize = process.parse()?;
        let time = Duration::from_nanos(time.parse()?);
        let state = match word {
            "waits" => State::Waits,
            "works" => State::Works(time),
            "rests" => State::Rests,
            _ => State::Ended,
        };
        if let (State::Works(since), State::Rests) = (self.states[process], state) {
            self.held[process].push([since, time]);
        }
        self.states[process] = state;
        Ok(process)
    }

    fn counts(&self) -> Vec<usize> {
        self.held.iter().map(Vec::len).collect()
    }

    /// Each began after it had the permit, and ended before it gave it back.
    fn most_at_once(&self) -> usize {
        let times = self.held.iter().flatten();
        let mut steps: Vec<(Duration, isize)> = times
            .flat_map(|&[from, to]| [(from, 1), (to, -1)])
            .collect();
        // Of two at the same moment the end comes first.
        steps.sort_unstable();
        let inside = steps.iter().scan(0, |inside, (_, step)| {
            *inside += step;
            Some(*inside)
        });
        inside.max().unwrap_or_default().unsigned_abs()
    }
}

/// What is seen of it.
struct Picture {
    start: Instant,
    permits: u32,
    /// Their ids.
    processes: Vec<u32>,
    on_terminal: bool,
    drawn: bool,
}

impl Picture {
    fn new(job: &Job, workers: &[Child]) -> Self {
        Picture {
            start: Instant::now(),
            permits: job.permits,
            processes: workers.iter().map(Child::id).collect(),
            on_terminal: io::stdout().is_terminal(),
            drawn: false,
        }
    }

    fn change(&mut self, states: &[State], process: usize) -> io::Result<()> {
        let works = |state: &&State| matches!(state, State::Works(_));
        let out = states.iter().filter(works).count();
        let elapsed = self.start.elapsed().as_secs_f64();
        let head = format!("{elapsed:>6.2} s  {out} of {} out", self.permits);
        if self.on_terminal {
            return self.draw(&head, states);
        }
        let what = match states[process] {
            State::Rests => "gives its permit back",
            State::Waits => "waits",
            State::Works(_) => "has a permit",
            State::Ended => "ended",
        };
        println!("{head}  process {process:>2} {what}");
        Ok(())
    }

    /// One line for each process, over the ones that were drawn before.
    fn draw(&mut self, head: &str, states: &[State]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        if self.drawn {
            write!(output, "\x1b[{}A", self.processes.len() + 1)?;
        }
        self.drawn = true;
        writeln!(output, "\r{head}\x1b[K")?;
        for (id, state) in self.processes.iter().zip(states) {
            let bar = match state {
                State::Rests => "",
                State::Waits => "·",
                State::Works(_) => "██████████",
                State::Ended => "ended",
            };
            writeln!(output, "{id:>9}  {bar}\x1b[K")?;
        }
        output.flush()
    }
}

/// One process.
fn work(job: &Job, process: usize) -> Result<()> {
    let semaphore = job.semaphore()?;
    let end = Instant::now() + job.time;
    while Instant::now() < end {
        say(process, "waits")?;
        let Some(permit) = semaphore.try_acquire_until(end)? else {
            break;
        };
        say(process, "works")?;
        thread::sleep(Duration::from_millis(fastrand::u64(WORK)));
        // Before it is given back, so that who has it next never seems to have one too many.
        say(process, "rests")?;
        permit.unlock()?;
        thread::sleep(REST);
    }
    Ok(())
}

/// In one piece, so that lines of several processes don't mix.
fn say(process: usize, what: &str) -> io::Result<()> {
    let line = format!("{process} {what} {}\n", now().as_nanos());
    io::stdout().lock().write_all(line.as_bytes())
}

/// The clock that all processes of a host share.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanoseconds] = [now.tv_sec, now.tv_nsec];
    Duration::from_secs(seconds.unsigned_abs()) + Duration::from_nanos(nanoseconds.unsigned_abs())
}
