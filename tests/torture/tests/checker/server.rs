//! C5 and C6: what the watcher saw of the server.

use super::*;

#[test]
fn keys_that_stay_break_c5() {
    breaks("C5", [event(1, "bare", 1)]);
    breaks("C5", [with(event(1, "left", 1), "", "a thread", 0)]);
}

pub(crate) fn key(at: u64, owner: &str, counter: u64, until: u64) -> Event {
    Event {
        token: counter,
        ..with(event(at, "key", 0), "", owner, until)
    }
}

#[test]
fn lock_that_its_holder_released_or_that_expired_passes() {
    let keys = [key(15, "x", 5, 410), key(30, "y", 9, 430)];
    let history = [
        taken(10, 1, 5, 400),
        event(20, "release", 1),
        taken(21, 2, 9, 420),
    ];
    passes(keys.into_iter().chain(history));
    passes([
        taken(10, 1, 5, 400),
        key(15, "x", 5, 410),
        key(411, "y", 9, 800),
    ]);
    // Nobody had this one: it was given up.
    passes([key(15, "x", 5, 410), key(30, "", 9, 0)]);
}

#[test]
fn lock_that_was_taken_from_its_holder_breaks_c6() {
    breaks(
        "C6",
        [
            taken(10, 1, 5, 400),
            key(15, "x", 5, 410),
            key(30, "y", 9, 430),
        ],
    );
    let handed_over = [
        taken(10, 1, 5, 400),
        event(11, "release", 1),
        Event {
            pid: 1,
            process: 1,
            ..taken(12, 11, 7, 400)
        },
    ];
    let keys = [key(15, "x", 5, 410), key(30, "", 9, 0)];
    breaks("C6", handed_over.clone().into_iter().chain(keys));
    // The counter says that the first released, and so the other's lease was a new one.
    let keys = [key(15, "x", 5, 410), key(30, "", 6, 0)];
    passes(handed_over.into_iter().chain(keys));
}

pub(crate) fn line(at: u64, owners: &str) -> Event {
    with(event(at, "line", 0), "", owners, 0)
}

#[test]
fn line_that_keeps_its_order_passes() {
    passes([
        line(1, "x y z"),
        line(2, "y z"),
        line(3, "z"),
        line(4, "z x"),
        line(5, ""),
    ]);
    // One that was stopped was dropped, and comes back.
    let stop = fault(1000, 2000, "stop waiter", 2);
    passes(
        [line(1500, "x y z"), line(2100, "y z x")]
            .into_iter()
            .chain(stop),
    );
}

#[test]
fn line_that_changes_its_order_breaks_c6() {
    breaks("C6", [line(1, "x y z"), line(2, "y x z")]);
    // One that gave up, and another that came too late for its place.
    let moved = [
        line(101, "u/host/1/1 v/host/2/2"),
        line(112, "v/host/2/2 u/host/1/1"),
    ];
    breaks("C6", moved.clone());
    let gave_up = with(event(105, "answer", 1), "none", "", 0);
    passes(moved.into_iter().chain([gave_up]));
}

#[test]
fn dead_that_stays_first_in_line_breaks_c6() {
    let mut kill = fault(100, 101, "kill waiter", 7);
    kill[0].token = 7;
    let history = |at, rest: &str| {
        let (begun, done) = (line(at, "u/host/7/1 v/host/2/2"), line(600, rest));
        [key(at, "x", 5, 500), begun, key(600, "y", 9, 900), done].into_iter()
    };
    passes(history(200, "v/host/2/2").chain(kill.clone()));
    passes(history(120, "u/host/7/1 v/host/2/2").chain(kill.clone()));
    passes(history(200, "u/host/7/1 v/host/2/2"));
    breaks("C6", history(200, "u/host/7/1 v/host/2/2").chain(kill));
}
