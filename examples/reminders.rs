//! Reminders that four worker processes send when they are due, one of which is killed on the way.
//!
//! ```text
//! cargo run --features delay --example reminders            # in a directory of its own: needs no server
//! cargo run --features delay --example reminders -- redis://127.0.0.1/
//! ```
//!
//! It inserts 300 reminders that are due within three seconds. A second before the end it kills a worker with SIGKILL
//! while that sends one. Another worker has that reminder again, marked `again`, so each is sent at least once. At the
//! end it says how many were sent, and how late: one line for each range.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{env, iter, process, thread};

use crosslock::{Locker, Task};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const REMINDERS: u32 = 300;
const WORKERS: usize = 4;
const SPAN: Duration = Duration::from_secs(3);
/// Of a worker in Redis that is killed, the lease ends after this time. In a directory it ends with the process.
const TTL: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("worker"), Some(url)) => work(&url),
        (Some(url), _) => remind(url),
        (None, _) => {
            let directory = env::temp_dir().join(format!("crosslock-reminders-{}", process::id()));
            std::fs::create_dir(&directory)?;
            let reminded = remind(&format!("file://{}", directory.display()));
            std::fs::remove_dir_all(&directory)?;
            reminded
        }
    }
}

fn open(url: &str) -> crosslock::Result<Locker> {
    Locker::builder(url).namespace("reminders").ttl(TTL).build()
}

/// A worker: it says of each reminder its number, the try, and how many microseconds late it is.
fn work(url: &str) -> Result<()> {
    let queue = open(url)?.delay_queue::<u32>("reminders")?;
    loop {
        let task = queue.take()?;
        println!(
            "{} {} {}",
            *task,
            Task::attempt(&task),
            Task::late(&task).as_micros()
        );
        thread::sleep(Duration::from_millis(5));
        Task::done(task)?;
    }
}

fn remind(url: &str) -> Result<()> {
    let queue = open(url)?.delay_queue::<u32>("reminders")?;
    let (sender, sent) = channel();
    let spawn = || Worker::spawn(url, sender.clone());
    let mut workers = iter::repeat_with(spawn)
        .take(WORKERS)
        .collect::<Result<Vec<_>>>()?;

    let due = |number| (number, SPAN * (number + 1) / REMINDERS);
    let reminders: Vec<_> = (0..REMINDERS).map(due).collect();
    queue.insert_all(&reminders)?;
    println!("{REMINDERS} reminders for {WORKERS} workers");

    let mut late = BTreeMap::new();
    let mut again = 0;
    while late.len() < REMINDERS as usize {
        let Sent {
            number,
            attempt,
            micros,
        } = sent.recv_timeout(Duration::from_secs(30))?;
        if late.insert(number, micros).is_some() || attempt > 1 {
            println!("{number} again, by another worker");
            again += 1;
        }
        if late.len() == REMINDERS as usize * 2 / 3 && workers.len() == WORKERS {
            let mut worker = workers.swap_remove(0);
            worker.0.kill()?;
            worker.0.wait()?;
            println!("killed worker {}", worker.0.id());
        }
    }
    println!("{} sent, none lost, {again} again", late.len());
    plot(late.values());
    Ok(())
}

/// What a worker says.
struct Sent {
    number: u64,
    attempt: u64,
    micros: u64,
}

/// A process, which ends with this.
struct Worker(Child);

impl Worker {
    fn spawn(url: &str, sender: Sender<Sent>) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        let mut child = command
            .args(["worker", url])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("it has no output")?;
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(|line| line.ok()) {
                let mut words = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
                let (Some(number), Some(attempt), Some(micros)) =
                    (words.next(), words.next(), words.next())
                else {
                    return;
                };
                if sender
                    .send(Sent {
                        number,
                        attempt,
                        micros,
                    })
                    .is_err()
                {
                    return;
                }
            }
        });
        Ok(Worker(child))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn plot<'a>(late: impl Iterator<Item = &'a u64>) {
    const MOST: usize = 50;
    let mut ranges = BTreeMap::new();
    for micros in late {
        *ranges.entry(micros.max(&100).ilog2()).or_insert(0) += 1;
    }
    let most = ranges.values().max().copied().unwrap_or(1);
    for (range, count) in ranges {
        let bar = "#".repeat((count * MOST).div_ceil(most));
        println!(
            "late by less than {:>8.1} ms  {count:>4}  {bar}",
            f64::from(2 << range) / 1e3
        );
    }
}
