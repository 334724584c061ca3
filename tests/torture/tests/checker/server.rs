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
    let [first, release, next] = leases_of_a_process(5);
    let handed_over = [first, release, handed_over(next)];
    let keys = [key(15, "x", 5, 410), key(30, "", 9, 0)];
    breaks("C6", handed_over.into_iter().chain(keys));
}

/// Two holdings of one process, one after the other. The second, which isn't released, has the next token.
fn leases_of_a_process(token: u64) -> [Event; 3] {
    let next = Event {
        pid: 1,
        process: 1,
        ..taken(22, 11, token + 1, 420)
    };
    [taken(10, 1, token, 400), event(20, "release", 1), next]
}

fn handed_over(answer: Event) -> Event {
    Event {
        detail: HANDED_OVER.into(),
        ..answer
    }
}

/// Where the counter is ahead of the server's clock, the token after 7 is 9.
#[test]
fn lease_after_a_release_is_no_hand_over_though_its_token_follows() {
    let leases = leases_of_a_process(7);
    let keys = [key(15, "x", 7, 410), key(30, "y", 9, 430)];
    passes(leases.clone().into_iter().chain(keys.clone()));
    let [first, _, next] = leases;
    let taken = broken([first, next].into_iter().chain(keys), &rules());
    assert_eq!(taken, ["C1", "C6"]);
}

#[test]
fn lock_that_was_taken_from_whom_it_was_handed_over_to_breaks_c6() {
    let [first, release, next] = leases_of_a_process(7);
    let chain = [first, release, handed_over(next)];
    let keys = |at| [key(15, "x", 7, 410), key(at, "y", 13, 430)];
    breaks("C6", chain.clone().into_iter().chain(keys(30)));
    // The release of the second comes later.
    let release = event(40, "release", 11);
    let chain = || chain.clone().into_iter().chain([release.clone()]);
    breaks("C6", chain().chain(keys(30)));
    passes(chain().chain(keys(50)));
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
        let next = key(600, "w/host/3/3", 9, 900);
        [key(at, "x", 5, 500), begun, next, done].into_iter()
    };
    passes(history(200, "v/host/2/2").chain(kill.clone()));
    passes(history(120, "u/host/7/1 v/host/2/2").chain(kill.clone()));
    passes(history(200, "u/host/7/1 v/host/2/2"));
    let stays = || history(200, "u/host/7/1 v/host/2/2").chain(kill.clone());
    breaks("C6", stays());
    // An adoption is no turn of the line; one by another process, or of another time, was none of this.
    let adopts = |at, id| {
        let ask = ask(at, id, "adopt", 0);
        let answer = with(event(at + 10, "answer", id), "unavailable", "", 0);
        let excuse = fault(at, at + 10, "stop server", ALL);
        stays().chain([ask, answer]).chain(excuse)
    };
    passes(adopts(580, 3));
    breaks("C6", adopts(580, 2));
    breaks("C6", adopts(150, 3));
    breaks("C6", adopts(610, 3));
    // Where all stand in one line, one that shares the lock has had it before.
    let shared = || {
        let lines = [200, 600].map(|at| line(at, "u/host/7/1 v/host/2/2"));
        let keys = [key(200, "x", 5, 500), key(600, "crosslock:shared", 7, 900)];
        lines.into_iter().chain(keys).chain(kill.clone())
    };
    breaks("C6", shared());
    passes(shared().chain([with(event(9_000, "run", 0), "etcd", "safe", 400)]));
}
