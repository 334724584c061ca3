//! What a process that ran late is excused of, and what not.

use super::server::{key, line};
use super::*;
use crosslock_torture::history::{DRIVER, SERVER, WAITED};

/// Threads of a process that should have run at `from` ran at `until`.
fn late(process: u32, from: u64, until: u64) -> Event {
    Event {
        process,
        pid: process,
        name: String::new(),
        ..with(event(from, "late", 0), "", "", until)
    }
}

/// A history in which something took too long, or failed for want of time.
struct Case {
    what: &'static str,
    rule: &'static str,
    history: Vec<Event>,
    /// Who explains it by having been late, and when.
    process: u32,
    when: (u64, u64),
    /// Another time that explains nothing.
    elsewhen: (u64, u64),
    /// Whether the driver and the server explain it as well.
    passes_through: bool,
}

/// A call of process 1 that fails.
fn failed(how: &str, timeout: u64, at: u64) -> Vec<Event> {
    let answer = with(event(at, "answer", 1), "unavailable", "", 0);
    vec![ask(100, 1, how, timeout), answer]
}

#[rustfmt::skip]
#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let case = |what, rule, history, process, when, elsewhen, passes_through| {
        Case { what, rule, history, process, when, elsewhen, passes_through }
    };
    let done = |at, op, id, outcome| with(event(at, op, id), outcome, "", 0);
    let mut kill = fault(100, 101, "kill holder", 1).to_vec();
    kill[0].token = 1;
    kill.extend([ask(50, 2, "lock", 0), taken(10, 1, 5, 400), taken(900, 2, 9, 1_200)]);
    let mut outage = fault(100, 200, "stop server", ALL).to_vec();
    outage.push(taken(900, 1, 5, 1_200));
    let mut abandoned = taken(3_000, 1, 5, 3_400);
    abandoned.detail = "abandoned".into();
    let timed = vec![ask(10, 1, "timed", 50), done(400, "answer", 1, "none")];
    let release = vec![taken(10, 1, 5, 900), event(20, "release", 1), done(700, "released", 1, "ok")];
    let handed = vec![
        ask(50, 2, "lock", 0), taken(10, 1, 5, 400), event(300, "release", 1),
        done(301, "released", 1, "ok"), taken(500, 2, 9, 1_000),
    ];
    let unreleased = vec![
        taken(10, 1, 5, 900), with(event(20, "release", 1), "", "unlock", 900),
        done(500, "released", 1, "unavailable"),
    ];
    // It ends with its lease.
    let short = vec![
        taken(10, 1, 5, 400), with(event(300, "release", 1), "", "unlock", 400),
        done(400, "released", 1, "unavailable"),
    ];
    let lost = vec![taken(10, 1, 5, 400), done(410, "lost", 1, "expired")];
    // Most of its time was over when its holder heard of it.
    let heard_late = vec![taken(310, 1, 5, 400), done(410, "lost", 1, "expired")];
    let endless = vec![ask(10, 1, "lock", 0), taken(16_000, 1, 5, 16_300)];
    let swapped = vec![
        with(event(1_101, "line", 0), "", "u/host/1/1 v/host/2/2", 0),
        with(event(1_112, "line", 0), "", "v/host/2/2 u/host/1/1", 0),
    ];
    vec![
        case("a timed call is late", "C7", timed, 1, (20, 390), (400, 800), false),
        case("a release is late", "C7", release, 1, (30, 330), (700, 900), false),
        case("nobody comes", "C7", endless, 1, (20, 2_000), (16_001, 18_000), true),
        case("a dead holder's lock is free late", "C7", kill, 2, (660, 890), (901, 1_200), true),
        case("a lock is handed on late", "C7", handed, 2, (310, 450), (10, 290), true),
        case("an outage ends late", "C7", outage, 1, (250, 500), (10, 190), true),
        case("a lease is lost", "C4", lost, 1, (60, 200), (411, 700), true),
        case("an adoption fails", "C8", failed("adopt", 0, 425), 1, (200, 275), (426, 900), true),
        case("a lease is heard of late", "C4", heard_late, 1, (60, 200), (411, 700), true),
        case("a lock is abandoned", "C4", vec![ask(2_500, 2, "lock", 0), abandoned],
            2, (2_500, 2_700), (500, 900), true),
        case("an attempt fails", "C8", failed("try", 0, 300), 1, (150, 200), (301, 400), true),
        case("a timed call fails", "C8", failed("timed", 400, 500), 1, (480, 495), (200, 250), true),
        case("a patient call fails", "C8", failed("lock", 0, 1_300), 1, (400, 700), (50, 300), true),
        case("a release fails", "C8", unreleased, 1, (100, 300), (501, 800), true),
        case("a short release fails", "C8", short, 1, (310, 340), (200, 290), true),
        case("a line changes", "C6", swapped, 1, (500, 620), (10, 200), true),
    ]
}

#[track_caller]
fn assert_found(case: &Case, lateness: Option<(u32, (u64, u64))>, is_found: bool) {
    let late = lateness.map(|(process, (from, until))| late(process, from, until));
    let found = broken(case.history.iter().cloned().chain(late), &rules());
    let expected: &[&str] = if is_found { &[case.rule] } else { &[] };
    assert_eq!(found, expected, "{}, with {lateness:?}", case.what);
}

