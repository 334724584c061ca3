//! The checker of the torture program, on histories that are written by hand.

#![cfg(target_os = "linux")]

mod bounds;
mod breaks;
mod commands;
mod failovers;
mod files;
mod lateness;
mod members;
mod passing;
mod server;
mod sharing;
mod stopping;
mod values;

use std::time::Duration;

use crosslock_torture::checker::{Rules, judge};
use crosslock_torture::history::{ALL, Event, HANDED_OVER, Mode};
use crosslock_torture::kinds::Class;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn rules() -> Rules {
    Rules {
        class: Class::Safe,
        ttl: Duration::from_millis(400),
        io_timeout: Duration::from_millis(150),
        replica_timeout: None,
        slack: Duration::from_millis(50),
        acquisitions: 0,
        of_each_sort: 0,
        commands: 0,
        permits: 3,
        stale_writes: 0,
        faults: Vec::new(),
    }
}

fn unsafe_rules() -> Rules {
    Rules {
        class: Class::Unsafe,
        ..rules()
    }
}

/// An event at so many milliseconds.
fn event(at: u64, op: &str, id: u64) -> Event {
    Event {
        at: at * MS,
        op: op.into(),
        id,
        name: "a".into(),
        process: u32::try_from(id % 10).unwrap(),
        pid: u32::try_from(id % 10).unwrap(),
        ..Event::default()
    }
}

/// A lock that is taken, with its token, and until when its lease lasts.
fn taken(at: u64, id: u64, token: u64, until: u64) -> Event {
    Event {
        outcome: "held".into(),
        token,
        until: until * MS,
        ..event(at, "answer", id)
    }
}

fn reading(event: Event) -> Event {
    Event {
        mode: Mode::Read,
        ..event
    }
}

fn with(event: Event, outcome: &str, detail: &str, until: u64) -> Event {
    Event {
        outcome: outcome.into(),
        detail: detail.into(),
        until: until * MS,
        ..event
    }
}

fn ask(at: u64, id: u64, how: &str, timeout: u64) -> Event {
    with(event(at, "ask", id), "", how, timeout)
}

fn fault(from: u64, until: u64, kind: &str, process: u32) -> [Event; 2] {
    let name = String::new();
    let id = from;
    let [begun, done] =
        [event(from, "fault", id), event(until, "faulted", id)].map(|event| Event {
            process,
            detail: kind.into(),
            name: name.clone(),
            ..event
        });
    [
        begun,
        Event {
            outcome: "holder".into(),
            ..done
        },
    ]
}

#[track_caller]
fn broken(events: impl IntoIterator<Item = Event>, rules: &Rules) -> Vec<&'static str> {
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by_key(|event| event.at);
    let mut found: Vec<_> = judge(&events, rules).iter().map(|one| one.rule).collect();
    found.dedup();
    found
}

#[track_caller]
fn passes(events: impl IntoIterator<Item = Event>) {
    assert_eq!(broken(events, &rules()), [""; 0]);
}

#[track_caller]
fn breaks(rule: &str, events: impl IntoIterator<Item = Event>) {
    assert_eq!(broken(events, &rules()), [rule]);
}

#[test]
fn holders_one_after_the_other_pass() {
    passes([
        taken(10, 1, 5, 400),
        event(20, "release", 1),
        taken(21, 2, 9, 400),
        // It is over, released or not.
        taken(400, 3, 13, 800),
    ]);
}

#[test]
fn two_holders_at_a_time_break_c1() {
    breaks("C1", [taken(10, 1, 5, 400), taken(399, 2, 9, 800)]);
    let renewed = with(event(300, "look", 1), "", "", 700);
    breaks("C1", [taken(10, 1, 5, 400), renewed, taken(650, 2, 9, 900)]);
}

