//! `elect` and `leader`.

use rustix::process::Signal;
use support::{RedisServer, wait_until};

use crate::PATIENCE;
use crate::holders::{end, json, pid, wait_for_waiters};
use crate::tool::{Place, Running};

/// Campaigns. Its command writes its token into `began-<label>`, and runs until there is a file `end-<label>`.
fn candidate(place: &Place, label: &str) -> Running {
    let options = format!("a --ttl 4s --kill-after 300ms --label {label} --publish at-{label}");
    let script = format!(
        "echo $CROSSLOCK_TOKEN > began-{label}; while ! test -e end-{label}; do sleep 0.02; done"
    );
    place.elect(&options, &script).start()
}

fn waiting(place: &Place, label: &str) -> Running {
    let candidate = candidate(place, label);
    wait_for_waiters(place, "a", 1);
    assert_eq!(place.read(&format!("began-{label}")), "");
    candidate
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
    let told = json(&place.tool("--json leader a").ends(0).out);
    let leader = &told["leader"];
    assert_eq!(
        (&told["name"], &leader["label"]),
        (&"a".into(), &label.into())
    );
    assert_eq!(leader["pid"], pid(candidate));
}

#[track_caller]
fn assert_nobody_leads(place: &Place) {
    let done = place.tool("leader a").ends(1);
    let expected = ("", "crosslock: nobody leads a\n");
    assert_eq!((&*done.out, &*done.err), expected);
}

#[test]
fn next_one_leads_when_the_leader_ends_or_is_killed_and_who_follows_is_told() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        assert_nobody_leads(&place);
        let lines = place.tool("leader a --follow").start();
        let objects = place.tool("--json leader a -f").start();
        let both_end_with = |value: &str, leader: &str| {
            let line = format!("\t{value}\n");
            let object = format!("{leader},\"name\":\"a\"}}\n");
            wait_until(value, PATIENCE, || {
                lines.out().ends_with(&line) && objects.out().ends_with(&object)
            });
        };
        both_end_with("-", "null");
        let one = candidate(&place, "one");
        assert_leads(&place, &one, "one");
        both_end_with("at-one", "\"at-one\"}");
        let mut two = waiting(&place, "two");
        place.tool("elect a -n -- true").ends(75);
        end(&place, "end-one");
        one.ends(0);
        assert_leads(&place, &two, "two");
        both_end_with("at-two", "\"at-two\"}");
        let three = waiting(&place, "three");
        two.kill();
        assert_leads(&place, &three, "three");
        both_end_with("at-three", "\"at-three\"}");
        end(&place, "end-three");
        three.ends(0);
        both_end_with("-", "null");
        assert_nobody_leads(&place);
        lines.signal(Signal::INT);
        let lines = lines.ends(0).out;
        let labels = lines.lines().filter_map(|line| line.split('\t').nth(1));
        // Between two there may be a moment without a leader.
        let mut labels: Vec<_> = labels.filter(|label| *label != "-").collect();
        labels.dedup();
        assert_eq!(labels, ["one", "two", "three"], "{lines}");
        objects.signal(Signal::TERM);
        objects.ends(143);
    }
}

#[test]
fn what_makes_no_sense_for_an_election_is_refused() {
    let place = Place::with_files();
    for (args, advice) in [
        ("elect a b -- true", ""),
        ("elect a --shared -- true", ""),
        ("elect a -p 1/2 -- true", ""),
        ("elect a --inherit -- true", ""),
        ("run a --publish x -- true", ""),
        ("elect a true", "crosslock elect NAME -- COMMAND"),
        ("elect a", "crosslock elect a -- COMMAND"),
    ] {
        let done = place.tool(args).ends(64);
        assert!(done.err.contains(advice), "{}", done.err);
    }
}
