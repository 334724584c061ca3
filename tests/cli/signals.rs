//! Signals that the tool gets: they end a wait, or are the command's.

use std::process::Command;

use rustix::process::Signal;
use support::{RedisServer, children, wait_until};

use crate::PATIENCE;
use crate::holders::holder;
use crate::tool::{Place, Running, wait_until_state};

const FORWARDED: [(Signal, &str, i32); 6] = [
    (Signal::TERM, "TERM", 143),
    (Signal::INT, "INT", 130),
    (Signal::HUP, "HUP", 129),
    (Signal::QUIT, "QUIT", 131),
    (Signal::USR1, "USR1", 138),
    (Signal::USR2, "USR2", 140),
];

#[test]
fn each_is_forwarded_to_the_command_and_ends_one_that_doesnt_heed_it() {
    for (signal, name, code) in FORWARDED {
        let place = Place::with_files();
        let script = format!(
            "trap 'echo got {name}; exit 7' {name}; echo > runs; while :; do sleep 0.02; done"
        );
        let tool = place.run("a", &script).start();
        place.wait_for("runs");
        tool.signal(signal);
        assert_eq!(tool.ends(7).out, format!("got {name}\n"));

        let tool = place.run("a", "ulimit -c 0; exec sleep 60").start();
        wait_for_sleep(&tool);
        tool.signal(signal);
        tool.ends(code);
    }
}

#[test]
fn second_one_is_forwarded_too_and_grandchildren_get_it() {
    let place = Place::with_files();
    let script = "n=0; trap 'n=$((n+1)); echo $n; echo $n > n$n; test $n = 2 && exit 0' TERM; \
                  echo > runs; while :; do sleep 0.02; done";
    let tool = place.run("a", script).start();
    place.wait_for("runs");
    tool.signal(Signal::TERM);
    place.wait_for("n1");
    tool.signal(Signal::TERM);
    assert_eq!(tool.done().out, "1\n2\n");

    let script = "trap : USR1; sh -c 'trap \"echo below; exit\" USR1; echo > below; \
                  while :; do sleep 0.02; done' & wait; wait";
    let tool = place.run("a", script).start();
    place.wait_for("below");
    tool.signal(Signal::USR1);
    assert_eq!(tool.done().out, "below\n");
}

#[test]
fn each_ends_the_wait() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        let holder = holder(&place, "a", "never");
        for (signal, _, code) in FORWARDED {
            let waits = ["-v", "run", "a", "--", "sh", "-c", "echo > entered"];
            let tool = place.tool_with(&waits).start();
            tool.wait_for_err("waiting for lock");
            tool.signal(signal);
            tool.ends(code);
        }
        assert!(!place.path("entered").exists());
        drop(holder);
        // Nobody stands in the line any more.
        place.run("a -w 30s", "true").ends(0);
    }
}

/// The command starts nothing: a shell whose child is stopped between vfork and exec can't stop.
#[test]
fn tool_and_command_stop_and_go_on_together() {
    let place = Place::with_files();
    let tool = place.run("a", "echo $$ > pid; exec sleep 60").start();
    let command = place.wait_for("pid");
    wait_for_sleep(&tool);
    tool.signal(Signal::TSTP);
    wait_until_state(&command, "T");
    tool.signal(Signal::CONT);
    wait_until_state(&command, "S");
    tool.signal(Signal::TERM);
    tool.ends(143);
}

#[track_caller]
fn wait_for_sleep(tool: &Running) {
    wait_until("the command to sleep", PATIENCE, || {
        let mut commands = children(tool.pid()).into_iter();
        commands.any(|(_, line)| line.starts_with("sleep"))
    });
}

/// As in a container, where nobody else would.
#[test]
fn first_process_reaps_what_others_leave() {
    if !rustix::process::geteuid().is_root() {
        println!("left out: only root can make a namespace");
        return;
    }
    let place = Place::with_files();
    let script = "sh -c 'sleep 0.1 & exit 0'
        sleep 0.3
        for n in $(seq 500); do
            grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null || { echo none; exit 0; }
            sleep 0.02
        done
        echo zombies";
    let mut tool = place.run("a", script);
    let program = std::mem::replace(&mut tool.command, Command::new("unshare"));
    let unshare = tool
        .command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    unshare.arg(program.get_program()).args(program.get_args());
    unshare.env("CROSSLOCK_URL", place.url());
    let done = tool.ends(0);
    assert_eq!(done.out, "none\n", "{}", done.err);
}
