//! Members of etcd or ZooKeeper: one line for each name, and tokens of revisions.

use super::server::key;
use super::*;

/// The first token of a revision.
const fn token(revision: u64) -> u64 {
    revision * 4096 + 1
}

fn run(servers: &str) -> Event {
    with(event(9_000, "run", 0), servers, "safe", 400)
}

#[track_caller]
fn passes_on(servers: &str, events: impl IntoIterator<Item = Event>) {
    let events = events.into_iter().chain([run(servers)]);
    assert_eq!(broken(events, &rules()), [""; 0]);
}

#[track_caller]
fn breaks_on(servers: &str, rule: &str, events: impl IntoIterator<Item = Event>) {
    let events = events.into_iter().chain([run(servers)]);
    assert_eq!(broken(events, &rules()), [rule]);
}

const OWNER: &str = "u1/host/1/7";
const OTHER: &str = "u2/host/2/7";

/// What a line shows: it doesn't say until when a lease lasts.
fn shown(at: u64, owner: &str, revision: u64) -> Event {
    key(at, owner, token(revision), 0)
}

#[test]
fn holder_that_was_never_released_is_not_replaced_while_it_believes() {
    let history = |at| {
        [
            taken(10, 1, token(5), 400),
            shown(15, OWNER, 5),
            shown(at, OTHER, 6),
        ]
    };
    breaks_on("etcd", "C6", history(390));
    passes_on("etcd", history(410));
    let released = [event(20, "release", 1)];
    passes_on("zookeeper", history(30).into_iter().chain(released));
}

#[test]
fn last_of_those_that_a_lease_was_handed_over_to_is_the_holder() {
    let next = Event {
        pid: 1,
        process: 1,
        detail: HANDED_OVER.into(),
        ..taken(22, 11, token(5) + 1, 420)
    };
    let history = [
        taken(10, 1, token(5), 400),
        event(20, "release", 1),
        next,
        shown(15, OWNER, 5),
        shown(50, OTHER, 6),
    ];
    breaks_on("etcd", "C6", history.clone());
    let released = with(event(40, "release", 11), "", "", 420);
    passes_on("etcd", history.into_iter().chain([released]));
}

#[test]
fn broken_lease_is_known_by_its_revision() {
    let mut fault = fault(100, 110, "break", ALL);
    fault[0].name = "a".into();
    let broke = Event {
        pid: 1,
        token: token(5),
        until: 100 * MS,
        ..event(110, "broke", 100)
    };
    let history = |token: u64| {
        let all = [taken(10, 1, token, 400), taken(120, 2, 7 * 4096 + 1, 520)];
        let seen = [with(event(200, "look", 1), "", "", 500)];
        all.into_iter()
            .chain(seen)
            .chain(fault.clone())
            .chain([broke.clone()])
    };
    // Abandoned, and passed on in its process since.
    for token in [token(5), token(5) + 1, token(5) + 512] {
        passes_on("etcd", history(token));
    }
    breaks_on("etcd", "C1", history(token(6)));
}

#[test]
fn lease_of_a_dead_waiter_may_keep_others_waiting_until_it_ends() {
    let mut kill = fault(100, 101, "kill waiter", 3);
    kill[0].token = 3;
    let history = |at| {
        let released = with(event(201, "released", 1), "ok", "", 0);
        let begun = [ask(50, 2, "lock", 0), taken(10, 1, token(5), 400)];
        let done = [event(200, "release", 1), released];
        let next = [taken(at, 2, token(9), at + 300)];
        begun
            .into_iter()
            .chain(done)
            .chain(next)
            .chain(kill.clone())
    };
    // Nobody who died before it was free is left in Redis's line.
    breaks("C7", history(600));
    passes_on("zookeeper", history(600));
}

#[test]
fn lease_of_a_dead_holder_ends_when_its_server_looks() {
    let mut kill = fault(100, 101, "kill holder", 1);
    kill[0].token = 1;
    let history = |at| {
        let begun = [ask(50, 2, "lock", 0), taken(10, 1, token(5), 400)];
        let next = [taken(at, 2, token(9), at + 300)];
        begun.into_iter().chain(next).chain(kill.clone())
    };
    passes_on("etcd", history(1_300));
    breaks_on("etcd", "C7", history(1_450));
    passes_on("zookeeper", history(950));
    breaks_on("zookeeper", "C7", history(1_050));
}

#[test]
fn nobody_is_let_in_while_most_members_are_down() {
    let down = with(event(100, "down", 0), "", "", 300);
    let history = |asked, at, detail: &str| {
        let taken = Event {
            detail: detail.into(),
            ..taken(at, 1, token(5), 900)
        };
        [ask(asked, 1, "lock", 0), taken, down.clone()]
    };
    breaks_on("etcd", "C6", history(110, 200, ""));
    // Its answer was on the way, or they were up again.
    passes_on("etcd", history(90, 200, ""));
    passes_on("etcd", history(110, 310, ""));
    passes_on("etcd", history(110, 200, HANDED_OVER));
}

#[test]
fn lease_that_its_own_process_adopts_has_another_owner() {
    let passed = with(event(20, "release", 1), "", "pass", 400);
    let asked = |at| Event {
        pid: 1,
        process: 1,
        until: 1,
        ..with(event(at, "ask", 11), "", "adopt", 0)
    };
    let adopted = Event {
        pid: 1,
        process: 1,
        ..taken(32, 11, token(5) + 4, 430)
    };
    let history = |at| {
        [
            taken(10, 1, token(5), 400),
            shown(15, OWNER, 5),
            passed.clone(),
            asked(at),
            shown(31, OTHER, 5),
            adopted.clone(),
        ]
    };
    passes_on("zookeeper", history(25));
    // Nobody had asked for it yet.
    breaks_on("zookeeper", "C6", history(35).into_iter().take(5));
}

#[test]
fn attempt_fails_with_a_connection_that_was_slow_before() {
    let history = |late: u64| {
        let lateness = Event {
            name: String::new(),
            ..with(event(1_000, "late", 1), "", "waited", 1_000 + late)
        };
        let failed = with(event(1_153, "answer", 1), "unavailable", "", 0);
        [lateness, ask(1_150, 1, "try", 0), failed]
    };
    passes_on("zookeeper", history(80));
    breaks_on("zookeeper", "C8", history(70));
    breaks_on("etcd", "C8", history(80));
}
