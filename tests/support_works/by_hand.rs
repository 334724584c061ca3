//! The script that starts servers for trying things out by hand.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Wire, is_running};

/// The running script. Its input ends with the test, so that it always ends.
struct Script {
    process: Child,
    /// Where it writes.
    dir: TempDir,
    url: String,
    servers: Vec<u32>,
}

impl Script {
    /// Runs it until its servers are there.
    fn run(what: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/servers.sh"))
            .arg(what)
            .env("TMPDIR", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines = output.lines().map(Result::unwrap);
        let lines: Vec<_> = lines
            .take_while(|line| line != "Enter stops them.")
            .collect();
        let told = |line: &String| line.split_once("process ")?.1.parse().ok();
        Script {
            process,
            dir,
            url: lines
                .iter()
                .find(|line| line.contains("://"))
                .cloned()
                .expect("a URL"),
            servers: lines.iter().filter_map(told).collect(),
        }
    }

    /// Whether every host of the URL answers; returns how many there are.
    fn ping(&self) -> usize {
        let hosts = self.url.split_once("://").unwrap().1;
        let hosts: Vec<_> = hosts.split('/').next().unwrap().split(',').collect();
        for host in &hosts {
            let addr: SocketAddr = host.parse().unwrap();
            let mut wire = Wire(TcpStream::connect(addr).unwrap());
            assert_eq!(wire.ask(&["PING"]), "+PONG");
        }
        hosts.len()
    }

    /// Waits until it has ended, and sees that nothing is left; returns its status as the shell tells it.
    fn end(mut self) -> Option<i32> {
        let status = self.process.wait().unwrap();
        assert!(!self.servers.iter().any(|pid| is_running(*pid)));
        assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 0);
        status.code()
    }
}

#[test]
fn replicas_end_at_enter() {
    let mut script = Script::run("replicas");
    assert!(script.url.starts_with("redis://") && script.url.ends_with("/?min_replicas=1"));
    assert_eq!((script.ping(), script.servers.len()), (1, 3));
    script
        .process
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"\n")
        .unwrap();
    assert_eq!(script.end(), Some(0));
}

#[test]
fn sentinels_end_with_the_input() {
    let mut script = Script::run("sentinel");
    assert!(script.url.starts_with("redis+sentinel://") && script.url.ends_with("/mymaster"));
    assert_eq!((script.ping(), script.servers.len()), (3, 6));
    script.process.stdin = None;
    assert_eq!(script.end(), Some(0));
}

#[test]
fn cluster_ends_at_a_signal_even_if_a_server_stands_still() {
    let script = Script::run("cluster");
    assert!(script.url.starts_with("redis+cluster://"));
    assert_eq!((script.ping(), script.servers.len()), (6, 6));
    let first = i32::try_from(script.servers[0]).unwrap();
    kill_process(Pid::from_raw(first).unwrap(), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&script.process), Signal::TERM).unwrap();
    assert_eq!(script.end(), Some(143));
}
