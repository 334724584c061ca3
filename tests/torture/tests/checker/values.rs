//! C2.

use super::*;

#[test]
fn register_that_refuses_what_is_stale_passes() {
    passes([
        register(1, 1, 5, "read", "accepted", 0),
        register(2, 2, 9, "read", "accepted", 0),
        register(3, 2, 9, "write", "accepted", 1),
        register(4, 1, 5, "write", "stale", 1),
        register(5, 3, 13, "read", "accepted", 1),
    ]);
}

#[test]
fn stale_or_lost_writes_break_c2() {
    let begin = [
        register(1, 1, 5, "read", "accepted", 0),
        register(2, 2, 9, "read", "accepted", 0),
    ];
    let stale = register(3, 1, 5, "write", "accepted", 1);
    breaks("C2", begin.clone().into_iter().chain([stale]));
    let refused = register(3, 2, 9, "write", "stale", 0);
    breaks("C2", begin.clone().into_iter().chain([refused]));
    let lost = register(4, 2, 9, "write", "accepted", 3);
    breaks("C2", begin.clone().into_iter().chain([lost]));
    let same_token = register(3, 3, 9, "write", "accepted", 1);
    breaks("C2", begin.into_iter().chain([same_token]));
}

/// One that finds a value, ends like this, and is told that.
fn held(at: u64, id: u64, value: u64, how: &str, told: &str) -> [Event; 4] {
    let found = Event {
        until: value,
        ..event(at, "value", id)
    };
    [
        taken(at, id, 4 * id + 1, at + 300),
        found,
        with(event(at + 1, "release", id), "", how, 0),
        with(event(at + 2, "released", id), told, "", 0),
    ]
}

fn stored(value: u64) -> [Event; 1] {
    [Event {
        until: value,
        ..event(9_000, "stored", 0)
    }]
}

/// What ends so is found to be this by the next, and in the end.
fn left(how: &str, told: &str, value: u64) -> Vec<Event> {
    let first = held(10, 1, 0, "commit", "ok");
    let second = held(20, 2, 1, how, told);
    let third = held(30, 3, value, "unchanged", "ok");
    [first, second, third]
        .into_iter()
        .flatten()
        .chain(stored(value))
        .collect()
}

#[test]
fn value_is_what_was_committed_last() {
    passes(left("commit", "ok", 2));
    breaks("C2", left("commit", "ok", 1));
    breaks("C2", left("commit", "ok", 3));
}

#[test]
fn commit_that_was_lost_stored_nothing() {
    let lost = |value| {
        let stop = fault(5, 300, "stop holder", ALL);
        left("commit", "lost", value).into_iter().chain(stop)
    };
    passes(lost(1));
    breaks("C2", lost(2));
}

#[test]
fn commit_whose_outcome_nobody_saw_may_have_stored() {
    let outage = fault(5, 6, "stop server", ALL);
    let history = |how, told, value| left(how, told, value).into_iter().chain(outage.clone());
    for value in [1, 2] {
        passes(history("commit", "unavailable", value));
        passes(history("drop", "dropped", value));
    }
    breaks("C2", history("commit", "unavailable", 0));
    breaks("C2", history("commit", "unavailable", 3));
    // Nothing kept this one from it.
    passes(left("drop", "dropped", 2));
    breaks("C2", left("drop", "dropped", 1));
}

#[test]
fn what_is_discarded_is_not_stored() {
    for how in ["discard", "unchanged", "panic"] {
        passes(left(how, "dropped", 1));
        breaks("C2", left(how, "dropped", 2));
    }
}

#[test]
fn one_that_died_may_have_stored_if_it_had_begun_to() {
    let mut kill = fault(21, 22, "kill holder", 2);
    kill[0].token = 2;
    let history = |events: usize, value| {
        let first = held(10, 1, 0, "commit", "ok");
        let dead = held(20, 2, 1, "commit", "").into_iter().take(events);
        let third = held(500, 3, value, "unchanged", "ok");
        let all = first.into_iter().chain(dead).chain(third);
        all.chain(stored(value)).chain(kill.clone())
    };
    passes(history(3, 1));
    passes(history(3, 2));
    passes(history(2, 1));
    breaks("C2", history(2, 2));
}

#[test]
fn tokens_say_who_came_first() {
    let first = held(10, 1, 0, "commit", "ok");
    let second = held(30, 2, 1, "commit", "ok");
    // Handed over late, as the one after it had it already.
    let third = held(25, 3, 2, "unchanged", "ok");
    let history = [first, second, third].into_iter().flatten();
    let found = broken(history.chain(stored(2)), &rules());
    assert!(!found.contains(&"C2"), "{found:?}");
}

#[test]
fn value_that_is_wrong_in_the_end_breaks_c2() {
    let history = |value| {
        held(10, 1, 0, "commit", "ok")
            .into_iter()
            .chain(stored(value))
    };
    passes(history(1));
    breaks("C2", history(0));
    breaks("C2", history(2));
}

#[test]
fn server_that_forgets_may_go_back() {
    let history = |kind| {
        let first = held(10, 1, 0, "commit", "ok");
        let second = held(800, 2, 0, "commit", "ok");
        let all = first.into_iter().chain(second).chain(stored(1));
        broken(all.chain(fault(600, 601, kind, ALL)), &unsafe_rules())
    };
    for kind in [
        "flushall",
        "restart server without aof",
        "fail over to a stale replica",
    ] {
        assert_eq!(history(kind), [""; 0]);
    }
    for kind in ["delete lock", "evict", "server clock back"] {
        assert_eq!(history(kind), ["C2"]);
    }
}
