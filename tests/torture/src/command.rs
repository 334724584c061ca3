//! The command that `crosslock run` runs: it writes down all the time that it lives.
//!
//! It is what the lock is for, so each line is a look at a lock that is held. It knows nothing of its lease.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::history::{Event, History, PROGRAM};

const DIR: &str = "TORTURE_COMMAND_DIR";
const MILLIS: &str = "TORTURE_COMMAND_MS";
/// The shell leads the command's group, and SIGTERM ends neither it nor its child: only SIGKILL to the whole group
/// does. What it is told last is the number of its parent.
const BELOW_A_SHELL: &str = "trap '' TERM; \"$@\" $PPID; exit";
/// How often it writes.
const BEAT: Duration = Duration::from_millis(3);
/// The calls of workers have numbers below this.
const FIRST_ID: u64 = 1 << 62;

/// Has `run` run the command for so long, as whose arguments its own are ended.
pub(crate) fn give(run: &mut Command, dir: &Path, time: Duration) {
    let own = env::current_exe().expect("a program knows its file");
    run.args(["--", "sh", "-c", BELOW_A_SHELL, "sh"])
        .arg(own)
        .env(DIR, dir)
        .env(MILLIS, time.as_millis().to_string());
}

pub(crate) fn is_command() -> bool {
    env::var_os(DIR).is_some()
}

pub(crate) fn run() {
    let arg = |name| env::var(name).expect("crosslock, or who runs it, sets it");
    let number = |name| arg(name).parse::<u64>().expect("a number");
    let pid = env::args().next_back().and_then(|pid| pid.parse().ok());
    let token = number("CROSSLOCK_TOKEN");
    let of = Event {
        process: PROGRAM,
        pid: pid.expect("the shell tells it"),
        id: FIRST_ID | token,
        token,
        name: arg("CROSSLOCK_NAME"),
        ..Event::default()
    };
    let file = format!("command-{}.jsonl", std::process::id());
    let history = History::open(&PathBuf::from(arg(DIR)), &file, PROGRAM);
    let history = history.expect("write history");
    let tell = |op: &str, outcome: &str| {
        let now = Event::now(op);
        history.tell(&Event {
            until: now.at,
            outcome: outcome.to_owned(),
            at: now.at,
            op: now.op,
            ..of.clone()
        });
        now.at
    };
    let end = tell("answer", "held") + number(MILLIS) * 1_000_000;
    while tell("look", "") < end {
        thread::sleep(BEAT);
    }
}
