//! A thousand waiters.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::*;
use support::{Child, wait_until};

const LOG: &str = "TEST_LOG";
const PROCESSES: usize = 20;
/// Of each, as the helper has it.
const THREADS: usize = 50;

#[test]
fn thousand_waiters_are_served_once_each_in_the_order_in_which_their_processes_came() {
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    let log = elsewhere.path().join("log");
    fs::write(&log, "").unwrap();
    let (url, lock) = (url(directory.path()), open(directory.path()));
    let guard = lock.lock("a").unwrap();
    let args = [(URL, url.as_str()), (LOG, log.to_str().unwrap())];
    let started = Instant::now();
    let start = |_| Child::spawn("waits in many threads", &args);
    let mut children: Vec<_> = (0..PROCESSES).map(start).collect();
    for (number, child) in children.iter_mut().enumerate() {
        child.wait_for("ready", PATIENCE);
        child.tell("come");
        let expected = THREADS * (number + 1);
        wait_until("a line", PATIENCE, || {
            lock.inspect("a").unwrap().waiters.len() == expected
        });
    }
    let in_line = started.elapsed();
    guard.unlock().unwrap();
    for child in &mut children {
        child.wait_for("served", 4 * PATIENCE);
    }
    let served = started.elapsed() - in_line;
    println!("in line after {in_line:.1?}, served in {served:.1?}");
    check(&log, &children);
    drop((children, lock));
    assert_only_files_of(directory.path(), &["a"]);
}

fn check(log: &Path, children: &[Child]) {
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| line.split_once(' ').unwrap());
    let served: Vec<(u32, u64)> = lines
        .map(|(pid, token)| (pid.parse().unwrap(), token.parse().unwrap()))
        .collect();
    let pids: Vec<u32> = served.iter().map(|(pid, _)| *pid).collect();
    let expected: Vec<u32> = children
        .iter()
        .flat_map(|child| [child.pid(); THREADS])
        .collect();
    assert_eq!(pids, expected);
    assert!(served.is_sorted_by(|(_, a), (_, b)| a < b), "{served:?}");
}
