//! What a command gets: its lock, its arguments, its input.

use std::process::Command;

use crate::holders::{holder, json};
use crate::tool::{Place, heeding_signals, program};

#[test]
fn command_sees_name_and_a_token_that_grows() {
    let place = Place::with_files();
    let done = place.run("deploy", "env").done();
    let value = |name: &str| done.out.lines().find_map(|line| line.strip_prefix(name));
    assert_eq!(value("CROSSLOCK_NAME="), Some("deploy"), "{}", done.out);
    assert!(value("CROSSLOCK_TOKEN=").is_some(), "{}", done.out);
    let done = place.run("from to", "echo $CROSSLOCK_NAME").done();
    assert_eq!(done.out, "from to\n");
    let token = || {
        let done = place.run("a", "echo $CROSSLOCK_TOKEN").done();
        done.out.trim().parse::<u64>().expect("a number")
    };
    assert!(token() < token());
}

/// Without the variable, what runs inside would take its locks in the user's directory.
#[test]
fn program_inside_the_program_has_its_locks_at_the_same_place() {
    let place = Place::with_files();
    let inner = format!("{} run a -n -- touch entered; echo $?", program());
    let done = place.run("a", &inner).done();
    assert_eq!(done.out, "75\n", "{}", done.err);
    assert!(!place.path("entered").exists());
    // A URL on the command line is for that command alone.
    let elsewhere = format!("--url=file://{}/other", place.dir().display());
    let script = "echo $CROSSLOCK_URL";
    let args = [&*elsewhere, "run", "a", "--", "sh", "-c", script];
    let done = place.tool_with(&args).done();
    assert_eq!(done.out, format!("{}\n", place.url()));
}

#[test]
fn arguments_input_and_the_shell_of_a_string() {
    let place = Place::with_files();
    let args = "run|a|--|printf|%s,|-n|--json|two words|--|";
    let args: Vec<_> = args.split('|').collect();
    let done = place.tool_with(&args).done();
    assert_eq!(done.out, "-n,--json,two words,--,,");
    let done = place.tool("run a -- cat").input(b"by the pipe").done();
    assert_eq!(done.out, "by the pipe");
    let mut tool = place.tool_with(&["run", "a", "-c", "echo $0 | tr a-z A-Z; exit 4"]);
    tool.command.env("SHELL", "/bin/sh");
    assert_eq!(tool.ends(4).out, "/BIN/SH\n");
}

/// Rust programs ignore SIGPIPE for themselves, which a program needs whose reader has gone.
#[test]
fn command_has_the_signals_that_it_has_without_the_tool() {
    const MASKS: &str = "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status";
    let place = Place::with_files();
    let mut plain = heeding_signals("sh");
    let plain = plain.args(["-c", MASKS]).output().expect("run the shell");
    let done = place.run("a", MASKS).done();
    assert_eq!(done.out, String::from_utf8_lossy(&plain.stdout));
}

/// That is how nohup works.
#[test]
fn ignored_signal_stays_ignored() {
    let place = Place::with_files();
    let program = program();
    let script = format!(
        "trap '' HUP; exec {program} run a -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'"
    );
    let mut tool = place.tool("");
    tool.command = Command::new("sh");
    tool.command.args(["-c", &script]);
    tool.command.env("CROSSLOCK_URL", place.url());
    let done = tool.ends(0);
    assert_eq!(done.out, "alive\n", "{}", done.err);
}

#[test]
fn lock_is_free_when_the_command_has_ended_unless_it_is_kept_for_longer() {
    let place = Place::with_files();
    let script = format!("{} test a; echo $?", program());
    let done = place.run("a", &script).done();
    assert_eq!(done.out, "1\n", "{}", done.err);
    place.tool("test a").ends(0);
    place.tool("run a --at-least 1h -- true").ends(0);
    place.tool("run a -n -- true").ends(75);
}

#[test]
fn readers_share_and_permits_are_counted() {
    let (_server, place) = Place::with_server();
    let _reader = holder(&place, "a --shared", "never");
    place.tool("run a --shared -n -- true").ends(0);
    place.tool("run a -n -- true").ends(75);
    let _worker = holder(&place, "b -p 1/2", "never");
    place.tool("run b -p 1/2 -n -- true").ends(0);
    place.tool("run b -p 2/2 -n -- true").ends(75);
}

#[test]
fn json_tells_what_happened_on_standard_error() {
    let place = Place::with_files();
    let done = place.run("a --max-run 200ms", "echo out; sleep 60").done();
    assert_eq!(done.out, "out\n");
    let done = place
        .tool("--json run a --max-run 200ms -- sleep 60")
        .done();
    let events: Vec<_> = done.err.lines().map(json).collect();
    let names: Vec<_> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["acquired", "max_run", "ended"], "{}", done.err);
    assert!(events[0]["token"].is_u64());
    assert_eq!(events[2]["status"], 124);
}

#[test]
fn verbose_tells_what_the_library_logs_and_quiet_nothing() {
    let place = Place::with_files();
    let _holder = holder(&place, "a", "never");
    let done = place.tool("-v run a -w 50ms -- true").ends(75);
    assert!(done.err.contains("crosslock: debug: "), "{}", done.err);
    let done = place.tool("-q run a -w 50ms -- true").ends(75);
    assert_eq!(done.err, "");
}
