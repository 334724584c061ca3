//! The command that `crosslock run` runs: it writes down all the time that it lives.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::history::{COMMANDS, History, Mode, What, now};

const DIR: &str = "TORTURE_COMMAND_DIR";
const TTL: &str = "TORTURE_COMMAND_TTL_NS";
/// The shell leads the command's group, and SIGTERM ends neither it nor its child: only SIGKILL to the whole group
/// does.
const BELOW_A_SHELL: &str = "trap '' TERM; \"$@\"; exit";
const BEAT: Duration = Duration::from_millis(3);

/// Has `run` run the command, which is `program`, under leases of this ttl; its own arguments are ended by that.
pub(crate) fn give(run: &mut Command, program: &Path, dir: &Path, ttl: Duration) {
    run.args(["--", "sh", "-c", BELOW_A_SHELL, "sh"])
        .arg(program)
        .env(DIR, dir)
        .env(TTL, ttl.as_nanos().to_string());
}

pub fn run() {
    let arg = |name| env::var(name).expect("crosslock, or who runs it, sets it");
    let number = |name| arg(name).parse::<u64>().expect("a number");
    let (pid, name) = (std::process::id(), arg("CROSSLOCK_NAME"));
    let dir = PathBuf::from(arg(DIR));
    let history = History::open(&dir, &format!("command-{pid}"), COMMANDS).expect("write history");
    let (mode, token, begun) = (Mode::Command, number("CROSSLOCK_TOKEN"), now());
    let until = begun;
    history.tell_at(begun, pid, &name, What::Held { mode, token, until });
    // So long that its lease ends before if it isn't renewed.
    let end = begun + fastrand::u64(5..=7) * number(TTL) / 2;
    loop {
        let until = now();
        history.tell_at(until, pid, &name, What::Valid { until });
        if until >= end {
            return;
        }
        thread::sleep(BEAT);
    }
}
