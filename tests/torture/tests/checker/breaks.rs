//! What a break excuses, and what it doesn't.

use super::server::{key, line};
use super::*;

/// From 100 ms to 110 ms somebody breaks the lock, whose lease has token 5 and is held by process 1.
fn broken_lock() -> Vec<Event> {
    let fault = fault(100, 110, "break", ALL).map(|event| Event {
        name: "a".into(),
        ..event
    });
    fault.into_iter().chain([broke(110, 1, 5)]).collect()
}

fn broke(at: u64, pid: u32, token: u64) -> Event {
    Event {
        token,
        pid,
        until: (at - 10) * MS,
        ..event(at, "broke", 100)
    }
}

/// Its holder found it valid at this time, and so does the next one at the end.
fn seen(at: u64, id: u64) -> Event {
    with(event(at, "look", id), "", "", at + 300)
}

fn lost(at: u64, id: u64, reason: &str) -> Event {
    with(event(at, "lost", id), "", reason, 0)
}

/// Two tokens that differ as those of two leases do.
const NEXT: u64 = 100_001;

#[test]
fn broken_holder_may_believe_until_its_next_renewal() {
    // A third of the ttl, the answer's timeout, and 50 ms.
    let believes = |at| [taken(10, 1, 5, 400), taken(120, 2, NEXT, 520), seen(at, 1)];
    passes(believes(400).into_iter().chain(broken_lock()));
    let found = broken(believes(460).into_iter().chain(broken_lock()), &rules());
    assert_eq!(found, ["C1", "C4"]);
    breaks("C1", believes(400));
}

#[test]
fn broken_holder_that_could_not_hear_believes_until_its_lease_is_over() {
    let hole = || fault(90, 300, "black hole", 1);
    let believes = |at| {
        let history = [taken(10, 1, 5, 400), taken(120, 2, NEXT, 420), seen(at, 1)];
        let renewed = [seen(400, 2), event(600, "release", 2)];
        history
            .into_iter()
            .chain(renewed)
            .chain(broken_lock())
            .chain(hole())
    };
    passes(believes(500));
    assert_eq!(broken(believes(520), &rules()), ["C1", "C4"]);
}

#[test]
fn break_excuses_nobody_whose_lease_it_did_not_end() {
    // The lease after it, another's of that token, and another name's.
    let two = [taken(120, 2, NEXT, 520), taken(130, 3, 2 * NEXT, 530)];
    breaks("C1", two.into_iter().chain(broken_lock()));
    let two = [taken(10, 2, 7, 400), taken(120, 3, NEXT, 520)];
    breaks("C1", two.into_iter().chain(broken_lock()));
    let other = |event| Event {
        name: "b".into(),
        ..event
    };
    let two = [taken(10, 1, 5, 400), taken(120, 2, NEXT, 520)].map(other);
    breaks("C1", two.into_iter().chain(broken_lock()));
}

#[test]
fn broken_lease_that_is_handed_over_is_broken() {
    let handed_over = Event {
        pid: 1,
        process: 1,
        ..taken(130, 11, 7, 400)
    };
    let history = [
        taken(10, 1, 5, 400),
        taken(120, 2, NEXT, 520),
        event(129, "release", 1),
    ];
    let all = history.clone().into_iter().chain([handed_over.clone()]);
    passes(all.chain(broken_lock()));
    let late = Event {
        at: 500 * MS,
        until: 600 * MS,
        ..handed_over
    };
    let all = history.into_iter().chain([seen(300, 2), late]);
    assert_eq!(broken(all.chain(broken_lock()), &rules()), ["C1", "C3"]);
}

#[test]
fn grant_on_its_way_when_it_is_broken_may_be_told_behind_the_next() {
    let history = |at| {
        [
            taken(120, 2, NEXT, 520),
            event(125, "release", 2),
            taken(at, 1, 5, 530),
        ]
    };
    passes(history(130).into_iter().chain(broken_lock()));
    breaks("C3", history(130));
    breaks("C3", history(500).into_iter().chain(broken_lock()));
}

#[test]
fn loss_by_a_break_needs_one_of_that_name() {
    let history = [taken(10, 1, 5, 400), lost(200, 1, "broken")];
    passes(history.clone().into_iter().chain(broken_lock()));
    breaks("C4", history.clone());
    breaks(
        "C4",
        history
            .clone()
            .into_iter()
            .chain(fault(90, 95, "black hole", 1)),
    );
    // Told before anybody did it.
    let early = [taken(10, 1, 5, 400), lost(50, 1, "broken")];
    breaks("C4", early.into_iter().chain(broken_lock()));
    // Of another lease, and of one of two names.
    let other = [taken(10, 2, 9, 400), lost(200, 2, "broken")];
    breaks("C4", other.into_iter().chain(broken_lock()));
    let both = history.map(|event| Event {
        name: "b a".into(),
        ..event
    });
    passes(both.into_iter().chain(broken_lock()));
}

#[test]
fn broken_holder_is_told_that_it_was_broken() {
    for reason in ["expired", "not the owner"] {
        let history = [taken(10, 1, 5, 400), lost(200, 1, reason)];
        breaks("C4", history.clone().into_iter().chain(broken_lock()));
        let hole = fault(90, 300, "black hole", 1);
        passes(history.into_iter().chain(broken_lock()).chain(hole));
    }
    let again = [taken(10, 1, 5, 400), lost(200, 1, "held again")];
    breaks(
        "C4",
        again.into_iter().chain(fault(90, 300, "black hole", 1)),
    );
}

