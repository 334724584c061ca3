//! The checker of the torture program, on histories that are written by hand: a history in, the rules that it breaks
//! out.

use crosslock_torture::checker::judge;
use crosslock_torture::history::{Event, What};

const MS: u64 = 1_000_000;

/// An event of call `call`, which is the only one of the worker with the same number.
fn event(ms: u64, call: u32, what: What) -> Event {
    Event {
        at: ms * MS,
        process: call,
        call,
        name: "counter".to_owned(),
        what,
    }
}

/// Call `call` has the lock from then, and could believe until then that it has.
fn held(call: u32, is_shared: bool, token: u64, [from, until]: [u64; 2]) -> Event {
    let held = What::Held {
        is_shared,
        token,
        until: until * MS,
    };
    event(from, call, held)
}

fn exclusive(call: u32, token: u64, times: [u64; 2]) -> Event {
    held(call, false, token, times)
}

fn reader(call: u32, token: u64, times: [u64; 2]) -> Event {
    held(call, true, token, times)
}

fn release(ms: u64, call: u32) -> Event {
    event(ms, call, What::Releasing { increased: false })
}

/// Call `call` found this value, and was told that of its release at which it had increased it.
fn counted(ms: u64, call: u32, found: u64, told: &str) -> Vec<Event> {
    vec![
        exclusive(call, u64::from(call), [ms, ms + 300]),
        event(ms, call, What::Found(found)),
        event(ms + 1, call, What::Releasing { increased: true }),
        event(ms + 2, call, What::Released(told.to_owned())),
    ]
}

#[track_caller]
fn check(expected: &str, events: impl IntoIterator<Item = Event>) {
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by_key(|event| event.at);
    let mut found: Vec<_> = judge(&events).iter().map(|one| one.rule).collect();
    found.dedup();
    assert_eq!(found.join(" "), expected, "{events:#?}");
}

#[test]
fn two_holders_at_a_time_break_c1() {
    let first = || exclusive(1, 5, [10, 400]);
    check("", [first(), exclusive(2, 9, [400, 800])]);
    check("C1", [first(), exclusive(2, 9, [399, 800])]);
    check("", [first(), release(20, 1), exclusive(2, 9, [21, 400])]);
    // It was renewed.
    let renewed = event(300, 1, What::Valid { until: 700 * MS });
    check("C1", [first(), renewed, exclusive(2, 9, [650, 900])]);
    // Nobody believes in the lease of a worker that was killed.
    let killed = event(20, 0, What::Killed(1));
    check("", [first(), killed, exclusive(2, 9, [21, 400])]);
    let other = Event {
        name: "other".to_owned(),
        ..exclusive(2, 9, [20, 400])
    };
    check("", [first(), other]);
}

#[test]
fn those_that_share_break_c1_with_others_only() {
    // Readers have their tokens in no order.
    check("", [reader(1, 8, [10, 400]), reader(2, 4, [20, 400])]);
    check("C1", [reader(1, 4, [10, 400]), exclusive(2, 9, [399, 800])]);
    check("C1", [exclusive(1, 5, [10, 400]), reader(2, 8, [399, 800])]);
}

#[test]
fn value_that_the_last_holder_did_not_leave_breaks_c2() {
    // What is told of the release of a holder who found 1, and what may be stored after it.
    let ends: [(&str, &[u64]); 4] = [
        ("ok", &[2]),
        ("lost", &[1]),
        ("unavailable", &[1, 2]),
        ("dropped", &[1, 2]),
    ];
    for (told, due) in ends {
        for value in 0..4 {
            let mut events = counted(10, 1, 0, "ok");
            events.extend(counted(20, 2, 1, told));
            events.push(event(900, 0, What::Stored(value)));
            let expected = if due.contains(&value) { "" } else { "C2" };
            check(expected, events);
        }
    }
    let mut events = counted(10, 1, 0, "ok");
    events.extend(counted(20, 2, 0, "ok"));
    check("C2", events);
}

#[test]
fn tokens_that_repeat_or_decrease_break_c3() {
    let first = || [exclusive(1, 5, [10, 400]), release(20, 1)];
    let then = |next| first().into_iter().chain([next]);
    check("C3", then(exclusive(2, 5, [30, 400])));
    check("C3", then(exclusive(2, 3, [30, 400])));
    // It isn't valid when it comes.
    check("", then(exclusive(2, 3, [30, 0])));
    check("", then(reader(2, 8, [30, 400])));
    check("C3", then(reader(2, 4, [30, 400])));
    // Not only behind the one just before.
    let readers = [(1, 12), (2, 8)].map(|(call, token)| reader(call, token, [10, 100]));
    check(
        "C3",
        readers.into_iter().chain([exclusive(3, 9, [200, 400])]),
    );
}