#[test]
fn long_lease_is_remembered_behind_a_short_one() {
    let short = [taken(500, 2, 9, 600), event(510, "release", 2)];
    let long = with(event(20, "look", 1), "", "", 900);
    let found = broken(
        [taken(10, 1, 5, 400), long, taken(700, 3, 13, 800)]
            .into_iter()
            .chain(short),
        &rules(),
    );
    assert_eq!(found, ["C1"]);
    let events = [
        taken(10, 1, 5, 900),
        taken(500, 2, 9, 600),
        taken(700, 3, 13, 800),
    ];
    assert_eq!(judge(&events, &rules()).len(), 2);
}

#[test]
fn two_names_may_be_held_at_a_time() {
    let other = Event {
        name: "b".into(),
        ..taken(11, 2, 5, 400)
    };
    passes([taken(10, 1, 5, 400), other]);
}

#[test]
fn overlap_after_an_unsafe_fault_ends_with_the_next_renewal() {
    let flush = fault(100, 101, "flushall", ALL);
    let seen = |at, id| with(event(at, "look", id), "", "", at + 300);
    let history = |at| {
        let (old, new) = (taken(10, 1, 5, 400), taken(120, 2, 9, 500));
        [old, new, seen(at, 1), seen(900, 2)].into_iter()
    };
    assert_eq!(
        broken(history(250).chain(flush.clone()), &unsafe_rules()),
        [""; 0]
    );
    assert_eq!(broken(history(600).chain(flush), &unsafe_rules()), ["C1"]);
    assert_eq!(broken(history(250), &unsafe_rules()), ["C1"]);
}

#[test]
fn overlap_after_an_unsafe_fault_may_be_told_in_either_order() {
    let flush = fault(100, 101, "flushall", ALL);
    let seen = |at, id| with(event(at, "look", id), "", "", at + 300);
    let history = |at| {
        let (new, old) = (taken(120, 2, 9, 500), taken(121, 1, 5, 500));
        [new, old, seen(900, 2), seen(at, 1)].into_iter()
    };
    let broken_by = |at| broken(history(at).chain(flush.clone()), &unsafe_rules());
    assert_eq!(broken_by(250), [""; 0]);
    assert_eq!(broken_by(600), ["C1"]);
}

/// What the register has answered.
fn register(at: u64, id: u64, token: u64, detail: &str, outcome: &str, value: u64) -> Event {
    Event {
        token,
        detail: detail.into(),
        outcome: outcome.into(),
        until: value,
        ..event(at, "register", id)
    }
}

#[test]
fn tokens_that_repeat_or_decrease_break_c3() {
    let release = event(20, "release", 1);
    breaks(
        "C3",
        [taken(10, 1, 5, 400), release.clone(), taken(30, 2, 5, 400)],
    );
    breaks("C3", [taken(10, 1, 5, 400), release, taken(30, 2, 3, 400)]);
}

#[test]
fn lease_that_is_not_valid_when_it_comes_has_no_order() {
    let late = taken(30, 2, 3, 0);
    passes([taken(10, 1, 5, 400), late]);
}

#[test]
fn loss_needs_a_fault() {
    let history = [
        taken(10, 1, 5, 400),
        with(event(300, "lost", 1), "expired", "", 0),
    ];
    breaks("C4", history.clone());
    passes(
        history
            .clone()
            .into_iter()
            .chain(fault(100, 200, "black hole", 1)),
    );
    // Another process's.
    breaks(
        "C4",
        history
            .clone()
            .into_iter()
            .chain(fault(100, 200, "black hole", 2)),
    );
    // One that loses nothing.
    breaks(
        "C4",
        history
            .into_iter()
            .chain(fault(100, 200, "script flush", ALL)),
    );
}

