//! Locks that several have at a time.

use super::server::key;
use super::*;

fn permits(event: Event, count: u32) -> Event {
    Event {
        mode: Mode::Permits(count),
        ..event
    }
}

#[test]
fn readers_may_overlap() {
    passes([
        reading(taken(10, 1, 8, 400)),
        // They have their tokens in no order.
        reading(taken(20, 2, 4, 400)),
        taken(400, 3, 13, 800),
    ]);
}

#[test]
fn writer_beside_a_reader_breaks_c1() {
    breaks("C1", [reading(taken(10, 1, 4, 400)), taken(399, 2, 9, 800)]);
    breaks("C1", [taken(10, 1, 5, 400), reading(taken(399, 2, 8, 800))]);
    // The first to come is not the last to go.
    let readers = [
        reading(taken(10, 1, 4, 700)),
        reading(taken(20, 2, 8, 300)),
        taken(500, 3, 13, 800),
    ];
    breaks("C1", readers);
}

#[test]
fn writer_that_reads_on_lets_readers_in() {
    passes([
        taken(10, 1, 5, 400),
        with(event(20, "release", 1), "", "downgrade", 390),
        reading(taken(22, 2, 8, 420)),
        with(event(22, "released", 1), "ok", "", 0),
        reading(taken(23, 3, 12, 420)),
    ]);
}

#[test]
fn more_permits_than_there_are_break_c1() {
    let two = [
        permits(taken(10, 1, 4, 400), 2),
        permits(taken(20, 2, 8, 400), 1),
    ];
    passes(two.clone());
    let third = |at| permits(taken(at, 3, 12, at + 400), 1);
    breaks("C1", two.clone().into_iter().chain([third(399)]));
    passes(two.clone().into_iter().chain([third(400)]));
    passes(two.into_iter().chain([event(30, "release", 2), third(31)]));
    breaks(
        "C1",
        [permits(taken(10, 1, 4, 400), 1), taken(20, 2, 9, 400)],
    );
}

#[test]
fn two_names_are_held_by_one_call() {
    let both = Event {
        name: "a b".into(),
        ..taken(10, 1, 5, 400)
    };
    let other = |name: &str| Event {
        name: name.into(),
        ..taken(20, 2, 9, 400)
    };
    passes([both.clone(), other("c")]);
    breaks("C1", [both.clone(), other("a")]);
    breaks("C1", [both.clone(), other("b")]);
    passes([both, event(15, "release", 1), other("b")]);
}

#[test]
fn tokens_of_readers_repeat_no_other_and_come_after_writers() {
    let release = event(20, "release", 1);
    let first = [taken(10, 1, 5, 400), release];
    let later = |token| reading(taken(30, 2, token, 400));
    passes(first.clone().into_iter().chain([later(8)]));
    breaks("C3", first.clone().into_iter().chain([later(4)]));
    breaks("C3", first.into_iter().chain([later(5)]));
    // Not only those of the one just before.
    let readers = [
        reading(taken(10, 1, 12, 100)),
        reading(taken(20, 2, 8, 100)),
    ];
    let writer = |token| taken(200, 3, token, 400);
    passes(readers.clone().into_iter().chain([writer(13)]));
    breaks("C3", readers.into_iter().chain([writer(9)]));
}

#[test]
fn readers_tell_what_a_writer_left_long_ago() {
    let told = |mode, at| Event {
        mode,
        detail: "abandoned".into(),
        ..taken(at, 3, 23, at + 300)
    };
    let writer = || [taken(100, 1, 5, 500)];
    let readers = || [reading(taken(1_000, 2, 15, 1_300))];
    let kill = fault(300, 301, "kill holder", 1);
    let history = |told: Event| writer().into_iter().chain(readers()).chain([told]);
    passes(history(told(Mode::Read, 5_000)).chain(kill.clone()));
    breaks("C4", history(told(Mode::Read, 5_000)));
    // The next need not come soon, either.
    let next = writer().into_iter().chain([told(Mode::Exclusive, 5_000)]);
    passes(next.chain(kill));
    passes([told(Mode::Permits(1), 5_000)]);
}

