//! Servers and children end with who has started them, whatever way that ends.

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use support::{Child, Etcd, wait_until};

#[test]
fn server_of_a_panicking_test_leaves_nothing() {
    let panic = catch_unwind(|| {
        let (redis, etcd) = (RedisServer::start(), Etcd::start());
        let both = [
            (redis.pid(), redis.dir().to_owned()),
            (etcd.pid(), etcd.dir().to_owned()),
        ];
        std::panic::panic_any(both);
    });
    let both = panic.unwrap_err().downcast::<[(u32, PathBuf); 2]>();
    for (pid, dir) in *both.unwrap() {
        assert!(!is_running(pid) && !dir.exists(), "{}", dir.display());
    }
}

#[test]
fn server_dies_with_the_process_that_started_it() {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return;
    }
    // Nobody is left to remove the server's directory but this test.
    let dir = tempfile::tempdir().unwrap();
    let mut child = Child::spawn("has a server", &[("TMPDIR", dir.path().to_str().unwrap())]);
    let pid = child.wait_for("server", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    child.kill();
    wait_until("the server to die", PATIENCE, || !is_running(pid));
}

/// Also one that is stopped.
#[test]
fn child_dies_with_its_parent() {
    let mut parent = Child::spawn("has a child", &[]);
    let pid = parent.wait_for("grandchild", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    parent.stop();
    drop(parent);
    wait_until("the grandchild to die", PATIENCE, || !is_running(pid));
}
