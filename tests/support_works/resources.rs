//! Resources.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;

use super::*;
use support::{
    Child, is_child, open_files_under, resident_bytes, sockets, threads_named, wait_until,
};

#[test]
fn resources_are_counted() {
    // Alone in a process, because other tests open things as well.
    let mut child = Child::spawn("resources::child_counting_resources", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_counting_resources() {
    if !is_child("resources::child_counting_resources") {
        return;
    }
    let before = sockets();
    let pair = UnixStream::pair().unwrap();
    assert_eq!(sockets(), before + 2);
    drop(pair);
    assert_eq!(sockets(), before);

    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("file")).unwrap();
    assert_eq!(open_files_under(dir.path()), 1);
    drop(file);
    assert_eq!(open_files_under(dir.path()), 0);

    let (sender, receiver) = mpsc::channel::<()>();
    let named = thread::Builder::new().name("crosslock-renewal".into());
    let handle = named.spawn(move || receiver.recv()).unwrap();
    wait_until("the thread's name", PATIENCE, || {
        threads_named("crosslock-renew") == 1
    });
    assert_eq!(threads_named("crosslock-renewal"), 1);
    drop(sender);
    handle.join().unwrap().unwrap_err();
    wait_until("the thread's end", PATIENCE, || {
        threads_named("crosslock") == 0
    });

    let before = resident_bytes();
    let memory = vec![1_u8; 64 << 20];
    assert!(resident_bytes() >= before + (60 << 20), "{}", memory.len());
}
