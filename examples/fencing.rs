//! What a lock with a lease can't prevent, and what does: a holder stalls past the end of its lease, another
//! takes over, and the first one's late write is refused because its fencing token is older. That works for exclusive
//! holders: readers, and holders of permits, have different tokens at the same time.
//!
//! ```text
//! cargo run --release --example fencing
//! cargo run --release --example fencing -- redis://127.0.0.1/
//! ```

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crosslock::{Locker, Result};

const TTL: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fencing: {e}");
            if let Some(cause) = e.source() {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let url = env::args().nth(1).unwrap_or_else(|| "memory:".into());
    // Without renewal, so that a stall of a second is enough; with it, only a process that stands still would do.
    let lock = Locker::builder(&url).ttl(TTL).renew(false).build()?;
    let store = Store::default();

    let slow = lock.lock("report")?;
    println!(
        "slow   has the lock, token {}, and stalls",
        slow.fencing_token()
    );
    thread::scope(|scope| {
        let fast = scope.spawn(|| -> Result<()> {
            let fast = lock.lock("report")?; // waits until the lease of the other has run out
            println!("fast   has the lock, token {}", fast.fencing_token());
            println!(
                "fast   the holder before never released: {}",
                fast.was_abandoned()
            );
            store.write("fast", fast.fencing_token(), "written by fast");
            fast.unlock()
        });
        fast.join().expect("no panic")
    })?;
    // It could ask `slow.is_held()` first, but a stall may come right after that.
    store.write("slow", slow.fencing_token(), "written by slow");
    println!("slow   {}", slow.unlock().expect_err("its lease is over"));
    println!("stored \"{}\"", store.text());
    Ok(())
}

/// What the lock protects: it remembers the largest token that it has seen.
#[derive(Default)]
struct Store(Mutex<(u64, String)>);

impl Store {
    fn write(&self, who: &str, token: u64, text: &str) {
        let mut stored = self.0.lock().expect("no panic");
        if token < stored.0 {
            println!(
                "store  refuses {who}: token {token} is older than {}",
                stored.0
            );
            return;
        }
        println!("store  accepts {who}: token {token}");
        *stored = (token, text.to_owned());
    }

    fn text(&self) -> String {
        self.0.lock().expect("no panic").1.clone()
    }
}
