//! A job that takes longer than the lease: a thread of the guard renews it, and the job stops as soon as the
//! lock is known to be lost.
//!
//! ```text
//! cargo run --release --example long_job
//! cargo run --release --example long_job -- redis://127.0.0.1/
//! ```
//!
//! On Redis, delete the key while it runs (`redis-cli del '{crosslock:long-job}'`): the job stops within a third
//! of the ttl. Left alone it ends by the cap that it sets itself with `max_hold`.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crosslock::crossbeam_channel::{select, tick};
use crosslock::{Locker, Result};

const TTL: Duration = Duration::from_millis(600);
const MAX_HOLD: Duration = Duration::from_secs(4);
const STEP: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("long_job: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let url = env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let lock = Locker::builder(&url).ttl(TTL).max_hold(MAX_HOLD).build()?;
    let guard = lock.lock("long-job")?;
    let (start, steps) = (Instant::now(), tick(STEP));
    println!("locked for {TTL:?} at a time, renewed for {MAX_HOLD:?}");
    loop {
        select! {
            recv(steps) -> _ => {
                // A step that must not run without the lock asks first; it is no I/O.
                guard.check()?;
                println!("{:>6.1?}  a step done, {:?} left", start.elapsed(), guard.remaining());
            }
            recv(guard.lost()) -> lost => {
                let why = lost.map_or_else(|e| e.to_string(), |lost| lost.reason.to_string());
                println!("{:>6.1?}  stopped: {why}", start.elapsed());
                break;
            }
        }
    }
    Ok(())
}
