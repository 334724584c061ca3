//! Exit statuses.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use support::RedisServer;

use crate::holders::holder;
use crate::tool::Place;

#[test]
fn commands_status_is_given() {
    let place = Place::with_files();
    for code in [0, 1, 3, 75, 255] {
        let done = place.run("a", &format!("exit {code}")).ends(code);
        assert_eq!(done.err, "");
    }
}

#[test]
fn command_that_a_signal_ended_gives_128_and_the_signal() {
    let place = Place::with_files();
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130)] {
        let script = format!("kill -{signal} $$");
        place.run("a", &script).ends(code);
    }
}

#[test]
fn taken_lock_gives_75_or_what_was_asked_for() {
    let place = Place::with_files();
    let holder = holder(&place, "a", "never");
    for (options, expected) in [
        ("-n", 75),
        ("-w 50ms", 75),
        ("-n -E 9", 9),
        ("-n --skip", 0),
    ] {
        let done = place
            .tool(&format!("run a {options} -- touch entered"))
            .ends(expected);
        assert_eq!(
            done.err.contains("a is taken"),
            expected != 0,
            "{}",
            done.err
        );
    }
    assert!(!place.path("entered").exists());
    place.tool("run b a -n -- true").ends(75);
    place.tool("-q run a -n -- true").ends(75);
    drop(holder);
}

#[test]
fn command_that_cant_be_run_gives_what_env_gives() {
    let place = Place::with_files();
    std::fs::write(place.path("file"), "").expect("make a file");
    for (command, expected) in [
        ("./nothing", 127),
        ("./file", 126),
        ("no-such-command", 127),
    ] {
        let done = place.tool(&format!("run a -- {command}")).ends(expected);
        let text = format!("crosslock: can't run {command}: ");
        assert!(done.err.starts_with(&text), "{}", done.err);
    }
    // It holds nothing afterwards.
    place.tool("run a -n -- true").ends(0);
}

#[test]
fn wrong_usage_gives_64() {
    let place = Place::with_files();
    for args in [
        "",
        "walk",
        "run",
        "run a",
        "run -- true",
        "run a --nonsense -- true",
        "run a -w soon -- true",
        "run a b --shared -- true",
        "run a -p 4/3 -- true",
        "run a --ttl 1s -- true",
        "run a --signal NONE -- true",
        "--url carrier-pigeon://roof/ run a -- true",
        "--namespace a/b run a -- true",
        "-q -v run a -- true",
    ] {
        place.tool(args).ends(64);
    }
    place.tool("--help").ends(0);
    place.tool("--version").ends(0);
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
        let done = place.tool_with(args).ends(64);
        let is_escaped = done.err.contains(r"a\u{1b}[2J\u{202e}");
        assert!(
            is_escaped && !done.err.contains(['\x1b', '\u{202e}']),
            "{:?}",
            done.err
        );
    }
}

#[test]
fn server_that_cant_be_reached_gives_69_and_its_password_isnt_shown() {
    let server = RedisServer::start();
    let url = server.url_as("user:hunter2");
    server.kill();
    let place = Place::with_locks_at(&url);
    for args in [
        "run a -n -- true",
        "-v run a -n -- true",
        "--json run a -n -- true",
        "test a",
    ] {
        let done = place.tool(args).ends(69);
        assert!(!done.err.contains("hunter2"), "{}", done.err);
    }
}

#[test]
fn server_that_refuses_the_user_gives_77() {
    let server = RedisServer::builder().password("right").start();
    let place = Place::with_locks_at(&server.url_as(":wrong"));
    let done = place.tool("run a -n -- true").ends(77);
    assert!(!done.err.contains("wrong"), "{}", done.err);
}

