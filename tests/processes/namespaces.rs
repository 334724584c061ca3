//! A child that has the process id of its parent: a process in the first place of a PID namespace, and a fork of it in the
//! first place of another.

use std::fs::File;
use std::io::{Read as _, Write as _, pipe};
use std::os::fd::AsFd as _;
use std::process::Command;

use rustix::process::{geteuid, getpid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use support::forked;

use super::forks::assert_succeeds;
use super::*;

/// As [`support::is_child`] says it; the parent can't be seen from in there.
const ENTRY: &str = "CROSSLOCK_CHILD";

#[allow(
    deprecated,
    reason = "the other is unsafe for the sake of file descriptors, which stay shared here"
)]
fn have_children_in_a_new_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWPID).unwrap();
}

/// Each opens its own locker. What the library has drawn ahead for all lockers of a thread must not be used twice.
#[test]
fn child_forks_into_a_namespace() {
    let entry = "namespaces::child_forks_into_a_namespace";
    if !env::var(ENTRY).is_ok_and(|chosen| chosen == entry) {
        return;
    }
    assert_eq!(getpid().as_raw_nonzero().get(), 1);
    let own = File::open("/proc/self/ns/pid").unwrap();
    locker().lock("warm").unwrap().unlock().unwrap();
    let (mut told, mut tell) = pipe().unwrap();
    let (mut ended, end) = pipe().unwrap();
    let mut end = Some(end);
    have_children_in_a_new_namespace();
    let child = forked(|| {
        assert_eq!(getpid().as_raw_nonzero().get(), 1);
        let guard = locker().try_lock("a").unwrap().expect("nobody has it");
        tell.write_all(&[1]).unwrap();
        // Until the parent closes its copy.
        drop(end.take());
        let _ = ended.read(&mut [0]);
        guard.unlock().unwrap();
    });
    // Threads of this process begin again.
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::ProcessID)).unwrap();
    told.read_exact(&mut [0]).unwrap();
    assert!(locker().try_lock("a").unwrap().is_none(), "both have it");
    drop(end);
    assert_succeeds(child);
}

fn excludes_itself_in_another_namespace(url: &str) {
    if !geteuid().is_root() {
        println!("left out: only root can make a namespace");
        return;
    }
    let entry = "namespaces::child_forks_into_a_namespace";
    let run = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", entry, "--nocapture", "--test-threads=1"])
        .env(ENTRY, entry)
        .env(URL, url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}\n{errors}");
}

#[cfg(feature = "file")]
#[test]
fn fork_with_the_same_process_id_is_another_on_files() {
    let dir = temp_dir();
    excludes_itself_in_another_namespace(&file_url(&dir));
}

#[cfg(feature = "redis")]
#[test]
fn fork_with_the_same_process_id_is_another_on_redis() {
    let server = support::RedisServer::start();
    excludes_itself_in_another_namespace(&server.url());
}
