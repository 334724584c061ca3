//! C10: what `crosslock run` runs under a lock.

use crosslock_torture::history::{DRIVER, PROGRAM, TRIED, WAITED};

use super::*;

const OF_COMMAND: u64 = 7;

/// A command that runs under token 5 in between.
fn command(from: u64, until: u64) -> [Event; 2] {
    let of = |event: Event| Event {
        process: PROGRAM,
        ..event
    };
    let look = with(event(until, "look", OF_COMMAND), "", "", until);
    [of(taken(from, OF_COMMAND, 5, from)), of(look)]
}

fn late(from: u64, until: u64, process: u32, how: &str) -> Event {
    Event {
        process,
        ..with(event(from, "late", 0), "", how, until)
    }
}

#[test]
fn command_that_is_dead_before_another_has_its_lock_passes() {
    passes(command(10, 400).into_iter().chain([taken(401, 2, 9, 800)]));
    // Another lock's, and one that had it before.
    let other = Event {
        name: "b".into(),
        ..taken(200, 2, 9, 800)
    };
    let before = [taken(1, 3, 1, 300), event(5, "release", 3)];
    passes(command(10, 400).into_iter().chain([other]).chain(before));
}

#[test]
fn command_that_lives_while_another_has_its_lock_breaks_c10() {
    let history = || command(10, 400).into_iter().chain([taken(399, 2, 9, 800)]);
    breaks("C10", history());
    // No fault excuses it.
    for kind in ["stop program", "kill program", "cut program off"] {
        breaks("C10", history().chain(fault(20, 700, kind, PROGRAM)));
    }
    breaks("C10", history().chain(fault(20, 700, "stop server", ALL)));
}

#[test]
fn command_that_begins_when_another_has_its_lock_breaks_c10() {
    let history = [taken(5, 2, 9, 800)];
    breaks("C10", history.into_iter().chain(command(10, 400)));
    // The other had it before, and still has it.
    let history = [taken(5, 2, 1, 800)];
    breaks("C1", history.into_iter().chain(command(10, 400)));
}

#[test]
fn late_machine_excuses_a_command_then_and_there() {
    let history = |late| {
        let others = [taken(399, 2, 9, 800), late];
        command(10, 410).into_iter().chain(others)
    };
    passes(history(late(350, 380, PROGRAM, WAITED)));
    passes(history(late(350, 360, DRIVER, TRIED)));
    breaks("C10", history(late(350, 360, PROGRAM, WAITED)));
    // Before it was to be killed; another process; after it was dead.
    breaks("C10", history(late(150, 290, PROGRAM, WAITED)));
    breaks("C10", history(late(300, 400, 3, WAITED)));
    breaks("C10", history(late(410, 500, PROGRAM, WAITED)));
}

#[test]
fn command_whose_lock_is_broken_may_live_until_its_next_renewal() {
    let broke = Event {
        token: 5,
        pid: 7,
        ..with(event(102, "broke", 100), "", "", 100)
    };
    let history = |until| {
        let others = [taken(103, 2, 4009, 400), event(390, "release", 2)];
        let all = command(10, until).into_iter().chain(others);
        all.chain([broke.clone()])
            .chain(fault(100, 103, "break", ALL))
    };
    passes(history(400));
    let found = broken(history(480), &rules());
    assert!(found.contains(&"C10"), "{found:?}");
}
