//! A child that has the process id of its parent: a process in the first place of a PID namespace, and a fork of it in
//! the first place of another.

use std::fs::File;
use std::io::{Read as _, Write as _, pipe};
use std::os::fd::AsFd as _;

use rustix::process::getpid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use support::forked;

use super::forks::assert_succeeds;
use super::*;

#[allow(
    deprecated,
    reason = "the other is unsafe for the sake of file descriptors, which stay shared here"
)]
fn have_children_in_a_new_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWPID).unwrap();
}

/// Each opens its own locker. What the library has drawn ahead for all lockers of a thread must not be used twice.
pub(crate) fn fork_into_one() {
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