#[test]
fn delay_without_lateness_is_found() {
    for case in cases() {
        assert_found(&case, None, true);
    }
}

#[test]
fn delay_while_its_process_was_late_is_excused() {
    for case in cases() {
        assert_found(&case, Some((case.process, case.when)), false);
    }
}

#[test]
fn delay_while_another_process_was_late_is_found() {
    for case in cases() {
        assert_found(&case, Some((3, case.when)), true);
    }
}

#[test]
fn delay_at_another_time_than_its_process_was_late_is_found() {
    for case in cases() {
        assert_found(&case, Some((case.process, case.elsewhen)), true);
    }
}

#[test]
fn delay_on_the_way_to_the_server_is_excused_where_the_way_matters() {
    for case in cases() {
        for process in [DRIVER, SERVER] {
            assert_found(&case, Some((process, case.when)), !case.passes_through);
        }
    }
}

#[test]
fn delay_that_is_longer_than_the_lateness_is_found() {
    let short = |(from, _): (u64, u64)| (from, from + 5);
    // Any lateness just before its end explains that a timed call has no answer.
    for case in cases()
        .iter()
        .filter(|case| case.what != "a timed call fails")
    {
        assert_found(case, Some((case.process, short(case.when))), true);
    }
}

#[test]
fn process_that_is_stopped_is_excused_of_no_more_than_the_stop() {
    let history = |end| {
        let answer = with(event(end, "answer", 1), "none", "", 0);
        let [begun, done] = fault(20, 220, "stop waiter", 1);
        // Its threads saw the stop, too.
        [
            ask(10, 1, "timed", 50),
            answer,
            begun,
            done,
            late(1, 20, 220),
        ]
    };
    passes(history(400));
    breaks("C7", history(420));
}

#[test]
fn process_is_excused_of_no_more_than_it_has_waited_for() {
    let waited = |until| Event {
        detail: WAITED.into(),
        ..late(1, 20, until)
    };
    let answer = with(event(400, "answer", 1), "none", "", 0);
    let history = [ask(10, 1, "timed", 50), answer];
    passes(history.clone().into_iter().chain([waited(220)]));
    breaks("C7", history.into_iter().chain([waited(200)]));
}

#[test]
fn lateness_of_several_at_the_same_time_counts_once() {
    let history = [
        ask(10, 1, "timed", 50),
        with(event(400, "answer", 1), "none", "", 0),
    ];
    let twice = [late(1, 20, 60), late(1, 25, 60)];
    breaks("C7", history.into_iter().chain(twice));
}

/// Every process, the driver and the server were late all the time.
fn all_late() -> Vec<Event> {
    let all = [0, 1, 2, 3, DRIVER, SERVER];
    all.map(|process| late(process, 1, 4_000)).into()
}

/// Histories that break the rules that no lateness excuses.
fn unsafe_histories() -> [(&'static str, Vec<Event>); 8] {
    let write = |at, id, token, value| register(at, id, token, "write", "accepted", value);
    let release = event(20, "release", 1);
    let left = with(event(2, "left", 1), "", "a thread", 0);
    let keys = [key(15, "x", 5, 410), key(30, "y", 9, 430)];
    [
        ("C1", vec![taken(10, 1, 5, 400), taken(399, 2, 9, 800)]),
        (
            "C1",
            vec![reading(taken(10, 1, 5, 400)), taken(300, 2, 9, 800)],
        ),
        ("C2", vec![write(10, 1, 5, 1), write(20, 2, 9, 1)]),
        ("C2", two_who_find_the_same_number()),
        (
            "C3",
            vec![taken(10, 1, 5, 400), release, taken(30, 2, 3, 400)],
        ),
        ("C5", vec![event(1, "bare", 1), left]),
        (
            "C6",
            [taken(10, 1, 5, 400)].into_iter().chain(keys).collect(),
        ),
        ("C6", dead_that_stays_first_in_line()),
    ]
}

fn two_who_find_the_same_number() -> Vec<Event> {
    let counts = |id| {
        let at = |millis| id * 100 + millis;
        [
            taken(at(0), id, 4 * id + 1, at(90)),
            with(event(at(1), "value", id), "", "", 0),
            with(event(at(10), "release", id), "", "commit", 0),
            with(event(at(11), "released", id), "ok", "", 0),
        ]
    };
    [counts(1), counts(2)].concat()
}

fn dead_that_stays_first_in_line() -> Vec<Event> {
    let mut kill = fault(100, 101, "kill waiter", 7);
    kill[0].token = 7;
    let stays = |at| line(at, "u/host/7/1 v/host/2/2");
    let seen = [
        key(190, "x", 5, 500),
        stays(200),
        key(600, "y", 9, 900),
        stays(600),
    ];
    seen.into_iter().chain(kill).collect()
}

#[test]
fn whatever_is_unsafe_is_found_although_all_were_late() {
    for (rule, history) in unsafe_histories() {
        breaks(rule, history.into_iter().chain(all_late()));
    }
}
