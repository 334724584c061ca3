//! A directory: leases last as long as their processes, and are lost by nothing but a break.

use super::server::key;
use super::*;

const FOR_EVER: u64 = u64::MAX / MS;

fn run() -> Event {
    with(event(9_000, "run", 0), "file", "safe", 400)
}

#[track_caller]
fn judged(events: impl IntoIterator<Item = Event>) -> Vec<&'static str> {
    broken(events.into_iter().chain([run()]), &rules())
}

fn held(at: u64, id: u64, token: u64) -> Event {
    taken(at, id, token, FOR_EVER)
}

fn kill(at: u64, pid: u32) -> [Event; 2] {
    fault(at, at + 1, "kill holder", pid).map(|one| Event {
        token: pid.into(),
        ..one
    })
}

#[test]
fn lease_lasts_until_its_process_ends() {
    let two = || [held(10, 1, 1), held(5_000, 2, 5)];
    assert_eq!(judged(two()), ["C1"]);
    assert_eq!(judged(two().into_iter().chain(kill(4_990, 1))), [""; 0]);
    assert_eq!(judged(two().into_iter().chain(kill(5_010, 1))), ["C1"]);
}

#[test]
fn lease_that_is_passed_on_lasts_for_its_ttl() {
    let passed = |next| {
        [
            held(10, 1, 1),
            with(event(20, "release", 1), "", "pass", FOR_EVER),
            with(event(21, "released", 1), "passed", "", 0),
            held(next, 2, 5),
        ]
    };
    assert_eq!(judged(passed(430)), [""; 0]);
    assert_eq!(judged(passed(400)), ["C1"]);
}

#[test]
fn child_of_a_dead_holder_keeps_what_it_has_copies_of() {
    let kept = |next| {
        let kill = fault(30, 400, "kill but for a child", 1).map(|one| Event { token: 1, ..one });
        let kept = Event {
            pid: 1,
            ..with(event(390, "kept", 0), "", "", 29)
        };
        [held(10, 1, 1), kept, held(next, 2, 5)]
            .into_iter()
            .chain(kill)
    };
    assert_eq!(judged(kept(395)), [""; 0]);
    assert_eq!(judged(kept(300)), ["C1"]);
}

#[test]
fn lock_of_a_dead_holder_is_there_at_once() {
    let served = |at| {
        let ask = ask(20, 2, "lock", 0);
        [held(10, 1, 1), ask, held(at, 2, 5)]
            .into_iter()
            .chain(kill(30, 1))
    };
    assert_eq!(judged(served(300)), [""; 0]);
    assert_eq!(judged(served(500)), ["C7"]);
}

#[test]
fn stopped_holder_loses_nothing() {
    let lost = |kind| {
        let lost = with(event(900, "lost", 1), "", "not the owner", 0);
        let fault = fault(20, 890, kind, 1);
        [held(10, 1, 1), lost].into_iter().chain(fault)
    };
    assert_eq!(judged(lost("stop holder past ttl")), ["C4"]);
    assert_eq!(judged(lost("open files exhausted")), ["C4"]);
}

#[test]
fn lock_is_abandoned_by_who_dies_and_not_by_who_stands_still() {
    let abandoned = |kind| {
        let stopped = fault(20, 30, kind, 3);
        let next = Event {
            detail: "abandoned".into(),
            ..held(40, 2, 3)
        };
        stopped.into_iter().chain([next])
    };
    assert_eq!(judged(abandoned("stop holder")), ["C4"]);
    assert_eq!(judged(abandoned("kill holder")), [""; 0]);
}

#[test]
fn process_that_is_stopped_may_keep_others_from_a_name() {
    let failed = |kind| {
        let failed = with(event(50, "answer", 2), "unavailable", "", 0);
        let fault = fault(20, 40, kind, 1);
        [ask(30, 2, "try", 0), failed].into_iter().chain(fault)
    };
    assert_eq!(judged(failed("stop waiter")), [""; 0]);
    assert_eq!(judged(failed("kill waiter")), ["C8"]);
    // Only its own calls.
    assert_eq!(judged(failed("open files exhausted")), ["C8"]);
}

#[test]
fn lock_is_taken_from_nobody_who_lives() {
    let taken = |more: Vec<Event>| {
        let shown = |at, owner, token| key(at, owner, token, FOR_EVER);
        let all = [held(10, 1, 1), shown(15, "u1/host/1/7", 1)];
        let later = shown(600, "u2/host/2/7", 5);
        judged(all.into_iter().chain([later]).chain(more))
    };
    assert_eq!(taken(Vec::new()), ["C6"]);
    assert_eq!(taken(kill(500, 1).to_vec()), [""; 0]);
    assert_eq!(taken(vec![event(500, "release", 1)]), [""; 0]);
}

#[test]
fn line_of_a_directory_keeps_its_order() {
    let (one, other) = ("u1/host/1/7", "u2/host/2/7");
    let line = |at, owners: [&str; 2]| with(event(at, "line", 0), "", &owners.join(" "), 0);
    let turned = [line(1_000, [one, other]), line(1_010, [other, one])];
    assert_eq!(judged(turned), ["C6"]);
}
