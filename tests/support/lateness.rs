//! By how much the machine keeps threads from running that want to, and how many want to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two laps.
const NAP: Duration = Duration::from_millis(5);
const USUAL: Duration = Duration::from_millis(1);
/// As many threads as a call wakes one after the other: the caller's, one of the library, a proxy's, the server's.
const THREADS: usize = 4;

/// Threads that wake each other in a ring, again and again. A lap that takes longer than usual was late.
///
/// A single thread that sleeps sees less than others suffer: schedulers favour threads that hardly run, so those of the
/// ring can be told to work as well. They still see less than a server that has much to do. So each lap also counts the
/// threads that run or could.
#[derive(Debug)]
pub(super) struct Probe {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Probe {
    /// Starts the threads, each of which works for so long in each lap. `tell` is called after each lap, with how late
    /// it was; it was due by so much earlier. Returns when the first lap is over.
    pub(super) fn start(work: Duration, mut tell: impl FnMut(Duration) + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (first, mut last) = mpsc::channel();
        let mut threads = Vec::new();
        for _ in 1..THREADS {
            let (next, inbox) = mpsc::channel();
            let before = std::mem::replace(&mut last, inbox);
            threads.push(thread::spawn(move || pass_on(work, &before, &next)));
        }
        let until = ended.clone();
        let (ready, runs) = mpsc::channel();
        threads.push(thread::spawn(move || {
            lap(work, &first, &last);
            // From one lap's end to the next one's, so that no moment is left out.
            let mut since = Instant::now();
            // Nobody has gone away who waits for it.
            let _ = ready.send(());
            let mut is_over = false;
            while !is_over {
                is_over = until.load(Relaxed);
                if !is_over {
                    lap(work, &first, &last);
                }
                let now = Instant::now();
                tell((now - since).saturating_sub(usual(work)));
                since = now;
            }
        }));
        // It ends early only by a panic, which has been told.
        let _ = runs.recv();
        Probe { ended, threads }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// How many threads there are for each processor that run or could; 1 where that isn't known, or fewer do.
pub(super) fn crowd() -> f64 {
    let counted = || {
        let load = std::fs::read_to_string("/proc/loadavg").ok()?;
        let (runnable, _) = load.split_whitespace().nth(3)?.split_once('/')?;
        runnable.parse::<u32>().ok()
    };
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let processors = u32::try_from(processors).expect("few");
    (f64::from(counted().unwrap_or(0)) / f64::from(processors)).max(1.0)
}

/// What a lap takes where nothing is in its way, or a little more.
fn usual(work: Duration) -> Duration {
    NAP + USUAL + work * u32::try_from(THREADS).expect("few")
}

fn lap(work: Duration, first: &Sender<()>, last: &Receiver<()>) {
    thread::sleep(NAP);
    spin(work);
    // Those in between end after this one.
    first.send(()).expect("the next thread runs");
    last.recv().expect("the last thread runs");
}

fn pass_on(work: Duration, before: &Receiver<()>, next: &Sender<()>) {
    while before.recv().is_ok() {
        spin(work);
        if next.send(()).is_err() {
            return;
        }
    }
}

fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}
