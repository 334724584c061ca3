//! A service that ends in order, by Ctrl-C or SIGTERM: workers that wait for the lock stop waiting at once, the one
//! that has it finishes its step, and all locks are released before the process exits. A second signal doesn't wait for
//! the step.
//!
//! ```text
//! cargo run --release --example shutdown
//! cargo run --release --example shutdown -- redis://127.0.0.1/
//! ```
//!
//! Left alone it sends itself SIGTERM after 3 s.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error as LockError, Locker};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::raise;

const WORKERS: u32 = 4;
const STEP: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("shutdown: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let (locker, stop) = (Locker::open(&url)?, CancelToken::new());
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (cancel, close) = (stop.clone(), locker.clone());
    // Not in a signal handler, where hardly anything is allowed: in a thread that the handler wakes.
    thread::spawn(move || {
        for signal in &mut signals {
            if cancel.is_cancelled() {
                println!("signal {signal} again: all locks are released now");
                close.close();
            } else {
                println!("signal {signal}: stopping");
                cancel.cancel();
            }
        }
    });
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(3));
        raise(SIGTERM)
    });
    thread::scope(|scope| {
        for worker in 1..=WORKERS {
            let (locker, stop) = (locker.with_cancel(&stop), &stop);
            scope.spawn(move || {
                println!("worker {worker} has ended: {}", work(worker, &locker, stop))
            });
        }
    });
    // Whatever is still held or asked for, in other parts of the program too.
    let began = Instant::now();
    locker.close();
    println!("closed after {:?}", began.elapsed());
    Ok(())
}

/// Works until it is told to stop; gives the reason.
fn work(worker: u32, locker: &Locker, stop: &CancelToken) -> String {
    while !stop.is_cancelled() {
        let step = locker.lock("shutdown-example").and_then(|guard| {
            println!("worker {worker} works");
            thread::sleep(STEP);
            // Before what it did takes effect.
            guard.check()?;
            guard.unlock()
        });
        match step {
            Ok(()) => {}
            Err(LockError::Cancelled { .. }) => return "it stopped waiting".into(),
            Err(e) => return e.to_string(),
        }
    }
    "its step is done".into()
}