#[test]
fn command_that_runs_too_long_gives_124() {
    let place = Place::with_files();
    place.run("a --max-run 200ms", "sleep 60").ends(124);
    // One that ignores the signal is killed. The letters are those of timeout(1).
    for kill_after in ["--kill-after", "-k"] {
        let options = format!("a --max-run 200ms {kill_after} 200ms");
        let script = "trap : TERM; while :; do sleep 0.05; done";
        let done = place.run(&options, script).ends(124);
        assert!(done.err.contains("has run for too long"), "{}", done.err);
    }
    // The signal can be chosen, and the command can clean up.
    for signal in ["--signal", "-s"] {
        let script = "trap 'echo clean; exit 0' INT; while :; do sleep 0.05; done";
        let options = format!("a --max-run 500ms {signal} INT");
        let done = place.run(&options, script).done();
        assert_eq!((done.code(), &*done.out), (124, "clean\n"), "{}", done.err);
    }
    place.run("a --max-run 60s", "exit 3").ends(3);
}

/// A default in place of one that a pipeline left empty, or that is no text, would be locks that exclude nobody; and
/// each process has a memory of its own.
#[test]
fn no_command_runs_under_a_lock_that_nobody_sees() {
    let no_text = OsStr::from_bytes(b"redis://host\xff/");
    for url in [
        no_text,
        "".as_ref(),
        "memory:".as_ref(),
        "memory:shared".as_ref(),
    ] {
        let place = Place::with_files();
        let mut tool = place.tool("run a -- touch entered");
        tool.command.env("CROSSLOCK_URL", url);
        let done = tool.ends(64);
        assert_eq!(
            done.err.contains("isn't UTF-8"),
            url == no_text,
            "{}",
            done.err
        );
        assert!(!place.path("entered").exists());
    }
    Place::with_files().tool("--url= run a -- true").ends(64);
}

#[test]
fn time_that_no_clock_can_tell_is_refused() {
    let place = Place::with_files();
    for option in ["-w", "--ttl", "--kill-after", "--max-run", "--at-least"] {
        place
            .tool(&format!("run a {option} 9999999999999999999 -- true"))
            .ends(64);
    }
    place.tool("run a --max-run 1000000h -- true").ends(0);
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
    crate::tool::pause(300);
    server.restart();
    for tool in tools {
        tool.ends(0);
    }
    server.kill();
    for options in ["run a -n -- true", "run a -w 300ms -- true"] {
        place.tool(options).ends(69);
    }
    // A signal ends such a wait, too.
    let tool = place.tool("run a -- true").start();
    crate::tool::pause(300);
    tool.signal(rustix::process::Signal::TERM);
    tool.ends(143);
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
        let done = place.tool(args).ends(64);
        let told: serde_json::Value =
            serde_json::from_str(&done.err).unwrap_or_else(|e| panic!("{args}: {e}: {}", done.err));
        assert_eq!(
            (&told["event"], &told["status"]),
            (&"failed".into(), &64.into())
        );
        assert!(!told["reason"].as_str().expect("a text").is_empty());
    }
    // Those of the command are its own.
    let done = place.tool("run a --nonsense -- true --json").done();
    assert!(done.err.starts_with("error: "), "{}", done.err);
}

#[test]
fn command_without_dashes_is_told_where_they_belong() {
    let place = Place::with_files();
    let done = place.tool("run deploy echo hi").ends(64);
    let advice = "put `--` before the command: crosslock run deploy -- echo hi";
    assert!(done.err.contains(advice), "{}", done.err);
    let done = place.tool("run deploy ls -la").ends(64);
    assert!(
        done.err.contains("put `--` before the command"),
        "{}",
        done.err
    );
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
    let name = format!("hint-{user}");
    let place = Place::with_files();
    let said = |args: &str| {
        let mut tool = place.tool(args);
        tool.command.env_remove("CROSSLOCK_URL");
        tool.ends(0).err
    };
    let hint = said(&format!("run {name} -- true"));
    let meant = said(&format!("--url file: run {name} -- true"));
    let quiet = said(&format!("-q run {name} -- true"));
    std::fs::remove_dir(&directory).expect("remove the directory");
    assert!(hint.contains("this user alone"), "{hint}");
    assert_eq!((&*meant, &*quiet), ("", ""));
}
