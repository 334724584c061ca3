//! What a command gets: its lock, its arguments, its input.

use std::process::Command;

use crate::holders::holder;
use crate::tool::{Place, heeding_signals, program};

#[test]
fn command_sees_name_and_token() {
    let place = Place::with_files();
    let done = place.run("deploy", "env").done();
    let has = |line: &str| done.out.lines().any(|one| one.starts_with(line));
    assert!(has("CROSSLOCK_NAME=deploy"), "{}", done.out);
    assert!(has("CROSSLOCK_TOKEN="), "{}", done.out);
    let done = place.run("from to", "echo $CROSSLOCK_NAME").done();
    assert_eq!(done.out, "from to\n");
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
fn later_command_has_a_larger_token() {
    let place = Place::with_files();
    let token = || {
        let done = place.run("a", "echo $CROSSLOCK_TOKEN").done();
        done.out.trim().parse::<u64>().expect("a number")
    };
    assert!(token() < token());
}

#[test]
fn arguments_and_input_pass_through() {
    let place = Place::with_files();
    let args = [
        "run",
        "a",
        "--",
        "printf",
        "%s|",
        "-n",
        "--json",
        "two words",
        "--",
        "",
    ];
    assert_eq!(
        place.tool_with(&args).done().out,
        "-n|--json|two words|--||"
    );
    let done = place.tool("run a -- cat").input(b"by the pipe").done();
    assert_eq!(done.out, "by the pipe");
}

#[test]
fn shell_runs_a_string() {
    let place = Place::with_files();
    let args = ["run", "a", "-c", "echo $0 | tr a-z A-Z; exit 4"];
    let done = place.tool_with(&args).env("SHELL", "/bin/sh").done();
    assert_eq!((done.code(), &*done.out), (4, "/BIN/SH\n"));
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
    tool.command = {
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .env("CROSSLOCK_URL", format!("file://{}", place.dir().display()));
        command
    };
    let done = tool.done();
    assert_eq!((done.code(), &*done.out), (0, "alive\n"), "{}", done.err);
}

#[test]
fn lock_is_free_when_the_command_has_ended_and_not_before() {
    let place = Place::with_files();
    let script = format!("{} test a; echo $?", program());
    let done = place.run("a", &script).done();
    assert_eq!(done.out, "1\n", "{}", done.err);
    place.tool("test a").ends(0);
}

#[test]
fn lock_is_kept_for_as_long_as_asked() {
    let place = Place::with_files();
    place.tool("run a --at-least 1h -- true").ends(0);
    place.tool("run a -n -- true").ends(75);
}

#[test]
fn readers_share_and_permits_are_counted() {
    let (_server, place) = Place::with_server();
    let reader = place.run("a --shared", "echo > reads; sleep 60").start();
    place.wait_for("reads");
    place.tool("run a --shared -n -- true").ends(0);
    place.tool("run a -n -- true").ends(75);
    let worker = place.run("b -p 1/2", "echo > works; sleep 60").start();
    place.wait_for("works");
    place.tool("run b -p 1/2 -n -- true").ends(0);
    place.tool("run b -p 2/2 -n -- true").ends(75);
    drop((reader, worker));
}

#[test]
fn json_tells_what_happened_on_standard_error() {
    let place = Place::with_files();
    let done = place.run("a --max-run 200ms", "echo out; sleep 60").done();
    assert_eq!(done.out, "out\n");
    let args = [
        "--json",
        "run",
        "a",
        "--max-run",
        "200ms",
        "--",
        "sleep",
        "60",
    ];
    let done = place.tool_with(&args).done();
    let events: Vec<serde_json::Value> = done
        .err
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str()).collect();
    assert_eq!(
        names,
        [Some("acquired"), Some("max_run"), Some("ended")],
        "{}",
        done.err
    );
    assert!(events[0]["token"].is_u64());
    assert_eq!(events[2]["status"], 124);
}

#[test]
fn verbose_tells_what_the_library_logs_and_quiet_nothing() {
    let place = Place::with_files();
    let holder = holder(&place, "a", "never");
    let done = place.tool("-v run a -w 50ms -- true").done();
    assert!(done.err.contains("crosslock: debug: "), "{}", done.err);
    let done = place.tool("-q run a -w 50ms -- true").done();
    assert_eq!((done.code(), &*done.err), (75, ""));
    drop(holder);
}
