//! Stops and continues a process, and sees from `/proc` that it has obeyed.

use std::fs;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wait_until;

const OBEYS_WITHIN: Duration = Duration::from_secs(10);

/// Sends SIGSTOP and waits until all threads of the process have stopped.
pub(crate) fn stop(child: &Child) {
    send(child, Signal::STOP);
    wait_until("a process to stop", OBEYS_WITHIN, || {
        thread_states(child.id()).iter().all(|state| *state == 'T')
    });
}

pub(crate) fn is_stopped(child: &Child) -> bool {
    thread_states(child.id()).contains(&'T')
}

/// Sends SIGCONT and waits until no thread of the process is stopped.
pub(crate) fn cont(child: &Child) {
    send(child, Signal::CONT);
    wait_until("a process to continue", OBEYS_WITHIN, || {
        !thread_states(child.id()).contains(&'T')
    });
}

/// Kills the process at once, stopped or not, and reaps it; does nothing if it was reaped before.
pub(crate) fn kill(child: &mut Child) {
    // Both fail only for a process that has been reaped.
    let _ = child.kill();
    let _ = child.wait();
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signal a child");
}

fn thread_states(pid: u32) -> Vec<char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process is alive");
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
        .filter_map(|stat| state(&stat))
        .collect()
}

/// Returns the state in a `stat` line, the first field after the name; the name may itself hold a bracket.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}