#[test]
fn lock_that_readers_had_is_nobodys() {
    let mark = "crosslock:readers";
    let reader = reading(taken(10, 1, 4, 400));
    passes([reader, key(15, mark, 4, 410), key(30, "y", 9, 430)]);
    let writer = taken(10, 1, 5, 400);
    breaks("C6", [writer, key(15, "x", 5, 410), key(30, mark, 8, 430)]);
}

#[test]
fn dead_reader_that_is_renewed_breaks_c6() {
    let mut kill = fault(100, 101, "kill holder", 7);
    kill[0].token = 7;
    let sharers = |at, ends: [u64; 2]| {
        let detail = format!("1 u/host/7/1 {} 1 v/host/2/2 {}", ends[0], ends[1]);
        with(event(at, "sharers", 0), "", &detail, 0)
    };
    let history = |at, ends| [sharers(at, [500, 500]), sharers(600, ends)].into_iter();
    passes(history(200, [500, 900]).chain(kill.clone()));
    passes(history(120, [600, 900]).chain(kill.clone()));
    passes(history(200, [600, 900]));
    breaks("C6", history(200, [600, 900]).chain(kill));
}

#[test]
fn register_lets_readers_in_between_writers() {
    let peek = |at, id, token, verb: &str, outcome: &str| register(at, id, token, verb, outcome, 1);
    let written = [
        register(1, 1, 5, "read", "accepted", 0),
        register(2, 1, 5, "write", "accepted", 1),
    ];
    let history = |later: &[Event]| written.clone().into_iter().chain(later.to_vec());
    passes(history(&[
        peek(3, 2, 12, "peek", "accepted"),
        peek(4, 3, 8, "peek", "accepted"),
        peek(5, 3, 8, "leave", "accepted"),
        // The one that was there before them comes too late.
        register(6, 1, 5, "write", "stale", 1),
        register(7, 4, 13, "read", "accepted", 1),
        peek(8, 2, 12, "leave", "stale"),
    ]));
    let reader = peek(3, 2, 12, "peek", "accepted");
    let late = register(4, 1, 5, "write", "accepted", 2);
    breaks("C2", history(&[reader, late]));
    breaks("C2", history(&[peek(3, 2, 4, "peek", "accepted")]));
}

#[test]
fn what_is_read_stays_as_it_is() {
    let history = |end, value| {
        [
            reading(taken(10, 2, 12, end)),
            register(11, 2, 12, "peek", "accepted", 0),
            register(20, 3, 13, "read", "accepted", 0),
            register(21, 3, 13, "write", "accepted", 1),
            register(30, 2, 12, "leave", "stale", value),
        ]
    };
    breaks("C2", history(400, 1));
    // It was lost before.
    passes(history(29, 1));
    let flush = fault(15, 16, "flushall", ALL);
    let forgotten = history(400, 1).into_iter().chain(flush);
    assert_eq!(broken(forgotten, &unsafe_rules()), [""; 0]);
}

#[test]
fn run_without_readers_or_permits_breaks_c9() {
    let each = Rules {
        of_each_sort: 1,
        ..rules()
    };
    assert_eq!(judge(&[], &each).len(), 10);
    let both = Event {
        name: "c d".into(),
        ..taken(10, 8, 5, 400)
    };
    let named = |name: &str, event| Event {
        name: name.into(),
        ..event
    };
    let busy = [
        with(event(9, "release", 9), "", "", 0),
        reading(taken(10, 1, 4, 400)),
        reading(taken(11, 2, 8, 400)),
        named("p", permits(taken(12, 3, 4, 400), 1)),
        named("p", permits(taken(13, 4, 8, 400), 2)),
        named("q", taken(14, 5, 5, 400)),
        with(event(15, "release", 5), "", "downgrade", 0),
        named("r", taken(16, 6, 5, 400)),
        with(event(17, "release", 6), "", "commit", 0),
        both,
        named("s", ask(18, 17, "adopt", 0)),
        named("s", taken(19, 17, 5, 400)),
        ask(20, 18, "lock", 0),
        event(21, "cancel", 18),
        with(event(22, "answer", 18), "cancelled", "", 0),
    ];
    assert_eq!(broken(busy, &each), [""; 0]);
}
