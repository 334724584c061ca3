//! What the tests run in processes of their own: to be killed, stopped or forked, or to be counted alone.
//!
//! The tests name a role. A puppet takes locks as it is told line by line, a script as it was told at once; the other
//! roles are too much for that.

mod cancels;
#[cfg(feature = "file")]
mod directory;
#[cfg(feature = "file")]
#[path = "../directory/files.rs"]
mod directory_files;
#[cfg(feature = "file")]
mod disks;
mod ending;
mod forks;
mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
mod opening;
mod orders;
mod places;
mod resources;
mod script;
#[cfg(all(feature = "file", feature = "value"))]
mod strace;
#[cfg(feature = "delay")]
mod tasks;
mod telling;
mod tools;
mod waiting;

use std::env;
use std::time::Duration;

use crosslock::Locker;
use support::puppet::{TTL, URL};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const COUNT: &str = "TEST_COUNT";

type Role = (&'static str, fn());

const ROLES: &[Role] = &[
    ("script", || script::play(&arg(support::puppet::SCRIPT))),
    ("puppet", orders::obey),
    ("locks while it ends", ending::lock_while_ending),
    ("closes and exits", ending::close_and_exit),
    ("forks while its threads lock", forks::while_threads_lock),
    ("forks beside a waiter", forks::beside_a_waiter),
    ("forks with idle connections", forks::with_idle_connections),
    ("forks and stops", cancels::stop),
    #[cfg(target_os = "linux")]
    ("forks into a namespace", namespaces::fork_into_one),
    ("forks with an observer", telling::fork_with_an_observer),
    ("opens", opening::open),
    ("opens and logs", telling::open_and_log),
    ("starts no threads", limits::start_no_threads),
    ("waits with its threads", waiting::wait_with_threads),
    #[cfg(all(feature = "file", feature = "value"))]
    ("plays", strace::play),
    ("holds many locks", resources::hold_many),
    ("counts the threads of a loop", resources::loop_and_count),
    (
        "drops while a renewal hangs",
        resources::drop_while_a_renewal_hangs,
    ),
    ("loses its guards", resources::lose_guards),
    #[cfg(feature = "delay")]
    ("works on tasks", tasks::work),
    ("has a child", tools::have_a_child),
    ("sleeps", tools::sleep),
    ("has a server", tools::have_a_server),
    ("measures", tools::measure),
];

#[cfg(not(feature = "file"))]
const ROLES_OF_FILES: &[Role] = &[];
#[cfg(feature = "file")]
const ROLES_OF_FILES: &[Role] = &[
    ("uses idle names", directory::use_idle_names),
    ("opens again and again", directory::open_again_and_again),
    ("exchanges links", directory::exchange_links),
    ("fills its disk", disks::fill_it),
    ("has a line that needs more room", disks::need_more_room),
    ("has a disk that can't be written", disks::write_in_vain),
    ("holds a file", resources::hold_a_file),
];

fn main() {
    let role = support::role().expect("the tests start this program");
    let mut all = ROLES.iter().chain(ROLES_OF_FILES);
    let found = all.find(|(name, _)| *name == role);
    let (_, play) = found.unwrap_or_else(|| panic!("there is no role {role:?}"));
    play();
}

fn arg(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("the test sets {name}"))
}

fn locker() -> Locker {
    // Servers answer, however late on a busy machine.
    let builder = Locker::builder(&arg(URL)).io_timeout(PATIENCE);
    match env::var(TTL) {
        Ok(millis) => builder.ttl(Duration::from_millis(millis.parse().expect("a number"))),
        Err(_) => builder,
    }
    .build()
    .expect("open")
}
