//! What becomes of the command when the tool dies.

use rustix::process::{Pid, Signal, kill_process};
use support::{children, wait_until};

use crate::PATIENCE;
use crate::holders::{BEAT, BEAT_BELOW, BEAT_ON, end};
use crate::tool::{Place, Running, is_running};

/// The kernel frees the lock of a dead process before it kills the process's children.
#[test]
fn next_one_enters_when_the_command_of_a_killed_tool_is_dead() {
    let place = Place::with_files();
    for round in 1..=10 {
        let script = [BEAT, BEAT_ON, BEAT_BELOW][round % 3];
        let mut first = place.run("a", script).start();
        place.wait_for_beats_of(2 * round - 1);
        let mut second = place.run("a", BEAT).start();
        first.kill();
        place.wait_for_beats_of(2 * round);
        second.kill();
    }
    place.assert_that_none_ran_beside_another();
}

#[test]
fn command_dies_also_when_tool_and_watchdog_are_killed() {
    let place = Place::with_files();
    let mut tool = place.run("a", "echo $$ > pid; sleep 60").start();
    let command = place.wait_for("pid");
    // Stopped, so that it can't start another.
    tool.signal(Signal::STOP);
    kill_process(watchdog(&tool), Signal::KILL).expect("kill the watchdog");
    tool.kill();
    wait_until("the command to be dead", PATIENCE, || !is_running(&command));
}

#[test]
fn watchdog_that_was_killed_is_replaced() {
    let (_server, place) = Place::with_server();
    let tool = place.run("a --ttl 2s --kill-after 200ms", BEAT_BELOW);
    let mut tool = tool.start();
    place.wait_for_beats_of(1);
    let first = watchdog(&tool);
    kill_process(first, Signal::KILL).expect("kill the watchdog");
    wait_until("another watchdog", PATIENCE, || watchdog(&tool) != first);
    place.wait_for_more_beats(5);
    tool.kill();
    wait_until("the command to be dead", PATIENCE, || place.is_silent());
}

#[test]
fn command_that_inherits_the_lock_outlives_the_tool() {
    let place = Place::with_files();
    let script = "echo > runs; while ! test -e end; do sleep 0.02; done; echo > done";
    let mut tool = place.run("a --inherit", script).start();
    place.wait_for("runs");
    tool.kill();
    place.tool("run a -n -- true").ends(75);
    end(&place, "end");
    place.wait_for("done");
    place.tool("run a -- true").ends(0);
}

#[test]
fn only_locks_in_files_can_be_inherited() {
    let (_server, place) = Place::with_server();
    let err = place.tool("run a --inherit -- true").ends(64).err;
    assert!(err.contains("--inherit works only with file:"), "{err}");
    place.tool("run a -n -- true").ends(0);
}

#[test]
fn what_inherited_the_lock_keeps_it_behind_the_command() {
    let place = Place::with_files();
    // The command's own 76 isn't the one that says that the lock is lost.
    for status in [3, 76] {
        let end = format!("end-{status}");
        let script = format!(
            "(echo > runs; while ! test -e {end}; do sleep 0.02; done) > /dev/null & exit {status}"
        );
        place.run("a --inherit", &script).ends(status);
        place.wait_for("runs");
        place.tool("run a -n -- true").ends(75);
        self::end(&place, &end);
        place.tool("run a -- true").ends(0);
    }
}

fn watchdog(tool: &Running) -> Pid {
    let mut found = None;
    wait_until("a watchdog", PATIENCE, || {
        let mut children = children(tool.pid()).into_iter();
        found = children.find(|(_, line)| line.contains("__watch"));
        found.is_some()
    });
    found.expect("there is one").0
}

/// As if the tool had been stopped, since it took the lock, for longer than the lease: then nobody is there to kill it.
#[test]
fn command_whose_time_is_over_is_not_started() {
    let place = Place::with_files();
    let inner = ["__exec", "0", "1", "text", "touch", "entered"];
    let done = place.tool_with(&inner).ends(76);
    assert!(done.err.contains("the lock was lost"), "{}", done.err);
    assert!(!place.path("entered").exists());
}