#[test]
fn abandoned_lock_needs_a_fault() {
    let found = Event {
        detail: "abandoned".into(),
        ..taken(3000, 1, 5, 3400)
    };
    breaks("C4", [found.clone()]);
    passes(
        [found.clone()]
            .into_iter()
            .chain(fault(2500, 2501, "kill holder", 3)),
    );
    let reply = fault(2500, 2501, "lose reply to acquire", 3);
    breaks("C4", [found.clone()].into_iter().chain(reply));
    // What happened before another had it isn't the cause.
    let kill = fault(500, 501, "kill holder", 3);
    let between = taken(2_000, 2, 3, 2_100);
    breaks("C4", [between, found].into_iter().chain(kill));
}

#[test]
fn panic_of_an_exclusive_holder_abandons() {
    let found = Event {
        detail: "abandoned".into(),
        ..taken(3000, 1, 50, 3400)
    };
    let ended = |at, how| {
        let release = with(event(at, "release", 2), "", how, 2900);
        [taken(2500, 2, 5, 2900), release, found.clone()]
    };
    passes(ended(2600, "panic"));
    breaks("C4", ended(2600, "drop"));
    let [held, release, found] = ended(2600, "panic");
    breaks("C4", [reading(held), reading(release), found]);
}

#[test]
fn clock_that_steps_excuses_no_token() {
    let step = fault(100, 600, "server clock back", ALL);
    let history = |token| {
        let (release, then) = (event(300, "release", 1), taken(700, 2, token, 900));
        [taken(10, 1, 5, 400), release, then].into_iter()
    };
    assert_eq!(
        broken(history(9).chain(step.clone()), &unsafe_rules()),
        [""; 0]
    );
    assert_eq!(broken(history(3).chain(step), &unsafe_rules()), ["C3"]);
}

#[test]
fn error_needs_a_fault_that_allows_it() {
    let error = with(event(200, "answer", 1), "denied", "", 0);
    breaks("C8", [error.clone()]);
    passes(
        [error.clone()]
            .into_iter()
            .chain(fault(100, 150, "acl revoked", ALL)),
    );
    breaks(
        "C8",
        [error]
            .into_iter()
            .chain(fault(100, 150, "stop server", ALL)),
    );
    let release = with(event(200, "released", 1), "unavailable", "", 0);
    breaks("C8", [release.clone()]);
    passes(
        [release]
            .into_iter()
            .chain(fault(100, 150, "stop server", ALL)),
    );
}

#[test]
fn idle_run_breaks_c9() {
    let idle = Rules {
        acquisitions: 1,
        stale_writes: 1,
        faults: vec![("flushall", 1)],
        ..rules()
    };
    assert_eq!(judge(&[], &idle).len(), 3);
    let stale = register(4, 1, 5, "write", "stale", 0);
    let begin = register(3, 2, 9, "read", "accepted", 0);
    let [begun, done] = fault(1, 2, "flushall", ALL);
    let busy = [
        begun.clone(),
        done.clone(),
        begin,
        stale,
        taken(10, 1, 5, 400),
    ];
    assert_eq!(judge(&busy, &idle).len(), 0);
    // Nobody was hit.
    let missed = Event {
        outcome: String::new(),
        ..done
    };
    assert_eq!(judge(&[begun, missed], &idle).len(), 3);
}

proptest! {
    #[test]
    fn event_is_read_as_it_was_written(
        at: u64, id: u64, token in 0..3u64, process in 0..3u32, name: String, detail: String,
    ) {
        let (op, outcome) = ("look".to_owned(), String::new());
        let event = Event { at, op, process, id, name, outcome, token, detail, ..Event::default() };
        prop_assert_eq!(Event::from_json(&event.to_json()), Some(event));
    }

    #[test]
    fn line_of_a_killed_process_is_left_out(cut in 1..60usize, name: String) {
        let event = Event { name, ..Event::now("look") };
        let line = event.to_json();
        let cut = (0..=line.len().saturating_sub(cut)).rev().find(|at| line.is_char_boundary(*at)).unwrap();
        prop_assert_eq!(Event::from_json(&line[..cut]), None);
    }
}
