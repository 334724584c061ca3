//! Exit statuses.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use support::RedisServer;

use crate::holders::{holder, json};
use crate::tool::{Place, pause};

#[test]
fn commands_status_is_given_or_the_signal_that_ended_it() {
    let place = Place::with_files();
    for code in [0, 1, 3, 75, 255] {
        let done = place.run("a", &format!("exit {code}")).ends(code);
        assert_eq!(done.err, "");
    }
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130)] {
        place.run("a", &format!("kill -{signal} $$")).ends(code);
    }
}

#[test]
fn taken_lock_gives_75_or_what_was_asked_for() {
    let place = Place::with_files();
    let _holder = holder(&place, "a", "never");
    for (args, code) in [
        ("run a -n", 75),
        ("run a -w 50ms", 75),
        ("run a -n -E 9", 9),
        ("run a -n --skip", 0),
        ("run b a -n", 75),
        ("-q run a -n", 75),
    ] {
        let err = place
            .tool(&format!("{args} -- touch entered"))
            .ends(code)
            .err;
        let is_told = code != 0 && !args.starts_with("-q");
        assert_eq!(err.contains("a is taken"), is_told, "{err}");
    }
    assert!(!place.path("entered").exists());
}

#[test]
fn command_that_cant_be_run_gives_what_env_gives() {
    let place = Place::with_files();
    std::fs::write(place.path("file"), "").expect("make a file");
    for (command, code) in [
        ("./nothing", 127),
        ("./file", 126),
        ("no-such-command", 127),
    ] {
        let done = place.tool(&format!("run a -- {command}")).ends(code);
        let text = format!("crosslock: can't run {command}: ");
        assert!(done.err.starts_with(&text), "{}", done.err);
    }
    // It holds nothing afterwards.
    place.tool("run a -n -- true").ends(0);
}

#[test]
fn wrong_usage_gives_64_and_an_advice() {
    const DASHES: &str = "put `--` before the command";
    let place = Place::with_files();
    for (args, advice) in [
        ("", ""),
        ("walk", ""),
        ("run", ""),
        ("run a", ""),
        ("run -- true", ""),
        ("run a --nonsense -- true", ""),
        // What follows the dashes is the command's.
        ("run a --nonsense -- true --json", "error: "),
        ("run a -w soon -- true", ""),
        ("run a b --shared -- true", ""),
        ("run a --shared -p 1/2 -- true", ""),
        ("run a -n -w 1 -- true", ""),
        ("run a --skip -E 3 -- true", ""),
        ("run a -c x -- true", ""),
        ("run a -p 4/3 -- true", ""),
        ("run a --ttl 1s -- true", ""),
        ("run a --signal NONE -- true", ""),
        ("--url carrier-pigeon://roof/ run a -- true", ""),
        ("--url= run a -- true", ""),
        ("--namespace a/b run a -- true", ""),
        ("-q -v run a -- true", ""),
        ("bench --for 11s", ""),
        ("watch --interval 0", ""),
        (
            "run deploy echo hi",
            "command: crosslock run deploy -- echo hi",
        ),
        ("run deploy echo hi", DASHES),
        ("run deploy ls -la", DASHES),
        // No clock can tell such a time.
        ("run a -w 9999999999999999999 -- true", ""),
    ] {
        let done = place.tool(args).ends(64);
        assert!(done.err.contains(advice), "{args}: {}", done.err);
    }
    place.tool("run a --max-run 1000000h -- true").ends(0);
    place.tool("--version").ends(0);
}

#[test]
fn wrong_usage_is_json_for_programs() {
    let place = Place::with_files();
    for args in [
        "--json walk",
        "run --json a --nonsense -- true",
        "--json run a",
        "-q --json run a -w soon -- true",
    ] {
        let told = json(&place.tool(args).ends(64).err);
        let expected = (&"failed".into(), &64.into());
        assert_eq!((&told["event"], &told["status"]), expected);
        assert!(!told["reason"].as_str().expect("a text").is_empty());
    }
}

#[test]
fn wrong_arguments_steer_no_terminal_when_they_are_repeated() {
    let place = Place::with_files();
    let odd = "a\x1b[2J\u{202e}";
    for args in [
        &[odd][..],
        &["ls", "a", odd],
        &["run", "a", "--ttl", odd],
        &["completions", odd],
    ] {
        let err = place.tool_with(args).ends(64).err;
        assert!(err.contains(r"a\u{1b}[2J\u{202e}"), "{err:?}");
        assert!(!err.contains(['\x1b', '\u{202e}']), "{err:?}");
    }
}

