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

/// What the command has left behind in its group ignores the signal, and holds no lock.
const LEFT_BEHIND: &str =
    "(trap '' TERM; while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done) & wait";

/// A command, how its lock is lost, and what is said then.
type Way = (&'static str, fn(&RedisServer), &'static str);

#[test]
fn lost_lock_stops_the_command_and_its_group() {
    let ways: [Way; 3] = [
        (LEFT_BEHIND, delete, "the lock is lost"),
        (BEAT_ON, break_it, "somebody broke it"),
        (BEAT_ON, |server| server.kill(), "can't renew the lock"),
    ];
    for (script, lose, reason) in ways {
        let (server, place) = Place::with_server();
        let tool = place.run(SHORT, script).start();
        place.wait_for_beats_of(1);
        let watch = Stopwatch::start();
        lose(&server);
        let done = tool.ends(76);
        watch.assert_within(Duration::from_secs(4));
        assert!(done.err.contains(reason), "{}", done.err);
        assert!(place.is_silent());
    }
}

fn delete(server: &RedisServer) {
    assert_eq!(server.query::<u64>(&["DEL", KEY]), 1);
}

fn break_it(server: &RedisServer) {
    let locker = crosslock::Locker::open(&server.url()).expect("open a locker");
    let broken = locker.break_lock("a").expect("break the lock");
    assert_eq!(broken.len(), 1);
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

/// The first one's connection answers no more, and the server keeps its lease till the end.
#[test]
fn command_is_dead_before_its_lease_can_have_ended() {
    for script in [BEAT, BEAT_ON, BEAT_BELOW] {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.addr());
        let place = Place::with_locks_at(&server.url());
        let mut first = place.run(SHORT, script);
        first.command.env("CROSSLOCK_URL", proxy.url());
        let first = first.start();
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
fn command_can_clean_up_while_the_lock_is_still_its_own() {
    let (server, place) = Place::with_server();
    let script = "trap 'sleep 1; echo clean; exit' TERM; echo > runs; while :; do sleep 0.05; done";
    let tool = place.run("a --ttl 6s --kill-after 3s", script).start();
    place.wait_for("runs");
    server.kill();
    let done = tool.ends(76);
    assert_eq!(done.out, "clean\n", "{}", done.err);
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
    let left = || server.pttl(KEY);
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
fn reader_who_does_not_read_keeps_no_command_alive() {
    let (server, place) = Place::with_server();
    let (_reader, writer) = std::io::pipe().expect("make a pipe");
    fill(&writer);
    // A whole lease would be longer than the test waits.
    let mut tool = place.run("a --ttl 60s --kill-after 300ms", BEAT_ON);
    tool.command.stderr(writer);
    let mut process = tool.command.spawn().expect("start the tool");
    place.wait_for_beats_of(1);
    break_it(&server);
    let mut status = None;
    wait_until("the tool to end", PATIENCE, || {
        status = process.try_wait().expect("wait for the tool");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(76));
    assert!(place.is_silent());
}

fn fill(mut pipe: &std::io::PipeWriter) {
    rustix::io::ioctl_fionbio(pipe, true).expect("don't block");
    for size in [4096, 1] {
        while pipe.write(&[b'x'; 4096][..size]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(pipe, false).expect("block");
}
