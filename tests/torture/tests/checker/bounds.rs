//! C7.

use super::*;

#[test]
fn locker_that_takes_long_to_open_breaks_c7() {
    let opened = |at| with(event(at, "answer", 1), "opened", "", 0);
    passes([ask(10, 1, "open", 0), opened(500)]);
    breaks("C7", [ask(10, 1, "open", 0), opened(700)]);
}

#[test]
fn timed_call_that_is_late_breaks_c7() {
    let answer = |at| with(event(at, "answer", 1), "none", "", 0);
    passes([ask(10, 1, "timed", 50), answer(200)]);
    breaks("C7", [ask(10, 1, "timed", 50), answer(250)]);
    passes([ask(10, 1, "lock", 0), answer(9_000)]);
    let stop = fault(20, 600, "stop waiter", 1);
    passes(
        [ask(10, 1, "timed", 50), answer(700)]
            .into_iter()
            .chain(stop),
    );
}

#[test]
fn release_that_takes_long_breaks_c7() {
    let history = |at| {
        let released = with(event(at, "released", 1), "ok", "", 0);
        [taken(10, 1, 5, 400), event(20, "release", 1), released]
    };
    passes(history(500));
    breaks("C7", history(600));
}

#[test]
fn wait_for_a_killed_holder_ends_with_its_ttl() {
    let mut kill = fault(100, 101, "kill holder", 1);
    kill[0].token = 1;
    let history = |at| {
        [
            ask(50, 2, "lock", 0),
            taken(10, 1, 5, 400),
            taken(at, 2, 9, at + 300),
        ]
    };
    passes(history(700).into_iter().chain(kill.clone()));
    breaks("C7", history(900).into_iter().chain(kill.clone()));
    // Another fault may explain it.
    let outage = fault(400, 500, "stop server", ALL);
    passes(history(900).into_iter().chain(kill).chain(outage));
}

#[test]
fn lock_that_is_released_goes_to_who_waits_at_once() {
    let history = |at| {
        let released = with(event(301, "released", 1), "ok", "", 0);
        let begun = [ask(50, 2, "lock", 0), taken(10, 1, 5, 400)];
        let done = [event(300, "release", 1), released, taken(at, 2, 9, 1_000)];
        begun.into_iter().chain(done)
    };
    passes(history(400));
    breaks("C7", history(500));
    // One that died long before is no excuse, one that may have been given the lock is.
    breaks("C7", history(500).chain(fault(100, 101, "kill waiter", 3)));
    passes(history(500).chain(fault(302, 303, "kill waiter", 3)));
    passes(history(500).chain(fault(100, 101, "stop waiter", 3)));
}

#[test]
fn lock_that_a_program_has_whose_command_never_began_is_not_free() {
    let history = |pid: u32, last: u64| {
        let released = with(event(301, "released", 1), "ok", "", 0);
        let begun = [ask(50, 2, "lock", 0), taken(10, 1, 5, 400)];
        let owner = format!("u/host/{pid}/{pid}");
        let looks = [310, last].map(|at| with(event(at, "key", 0), "", &owner, at + 400));
        let done = [event(300, "release", 1), released, taken(900, 2, 9, 1_200)];
        let all = begun.into_iter().chain(looks).chain(done);
        all.map(|event| match event.op.as_str() {
            "key" => Event { token: 7, ..event },
            _ => event,
        })
    };
    passes(history(77, 850));
    // After it the lock was free for too long.
    breaks("C7", history(77, 700));
    // What a worker has, it tells itself.
    breaks("C7", history(2, 850));
}

#[test]
fn locks_are_taken_soon_after_an_outage() {
    let outage = fault(100, 200, "stop server", ALL);
    passes(outage.clone().into_iter().chain([taken(700, 1, 5, 900)]));
    breaks("C7", outage.into_iter().chain([taken(800, 1, 5, 900)]));
}

#[test]
fn lock_that_nobody_comes_to_breaks_c7() {
    let answer = |at| taken(at, 1, 5, at + 300);
    passes([ask(10, 1, "lock", 0), answer(14_000)]);
    breaks("C7", [ask(10, 1, "lock", 0), answer(16_000)]);
}

#[test]
fn writer_comes_when_the_last_reader_has_left() {
    let history = |at| {
        let readers = [
            reading(taken(10, 1, 4, 900)),
            event(500, "release", 1),
            with(event(501, "released", 1), "ok", "", 0),
            reading(taken(20, 2, 8, 400)),
            event(300, "release", 2),
            with(event(301, "released", 2), "ok", "", 0),
        ];
        let writer = [ask(50, 3, "lock", 0), taken(at, 3, 13, at + 300)];
        readers.into_iter().chain(writer)
    };
    passes(history(600));
    breaks("C7", history(700));
    // Another may have had it, and waited for the second of two names.
    let both = Event {
        name: "a b".into(),
        ..ask(40, 4, "lock", 0)
    };
    passes(history(700).chain([both.clone()]));
    let gave_up = with(event(400, "answer", 4), "none", "", 0);
    breaks("C7", history(700).chain([both, gave_up]));
}

#[test]
fn writer_waits_for_a_dead_reader_no_longer_than_its_ttl() {
    let mut kill = fault(100, 101, "kill holder", 1);
    kill[0].token = 1;
    let history = |at| {
        let dead = reading(taken(10, 1, 4, 400));
        [dead, ask(50, 2, "lock", 0), taken(at, 2, 13, at + 300)]
            .into_iter()
            .chain(kill.clone())
    };
    passes(history(780));
    breaks("C7", history(820));
}
