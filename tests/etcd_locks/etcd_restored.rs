//! Servers come back with older data, as after a snapshot was restored: what the data says is true, and nobody hangs.

use std::fs;
use std::process::Command;

use crosslock::{LockGuard, Locker};
use support::Etcd;

use crate::{LONG, PATIENCE, take, wait_for, with};

/// It would wait for itself.
#[test]
fn lock_that_came_back_is_not_kept_by_whoever_released_it() {
    let server = Etcd::start();
    let [data, backup] = ["data", "backup"].map(|name| server.dir().join(name));
    let locker = with(&server, |builder| builder.ttl(LONG));
    let takes: [fn(&Locker) -> LockGuard; 2] = [wait_for, |locker| {
        locker.try_read_for("n", PATIENCE).unwrap().expect("free")
    }];
    for again in takes {
        let guard = take(&locker);
        server.kill();
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").args([&data, &backup]).status();
        assert!(copied.unwrap().success());
        server.restart();
        guard.unlock().unwrap();
        server.kill();
        fs::remove_dir_all(&data).unwrap();
        fs::rename(&backup, &data).unwrap();
        server.restart();
        again(&locker).unlock().unwrap();
        assert!(server.keys("crosslock/n/w/").is_empty());
    }
}