#[test]
fn server_that_is_gone_or_refuses_has_its_status_and_no_password_is_shown() {
    let server = RedisServer::builder()
        .acl(&["user few on >hunter2 ~* +ping"])
        .start();
    let takes = ["run a -n -- true", "-v run a -n -- true"];
    let looks = ["ls", "show a", "break --yes a"];
    for user in ["few:hunter2", "few:hunter22"] {
        let place = Place::with_locks_at(&server.url_as(user));
        for args in takes.iter().chain(&looks) {
            let done = place.tool(args).ends(77);
            assert!(!done.err.contains("hunter2"), "{}", done.err);
        }
    }
    let place = Place::with_locks_at(&server.url_as("few:hunter2"));
    drop(server);
    let more = ["--json run a -n -- true", "test a"];
    let unbounded = ["watch", "doctor", "bench"];
    for args in takes.iter().chain(&looks).chain(&more).chain(&unbounded) {
        let done = place.tool(args).ends(69);
        assert!(!done.err.contains("hunter2"), "{}", done.err);
        let is_plain = done.err.contains("crosslock: ");
        assert!(is_plain || args.starts_with("--json"), "{}", done.err);
    }
}

#[test]
fn command_that_runs_too_long_gives_124() {
    let place = Place::with_files();
    place.run("a --max-run 200ms", "sleep 60").ends(124);
    // The letters are those of timeout(1).
    for (kill_after, signal) in [("--kill-after", "--signal"), ("-k", "-s")] {
        // One that ignores the signal is killed.
        let options = format!("a --max-run 200ms {kill_after} 200ms");
        let script = "trap : TERM; while :; do sleep 0.05; done";
        let done = place.run(&options, script).ends(124);
        assert!(
            done.err.contains("ran longer than --max-run"),
            "{}",
            done.err
        );
        // The signal can be chosen, and the command can clean up.
        let script = "trap 'echo clean; exit 0' INT; while :; do sleep 0.05; done";
        let options = format!("a --max-run 500ms {signal} INT");
        let done = place.run(&options, script).ends(124);
        assert_eq!(done.out, "clean\n", "{}", done.err);
    }
    place.run("a --max-run 60s", "exit 3").ends(3);
}

/// A default in place of one that a pipeline left empty, or that is no text, would be locks that exclude nobody; and
/// each process has a memory of its own.
#[test]
fn no_command_runs_under_a_lock_that_nobody_sees() {
    let no_text = b"redis://host\xff/";
    for url in [&no_text[..], b"", b"memory:", b"memory:shared"] {
        let place = Place::with_files();
        let mut tool = place.tool("run a -- touch entered");
        tool.command.env("CROSSLOCK_URL", OsStr::from_bytes(url));
        let err = tool.ends(64).err;
        assert_eq!(err.contains("isn't UTF-8"), url == no_text, "{err}");
        assert!(!place.path("entered").exists());
    }
}

/// As an outage later does, also while the locker is opened.
#[test]
fn wait_goes_on_through_an_outage_at_its_beginning() {
    let (server, place) = Place::with_server();
    server.kill();
    let verbs = [
        "run a -w 30s -- true",
        "run a -- true",
        "wait a -w 30s",
        "wait a",
    ];
    let tools = verbs.map(|args| place.tool(args).start());
    pause(300);
    server.restart();
    for tool in tools {
        tool.ends(0);
    }
    server.kill();
    // Nobody knows whether the lock is taken.
    for args in [
        "run a -n -- true",
        "run a -w 300ms -- true",
        "wait a -w 300ms",
    ] {
        place.tool(args).ends(69);
    }
    // A signal ends such a wait, too.
    let tool = place.tool("run a -- true").start();
    pause(300);
    tool.signal(rustix::process::Signal::TERM);
    tool.ends(143);
}

/// Both may believe that they exclude each other.
#[test]
fn locks_of_one_user_are_told_where_another_has_some_too() {
    if !rustix::process::geteuid().is_root() {
        println!("left out: only root can make a directory of another user");
        return;
    }
    let user = 3_000_000_000 + std::process::id();
    let directory = format!("/tmp/crosslock-{user}");
    std::fs::create_dir(&directory).expect("make a directory");
    std::os::unix::fs::chown(&directory, Some(user), Some(user)).expect("give it away");
    let place = Place::with_files();
    let said = |options: &str| {
        let mut tool = place.tool(&format!("{options}run hint-{user} -- true"));
        tool.command.env_remove("CROSSLOCK_URL");
        tool.ends(0).err
    };
    let said = ["", "--url file: ", "-q "].map(said);
    std::fs::remove_dir(&directory).expect("remove the directory");
    assert!(
        said[0].contains("only commands of this user"),
        "{}",
        said[0]
    );
    assert_eq!(said[1..], ["", ""]);
}
