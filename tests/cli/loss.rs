//! A command whose lock is lost, or can't be renewed, is stopped before another enters.

use std::io::Write;
use std::time::Duration;

use rustix::process::Signal;
use support::{Fault, Proxy, RedisServer, Stopwatch, wait_until};

use crate::PATIENCE;
use crate::holders::{BEAT, BEAT_BELOW, BEAT_ON, end, holder};
use crate::tool::Place;

const KEY: &str = "{crosslock:a}";

/// A lease of which the last 700 ms are for stopping, and the last 200 ms for a machine that is late.
const SHORT: &str = "a --ttl 4s --kill-after 300ms";

#[test]
fn command_runs_longer_than_a_ttl() {
    let (_server, place) = Place::with_server();
    let done = place.run(SHORT, "sleep 9; echo whole").done();
    assert_eq!((done.code(), &*done.out), (0, "whole\n"), "{}", done.err);
}

#[test]
fn deleted_key_stops_the_command() {
    let (server, place) = Place::with_server();
    let script = "trap 'echo told; exit 0' TERM; echo > runs; while :; do sleep 0.05; done";
    // A shell of a busy machine needs its time to heed a signal.
    let tool = place.run("a --ttl 12s --kill-after 5s", script).start();
    place.wait_for("runs");
    let keys = server.keys();
    assert!(keys.iter().any(|key| key == KEY), "{keys:?}");
    let _: u64 = server.query(&["DEL", KEY]);
    let done = tool.done();
    assert_eq!((done.code(), &*done.out), (76, "told\n"), "{}", done.err);
    assert!(done.err.contains("the lock is lost"), "{}", done.err);
}

#[test]
fn broken_lock_stops_the_command() {
    let (server, place) = Place::with_server();
    let tool = place.run(SHORT, BEAT_ON).start();
    place.wait_for_beats_of(1);
    let locker = crosslock::Locker::open(&server.url()).expect("open a locker");
    let broken = locker.break_lock("a").expect("break the lock");
    assert_eq!(broken.len(), 1);
    let done = tool.ends(76);
    assert!(done.err.contains("somebody broke it"), "{}", done.err);
    assert!(place.is_silent());
}

/// The first one's connection answers no more, and the server keeps its lease till the end.
#[test]
fn command_is_dead_before_its_lease_can_have_ended() {
    for script in [BEAT, BEAT_ON, BEAT_BELOW] {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.addr());
        let place = Place::with_locks_at(&server.url());
        let args = ["--url", &proxy.url(), "run"];
        let args: Vec<_> = args
            .into_iter()
            .chain(SHORT.split(' '))
            .chain(["--", "sh", "-c", script])
            .collect();
        let first = place.tool_with(&args).start();
        place.wait_for_beats_of(1);
        let second = place.run(SHORT, BEAT).start();
        place.wait_for_more_beats(5);
        proxy.set(Fault::BlackHole);
        place.wait_for_beats_of(2);
        place.wait_for_more_beats(5);
        first.ends(76);
        drop(second);
        place.assert_that_none_ran_beside_another();
    }
}

#[test]
fn server_that_is_gone_stops_the_command_in_time() {
    let (server, place) = Place::with_server();
    let tool = place.run(SHORT, BEAT_ON).start();
    place.wait_for_beats_of(1);
    let watch = Stopwatch::start();
    server.kill();
    let done = tool.ends(76);
    assert!(done.err.contains("can't be renewed"), "{}", done.err);
    watch.assert_within(Duration::from_secs(4));
    assert!(place.is_silent());
}

#[test]
fn command_can_clean_up_while_the_lock_is_still_its_own() {
    let (server, place) = Place::with_server();
    let script = "trap 'sleep 1; echo clean; exit' TERM; echo > runs; while :; do sleep 0.05; done";
    let tool = place.run("a --ttl 6s --kill-after 3s", script).start();
    place.wait_for("runs");
    server.kill();
    let done = tool.done();
    assert_eq!((done.code(), &*done.out), (76, "clean\n"), "{}", done.err);
}

