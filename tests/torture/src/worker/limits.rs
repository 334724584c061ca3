//! What a process has to do without for a while, and what it leaves at the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use fork::Fork;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

use crate::history::{Event, History};
use support::{eventually, say, sockets, threads_named};

/// Leaves this process no new descriptors, or threads, for a time: `threads exhausted: milliseconds`. Without threads
/// it is for so long that somebody is refused.
pub(super) fn exhaust(order: &str, refused: &AtomicU64) {
    let (what, millis) = order.split_once(": ").expect("an order");
    let time = Duration::from_millis(millis.parse().expect("a number"));
    let (resource, few) = match what {
        "threads exhausted" => (Resource::Nproc, 0),
        _ => (Resource::Nofile, 4),
    };
    let before = getrlimit(resource);
    let limited = Rlimit {
        current: Some(few),
        ..before
    };
    refused.store(0, Relaxed);
    setrlimit(resource, limited).expect("less is always allowed");
    say("exhausted");
    thread::sleep(time);
    if resource == Resource::Nproc {
        eventually(Duration::from_secs(2), || refused.load(Relaxed) > 0);
    }
    setrlimit(resource, before).expect("it was allowed before");
    say(&format!("refused {}", refused.load(Relaxed)));
}

/// Forks off a child that does nothing, and ends by itself if nobody ends it before.
pub(super) fn fork_off() {
    const MOST: Duration = Duration::from_secs(5);
    match fork::fork() {
        Ok(Fork::Parent(pid)) => say(&format!("forked {pid}")),
        Ok(Fork::Child) => {
            thread::sleep(MOST);
            // Nothing of what it has copies of may be cleaned up by it.
            let _ = kill_process(getpid(), Signal::KILL);
        }
        Err(error) => panic!("{error}"),
    }
}

/// How soon they end is another test's: here it matters whether they do.
pub(super) fn tell_what_is_left(history: &History, sockets_before: usize) {
    let mut left = (0, 0);
    let gone = eventually(Duration::from_secs(10), || {
        left = (threads_named("crosslock-"), sockets());
        left == (0, sockets_before)
    });
    if !gone {
        let (threads, sockets) = left;
        let detail =
            format!("{threads} threads, and {sockets} sockets instead of {sockets_before}");
        history.tell(&Event {
            detail,
            ..Event::now("left")
        });
    }
}
