//! What Windows answers in its own way. `unix.rs` has the same for Unix systems.

use std::env;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The name that this host has given itself. It may have any character.
pub(crate) fn host_name() -> String {
    let name = env::var_os("COMPUTERNAME").unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The number by which this process knows this thread.
pub(crate) fn thread_number() -> String {
    super::own_thread_number()
}

/// A time that runs on while the machine sleeps. It begins with this process, so no other process knows it.
pub(crate) fn boot() -> Duration {
    /// Ahead of whatever counts as long ago.
    const BEGIN: Duration = Duration::from_secs(1 << 30);
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    // An `Instant` is a count of QueryPerformanceCounter, which includes the time that the machine sleeps.
    BEGIN + BEGAN.get_or_init(Instant::now).elapsed()
}
