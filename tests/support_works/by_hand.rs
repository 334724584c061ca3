//! The script that starts servers for trying things out by hand.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::is_running;

#[test]
fn servers_end_with_the_input_and_at_a_signal_even_if_one_stands_still() {
    for (what, scheme, hosts, servers) in [
        ("replicas", "redis://", 1, 3),
        ("sentinel", "redis+sentinel://", 3, 6),
        ("cluster", "redis+cluster://", 6, 6),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/servers.sh"));
        let script = script.arg(what).env("TMPDIR", dir.path());
        let script = script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = script.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines = output.lines().map(Result::unwrap);
        let lines: Vec<_> = lines
            .take_while(|line| line != "Enter stops them.")
            .collect();
        let pids = lines.iter().filter_map(|line| line.split_once("process "));
        let pids: Vec<u32> = pids.map(|(_, pid)| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), servers, "{lines:?}");
        let mut urls = lines.iter().filter_map(|line| line.strip_prefix(scheme));
        let named = urls.next().unwrap().split('/').next().unwrap();
        assert_eq!(named.split(',').count(), hosts, "{lines:?}");
        for host in named.split(',') {
            let client = redis::Client::open(format!("redis://{host}/")).unwrap();
            let mut connection = client.get_connection().unwrap();
            redis::cmd("PING").exec(&mut connection).unwrap();
        }
        let expected = match what {
            "cluster" => {
                let first = Pid::from_raw(pids[0].cast_signed()).unwrap();
                kill_process(first, Signal::STOP).unwrap();
                kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
                143
            }
            _ => 0,
        };
        // Its input ends by the wait.
        assert_eq!(process.wait().unwrap().code(), Some(expected));
        assert!(!pids.into_iter().any(is_running));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