#[test]
fn short_outage_stops_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let place = Place::with_locks_at(&proxy.url());
    let tool = holder(&place, "a --ttl 10s --kill-after 1s", "end");
    let accepted = proxy.accepted();
    proxy.set(Fault::Refuse);
    wait_until("a renewal to fail", PATIENCE, || {
        proxy.accepted() > accepted
    });
    let left = || server.query::<i64>(&["PTTL", KEY]);
    let before = left();
    proxy.set(Fault::None);
    wait_until("a renewal", PATIENCE, || left() > before);
    end(&place, "end");
    tool.ends(0);
}

#[test]
fn tool_that_is_stopped_past_its_lease_lets_no_two_commands_run() {
    for script in [BEAT, BEAT_ON, BEAT_BELOW] {
        let (_server, place) = Place::with_server();
        let first = place.run(SHORT, script).start();
        place.wait_for_beats_of(1);
        let second = place.run(SHORT, BEAT).start();
        place.wait_for_more_beats(5);
        first.signal(Signal::STOP);
        place.wait_for_beats_of(2);
        place.wait_for_more_beats(5);
        first.signal(Signal::CONT);
        first.ends(76);
        place.wait_for_more_beats(5);
        drop(second);
        place.assert_that_none_ran_beside_another();
    }
}

#[test]
fn tool_that_is_stopped_for_a_short_time_goes_on() {
    let (_server, place) = Place::with_server();
    let tool = holder(&place, "a --ttl 20s", "end");
    tool.signal(Signal::STOP);
    crate::tool::pause(500);
    tool.signal(Signal::CONT);
    crate::tool::pause(500);
    end(&place, "end");
    tool.ends(0);
}

/// What the command has left behind in its group holds no lock, and is stopped only with the command.
#[test]
fn whole_group_dies_when_the_command_ends_by_the_signal() {
    let (server, place) = Place::with_server();
    let script =
        "(trap '' TERM; while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done) & wait";
    let tool = place.run(SHORT, script).start();
    place.wait_for_beats_of(1);
    let _: u64 = server.query(&["DEL", KEY]);
    tool.ends(76);
    assert!(place.is_silent());
}

#[test]
fn removed_file_stops_the_command() {
    let place = Place::with_files();
    let tool = place.run(SHORT, BEAT).start();
    place.wait_for_beats_of(1);
    for file in std::fs::read_dir(place.path("locks")).expect("the directory is there") {
        std::fs::remove_file(file.expect("an entry").path()).expect("remove it");
    }
    tool.ends(76);
    wait_until("the command to be dead", PATIENCE, || place.is_silent());
}

/// Nobody reads what the command writes, so it blocks, but not the tool.
#[test]
fn full_pipe_doesnt_keep_the_tool_from_its_work() {
    let (server, place) = Place::with_server();
    let mut tool = place.run(SHORT, "echo > runs; cat /dev/zero; echo never > ended");
    tool.command.stdout(std::process::Stdio::piped());
    let mut process = tool.command.spawn().expect("start the tool");
    place.wait_for("runs");
    crate::tool::pause(6_000);
    assert!(process.try_wait().expect("wait for it").is_none());
    assert!(server.keys().iter().any(|key| key == KEY));
    let _: u64 = server.query(&["DEL", KEY]);
    assert_lost(process);
    assert!(!place.path("ended").exists());
}

#[test]
fn reader_who_does_not_read_keeps_no_command_alive() {
    let (server, place) = Place::with_server();
    let (_reader, writer) = std::io::pipe().expect("make a pipe");
    fill(&writer);
    // A whole lease would be longer than the test waits.
    let mut tool = place.run("a --ttl 60s --kill-after 300ms", BEAT_ON);
    tool.command.stderr(writer);
    let process = tool.command.spawn().expect("start the tool");
    place.wait_for_beats_of(1);
    let locker = crosslock::Locker::open(&server.url()).expect("open a locker");
    locker.break_lock("a").expect("break the lock");
    assert_lost(process);
    assert!(place.is_silent());
}

#[track_caller]
fn assert_lost(mut tool: std::process::Child) {
    let mut status = None;
    wait_until("the tool to end", PATIENCE, || {
        status = tool.try_wait().expect("wait for the tool");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(76));
}

/// Writes until nothing more fits in.
fn fill(mut pipe: &std::io::PipeWriter) {
    rustix::io::ioctl_fionbio(pipe, true).expect("don't block");
    for size in [4096, 1] {
        while pipe.write(&[b'x'; 4096][..size]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(pipe, false).expect("block");
}