#[test]
fn broken_holder_whose_process_hears_is_told_at_once() {
    let history = |at| {
        [taken(10, 1, 5, 400), seen(at, 1)]
            .into_iter()
            .chain(broken_lock())
    };
    let waits = line(90, "u/host/1/2");
    passes(history(220).chain([waits.clone()]));
    breaks("C4", history(230).chain([waits.clone()]));
    passes(history(300));
    breaks("C4", history(450));
    // Another process, one that left the line, and one whose connection may be gone.
    passes(history(300).chain([line(90, "u/host/2/2")]));
    passes(history(300).chain([waits.clone(), line(105, "")]));
    passes(
        history(300)
            .chain([waits.clone()])
            .chain(fault(60, 62, "client kill pubsub", ALL)),
    );
    // One that was stopped meanwhile.
    passes(
        history(300)
            .chain([waits])
            .chain(fault(60, 200, "stop holder", 1)),
    );
}

#[test]
fn lock_that_is_broken_goes_to_another() {
    let keys = [key(90, "x", 5, 400), key(120, "y", NEXT, 520)];
    let held = [taken(10, 1, 5, 400)];
    breaks("C6", keys.clone().into_iter().chain(held.clone()));
    passes(
        keys.clone()
            .into_iter()
            .chain(held.clone())
            .chain(broken_lock()),
    );
    // Before it was broken; and another lease than the one that was.
    let early = [key(20, "x", 5, 400), key(50, "y", NEXT, 520)];
    breaks("C6", early.into_iter().chain(held).chain(broken_lock()));
    let other = [key(90, "x", 9, 400), key(120, "y", NEXT, 520)];
    let held = [taken(10, 2, 9, 400)];
    breaks("C6", other.into_iter().chain(held).chain(broken_lock()));
}

#[test]
fn lock_that_is_broken_goes_to_the_first_in_line() {
    let history = |owner: &str, rest: &str| {
        let begun = [key(95, "x", 5, 500), line(95, "u/host/2/1 v/host/3/1")];
        let done = [key(115, owner, NEXT, 900), line(115, rest)];
        begun.into_iter().chain(done).chain(broken_lock())
    };
    passes(history("u/host/2/1", "v/host/3/1"));
    breaks("C6", history("v/host/3/1", "u/host/2/1"));
    let deaf = fault(50, 60, "client kill pubsub", ALL);
    passes(history("v/host/3/1", "u/host/2/1").chain(deaf));
}

#[test]
fn owner_whose_lease_was_broken_does_not_have_it_again() {
    let named = |at, ids: &str| with(event(at, "broken", 0), "", ids, 0);
    let history = |ids| [named(115, ids), key(115, "u/host/1/1", 5, 400)];
    breaks("C6", history("90 90:u "));
    passes(history("90 90:v "));
    passes(history(""));
    let shares = with(
        event(115, "sharers", 0),
        "",
        "0 u/host/1/1 -8 1 u/host/1/1 90",
        0,
    );
    let keys = [key(115, "crosslock:readers", 8, 400), shares];
    breaks(
        "C6",
        keys.clone()
            .into_iter()
            .chain([named(115, "90 80:v 90:u ")]),
    );
    passes(keys.into_iter().chain([named(115, "90 80:v ")]));
}

#[test]
fn line_keeps_its_order_when_a_lock_is_broken() {
    let turned = [line(95, "x y z"), line(115, "y x z")];
    breaks("C6", turned.into_iter().chain(broken_lock()));
}

#[test]
fn lock_that_is_broken_is_given_on_soon() {
    let history = |at| {
        let waits = ask(50, 2, "lock", 0);
        [taken(10, 1, 5, 400), waits, taken(at, 2, NEXT, at + 400)]
            .into_iter()
            .chain(broken_lock())
    };
    passes(history(250));
    breaks("C7", history(300));
    passes(history(300).chain(fault(105, 107, "client kill pubsub", ALL)));
    // Another break is no excuse.
    breaks("C7", history(300).chain([broke(115, 1, 5)]));
}

#[test]
fn break_abandons() {
    let found = Event {
        detail: "abandoned".into(),
        ..taken(120, 2, NEXT, 520)
    };
    passes([found.clone()].into_iter().chain(broken_lock()));
    let other = Event {
        name: "b".into(),
        ..found
    };
    breaks("C4", [other.clone()].into_iter().chain(broken_lock()));
    // One that had both left the other, too.
    let both = Event {
        name: "a b".into(),
        ..ask(1, 3, "lock", 0)
    };
    passes([both, other].into_iter().chain(broken_lock()));
}

#[test]
fn register_refuses_a_reader_whose_lease_was_broken() {
    let reads = |at, detail: &str, outcome: &str, value| Event {
        token: 8,
        detail: detail.into(),
        outcome: outcome.into(),
        until: value,
        ..reading(event(at, "register", 1))
    };
    let writes = |at, detail, value| register(at, 2, NEXT, detail, "accepted", value);
    let history = |outcome| {
        [
            reading(taken(10, 1, 8, 400)),
            reads(20, "peek", "accepted", 0),
            taken(120, 2, NEXT, 520),
            writes(130, "read", 0),
            writes(140, "write", 1),
            reads(150, "leave", outcome, 1),
            broke(110, 1, 8),
        ]
    };
    passes(history("stale"));
    breaks("C2", history("accepted"));
}
