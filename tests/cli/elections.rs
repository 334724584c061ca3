//! `elect` and `leader`.

use rustix::process::Signal;
use support::{RedisServer, wait_until};

use crate::PATIENCE;
use crate::holders::{BEAT_ON, end, json, pid, wait_for_waiters};
use crate::tool::{Place, Running};

/// Campaigns. Its command writes its token into `began-<label>`, and runs until there is a file `end-<label>`.
fn candidate(place: &Place, label: &str) -> Running {
    let options = format!("a --ttl 4s --kill-after 300ms --label {label} --publish at-{label}");
    let script = format!(
        "echo $CROSSLOCK_TOKEN > began-{label}; while ! test -e end-{label}; do sleep 0.02; done"
    );
    place.elect(&options, &script).start()
}

/// Whether the one that leads is that candidate, as its command and `leader` say.
#[track_caller]
fn assert_leads(place: &Place, candidate: &Running, label: &str) {
    let token = place.wait_for(&format!("began-{label}"));
    let shown = place.tool("leader a").ends(0).out;
    let columns: Vec<_> = shown.trim_end().split('\t').collect();
    let [who, labelled, since, shown_token, value] = columns[..] else {
        panic!("{shown}");
    };
    assert!(who.ends_with(&format!("/{}", pid(candidate))), "{shown}");
    assert!(since.ends_with('Z'), "{shown}");
    let expected = (label, token.trim(), format!("at-{label}"));
    assert_eq!((labelled, shown_token, value.to_owned()), expected);
}

#[test]
fn next_one_leads_when_the_leader_ends_or_is_killed() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        let one = candidate(&place, "one");
        assert_leads(&place, &one, "one");
        let mut two = candidate(&place, "two");
        wait_for_waiters(&place, "a", 1);
        assert_eq!(place.read("began-two"), "");
        place.tool("elect a -n -- true").ends(75);
        end(&place, "end-one");
        one.ends(0);
        assert_leads(&place, &two, "two");
        let three = candidate(&place, "three");
        wait_for_waiters(&place, "a", 1);
        assert_eq!(place.read("began-three"), "");
        two.kill();
        assert_leads(&place, &three, "three");
        end(&place, "end-three");
        three.ends(0);
    }
}

#[test]
fn nobody_who_leads_is_a_status_of_1() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        let assert_nobody = || {
            let done = place.tool("leader a").ends(1);
            let expected = ("", "crosslock: nobody leads a\n");
            assert_eq!((&*done.out, &*done.err), expected);
        };
        assert_nobody();
        let one = candidate(&place, "one");
        place.wait_for("began-one");
        let told = json(&place.tool("--json leader a").ends(0).out);
        let leader = &told["leader"];
        assert_eq!(
            (&told["name"], &leader["pid"]),
            (&"a".into(), &pid(&one).into())
        );
        assert_eq!(
            (&leader["label"], &leader["value"]),
            (&"one".into(), &"at-one".into())
        );
        end(&place, "end-one");
        one.ends(0);
        assert_nobody();
    }
}

#[test]
fn changes_are_followed_in_their_order() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        let lines = place.tool("leader a --follow").start();
        let objects = place.tool("--json leader a -f").start();
        let both_end_with = |value: &str, leader: &str| {
            let (line, object) = (
                format!("\t{value}\n"),
                format!("{leader},\"name\":\"a\"}}\n"),
            );
            wait_until(value, PATIENCE, || {
                lines.out().ends_with(&line) && objects.out().ends_with(&object)
            });
        };
        both_end_with("-", "null");
        let one = candidate(&place, "one");
        both_end_with("at-one", "\"at-one\"}");
        let two = candidate(&place, "two");
        wait_for_waiters(&place, "a", 1);
        end(&place, "end-one");
        both_end_with("at-two", "\"at-two\"}");
        end(&place, "end-two");
        both_end_with("-", "null");
        lines.signal(Signal::INT);
        let lines = lines.ends(0).out;
        let labels = lines.lines().filter_map(|line| line.split('\t').nth(1));
        // Between the two there may be a moment without a leader.
        let mut labels: Vec<_> = labels.filter(|label| *label != "-").collect();
        labels.dedup();
        assert_eq!(labels, ["one", "two"], "{lines}");
        objects.signal(Signal::TERM);
        let objects = objects.ends(143).out;
        let pids = objects
            .lines()
            .map(|line| json(line)["leader"]["pid"].as_u64());
        let mut pids: Vec<_> = pids.flatten().collect();
        pids.dedup();
        let [one, two] = [one, two].map(|it| u64::from(pid(&it)));
        assert_eq!(pids, [one, two], "{objects}");
    }
}

#[test]
fn lost_leadership_stops_the_command() {
    let (_server, place) = Place::with_server();
    let leader = place
        .elect("a --ttl 4s --kill-after 300ms", BEAT_ON)
        .start();
    place.wait_for_beats_of(1);
    place.tool("break --yes a").ends(0);
    let done = leader.ends(76);
    assert!(done.err.contains("somebody broke it"), "{}", done.err);
    assert!(place.is_silent());
    place.tool("leader a").ends(1);
}

#[test]
fn what_makes_no_sense_for_an_election_is_refused() {
    let place = Place::with_files();
    for args in ["a b", "a --shared", "a -p 1/2", "a --inherit"] {
        place.tool(&format!("elect {args} -- true")).ends(64);
    }
    place.tool("run a --publish x -- true").ends(64);
    let done = place.tool("elect a true").ends(64);
    assert!(
        done.err.contains("crosslock elect NAME -- COMMAND"),
        "{}",
        done.err
    );
    let done = place.tool("elect a").ends(64);
    assert!(
        done.err.contains("crosslock elect a -- COMMAND"),
        "{}",
        done.err
    );
}
