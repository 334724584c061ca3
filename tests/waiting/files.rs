//! `file:`, where waiters sleep at a FIFO of their own until they are told, or one ahead of them has ended.

use std::fs;
use std::path::Path;

use super::*;
use support::puppet::Puppet;

/// Whether a process that waits in this directory is woken by the end of another: it has a door open that isn't its
/// own.
fn watches(process: u32, directory: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    // One that is closed meanwhile watches nothing.
    let path = |entry: fs::DirEntry| fs::read_link(entry.path()).unwrap_or_default();
    let doors = open.map(|entry| path(entry.unwrap()));
    // It has the directory open, too.
    let doors = doors.filter(|path| path.parent() == Some(directory));
    doors.filter(|path| path.extension().is_none()).count() == 2
}

/// How often the threads of a process have gone to sleep, but for those that would renew.
fn sleeps(process: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of = |task: fs::DirEntry| {
        let said = |what| fs::read_to_string(task.path().join(what)).unwrap();
        let status = said("status");
        let (_, sleeps) = status.split_once("\nvoluntary_ctxt_switches:").unwrap();
        let sleeps: u64 = sleeps.lines().next().unwrap().trim().parse().unwrap();
        if said("comm").trim_end() == "crosslock-renew" {
            0
        } else {
            sleeps
        }
    };
    tasks.map(|task| of(task.unwrap())).sum()
}

#[test]
fn untimed_waiter_sleeps_until_the_release() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    let lock = Locker::open(&url).unwrap();
    let guard = lock.lock("a").unwrap();
    let mut process = Puppet::start(&url, LONG);
    process.lock("a");
    wait_until("it to sleep", PATIENCE, || {
        watches(process.pid(), dir.path())
    });
    let before = sleeps(process.pid());
    thread::sleep(millis(500));
    // One look a second, which takes no sleep by itself, and what of the first look isn't over yet.
    let sleeps = sleeps(process.pid()) - before;
    assert!(sleeps <= 2, "it looks again and again: {sleeps}");
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let holding = process.holding();
    assert!(holding.token > token && !holding.abandoned, "{holding:?}");
    assert!(lock.try_lock("a").unwrap().is_none());
    process.unlock();
    assert!(lock.try_lock("a").unwrap().is_some());
}
