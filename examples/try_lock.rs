//! A cron job on several machines, of which one run is enough: who gets the lock does the job, the others skip
//! it without waiting. The lock stays taken for longer than the machines start apart, also when the job is done
//! before: else a late one would do it again. Started again within 10 s, all skip.
//!
//! ```text
//! cargo run --release --example try_lock
//! cargo run --release --example try_lock -- redis://127.0.0.1/
//! ```

use std::env;
use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crosslock::Locker;

const PROCESSES: usize = 5;

/// The processes start this far apart, and the job is done before the last.
const APART: Duration = Duration::from_millis(300);

/// Longer than the clocks and the load of all machines let them start apart, shorter than from one run to the next.
const AT_LEAST: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{}: {e}", std::process::id());
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "file:".into());
    if env::var_os("TRY_LOCK_WORKER").is_some() {
        return job(&url).map(|()| ExitCode::SUCCESS);
    }
    let start = |_| {
        thread::sleep(APART);
        let mut worker = Command::new(env::current_exe()?);
        worker
            .arg(&url)
            .env("TRY_LOCK_WORKER", "1")
            .stdin(Stdio::null())
            .spawn()
    };
    let workers = (0..PROCESSES).map(start).collect::<Result<Vec<_>, _>>()?;
    let mut code = ExitCode::SUCCESS;
    for mut worker in workers {
        if !worker.wait()?.success() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn job(url: &str) -> Result<(), Box<dyn Error>> {
    let process = std::process::id();
    let lock = Locker::open(url)?;
    let Some(guard) = lock.try_lock("nightly-report")? else {
        println!("{process}: somebody else is at it, or did it just now: skipped");
        return Ok(());
    };
    // A run that panics or crashes frees it earlier, for the next to make up for it.
    guard.at_least_for(AT_LEAST);
    if guard.was_abandoned() {
        println!("{process}: the last run didn't finish, cleaning up first");
    }
    println!("{process}: doing the job");
    thread::sleep(Duration::from_millis(500));
    guard.unlock()?;
    println!("{process}: done");
    Ok(())
}
