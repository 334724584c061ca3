//! Leases that are passed on to another process.

use super::server::key;
use super::*;

/// Call 1 has the lock, and passes it on.
fn passed() -> Vec<Event> {
    vec![
        taken(10, 1, 5, 400),
        with(event(100, "release", 1), "", "pass", 400),
        with(event(101, "released", 1), "passed", "", 0),
    ]
}

/// Another call adopts it.
fn adopts(at: u64, id: u64) -> Event {
    Event {
        until: 1,
        ..ask(at, id, "adopt", 0)
    }
}

fn is_refused(at: u64, id: u64) -> Event {
    with(event(at, "answer", id), "lost", "", 0)
}

#[test]
fn lease_that_is_adopted_goes_on_with_a_larger_token() {
    let adopted = |token| [adopts(120, 2), taken(130, 2, token, 530)];
    passes(passed().into_iter().chain(adopted(9)));
    breaks("C3", passed().into_iter().chain(adopted(5)));
    breaks("C3", passed().into_iter().chain(adopted(3)));
    // Of those that share, too.
    let sharing = passed().into_iter().chain(adopted(3)).map(reading);
    breaks("C3", sharing);
}

#[test]
fn lease_is_adopted_once() {
    let adopted = [adopts(120, 2), taken(130, 2, 9, 200)];
    let again = [
        event(140, "release", 2),
        adopts(125, 3),
        taken(150, 3, 13, 550),
    ];
    breaks(
        "C6",
        passed().into_iter().chain(adopted.clone()).chain(again),
    );
    let refused = [adopts(125, 3), is_refused(150, 3)];
    passes(passed().into_iter().chain(adopted).chain(refused));
}

#[test]
fn lease_that_was_passed_on_is_nobody_elses() {
    breaks("C1", passed().into_iter().chain([taken(390, 3, 9, 790)]));
    passes(passed().into_iter().chain([taken(400, 3, 9, 800)]));
    let keys = || [key(90, "x", 5, 400), key(150, "y", 9, 550)].into_iter();
    breaks("C6", passed().into_iter().chain(keys()));
    passes(passed().into_iter().chain(keys()).chain([adopts(120, 2)]));
    breaks(
        "C6",
        passed().into_iter().chain(keys()).chain([adopts(160, 2)]),
    );
}

#[test]
fn closed_locker_has_released_what_is_passed_on_later() {
    let keys = || [key(15, "x", 5, 400), key(90, "y", 9, 490)].into_iter();
    let close = |at| Event {
        name: String::new(),
        ..ask(at, 31, "close", 0)
    };
    let history = |at| passed().into_iter().chain(keys()).chain([close(at)]);
    passes(history(80));
    breaks("C6", history(95));
    // It was no more its locker's.
    let keys = [key(15, "x", 5, 400), key(150, "y", 9, 550)];
    let history = passed().into_iter().chain(keys).chain([close(120)]);
    breaks("C6", history);
}

#[test]
fn adoption_is_refused_for_a_cause() {
    let refused = |at| {
        passed()
            .into_iter()
            .chain([adopts(at - 10, 2), is_refused(at, 2)])
    };
    breaks("C4", refused(300));
    // It was over.
    passes(refused(405));
    // It was broken; another may have adopted it.
    let broke = Event {
        token: 5,
        until: 110 * MS,
        ..event(115, "broke", 9)
    };
    passes(refused(300).chain([broke]));
    passes(refused(300).chain([adopts(200, 3)]));
    breaks("C4", refused(300).chain([adopts(310, 3)]));
    // It had been lost before.
    let lost = [
        taken(10, 1, 5, 400),
        event(100, "release", 1),
        adopts(120, 2),
        is_refused(130, 2),
    ];
    let lost = lost.map(|event| match event.op.as_str() {
        "release" => with(event, "", "pass", 0),
        _ => event,
    });
    passes(lost);
}

#[test]
fn lease_that_nobody_adopts_is_free_after_its_ttl() {
    let next = |at| [ask(50, 3, "lock", 0), taken(at, 3, 9, at + 400)];
    passes(passed().into_iter().chain(next(800)));
    breaks("C7", passed().into_iter().chain(next(810)));
    // One that somebody adopted, and died.
    let mut kill = fault(120, 130, "kill holder", 2);
    kill[0].token = 2;
    let died = passed().into_iter().chain([adopts(115, 2)]).chain(kill);
    passes(died.chain(next(810)));
}

#[test]
fn lease_that_was_passed_on_may_be_found_abandoned() {
    let found = Event {
        detail: "abandoned".into(),
        ..taken(3_000, 3, 50, 3_400)
    };
    passes(
        passed()
            .into_iter()
            .chain([found.clone()])
            .map(|event| Event {
                at: if event.id == 1 {
                    event.at + 2_500 * MS
                } else {
                    event.at
                },
                until: if event.id == 1 && event.until > 0 {
                    event.until + 2_500 * MS
                } else {
                    event.until
                },
                ..event
            }),
    );
    breaks("C4", [found]);
}

/// The server may have its lease still, by a renewal that came late, and releases that.
#[test]
fn lost_guard_passes_nothing_on() {
    let outcome = |outcome| {
        let holder = [
            taken(10, 1, 5, 80),
            with(event(100, "release", 1), "", "pass", 0),
            with(event(101, "released", 1), outcome, "", 0),
        ];
        let keys = [key(90, "x", 5, 400), key(150, "y", 9, 550)];
        let late = fault(30, 90, "drop", 1);
        holder.into_iter().chain(keys).chain(late)
    };
    passes(outcome("lost"));
    breaks("C6", outcome("passed"));
}
