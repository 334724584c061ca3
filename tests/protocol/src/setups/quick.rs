//! Those that every run of the tests goes through.

use super::{
    ADOPT, ALL, CLIENTS, DELETED_AND_LATE, EAGER, GOES_ON, HOLDERS, LINES_LOST, LOCK, ONE,
    PASSES_ON, PLAIN, READ, SERVER, TIMED, TRY, TWO, WRITE, several,
};
use crate::setup::Setup;

pub const QUICK: &[Setup] = &[
    Setup {
        title: "exclusive: two acquisitions each, all that a holder may do",
        clients: &[&[LOCK, LOCK], &[TIMED, TRY]],
        choices: HOLDERS,
        ..PLAIN
    },
    Setup {
        title: "exclusive: a line of three",
        clients: &[&[LOCK, LOCK], &[TIMED], &[LOCK]],
        ..PLAIN
    },
    Setup {
        title: "exclusive: two faults of the network",
        clients: &[&[LOCK], &[TIMED]],
        faults: 2,
        ..PLAIN
    },
    Setup {
        title: "exclusive: two faults of clients",
        clients: &[&[LOCK], &[LOCK]],
        faults: 2,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "exclusive: one fault of the server",
        clients: &[&[LOCK, LOCK], &[LOCK]],
        faults: 1,
        kinds: SERVER,
        ..PLAIN
    },
    Setup {
        title: "broken: a line of three",
        clients: &[&[LOCK], &[LOCK], &[LOCK]],
        breaks: 1,
        ..PLAIN
    },
    Setup {
        title: "broken: downgraded, or handed over",
        clients: &[&[LOCK], &[LOCK]],
        breaks: 1,
        choices: GOES_ON,
        ..PLAIN
    },
    Setup {
        title: "broken: twice",
        clients: &[&[LOCK], &[LOCK]],
        breaks: 2,
        ..PLAIN
    },
    Setup {
        title: "broken: one fault of the network",
        clients: &[&[LOCK], &[TIMED]],
        breaks: 1,
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "broken: permits, twice",
        clients: &[&[ONE], &[TWO]],
        breaks: 2,
        ..PLAIN
    },
    Setup {
        title: "broken: several",
        clients: &[&[several(0, 2)], &[several(1, 1)]],
        names: 2,
        breaks: 1,
        ..PLAIN
    },
    Setup {
        title: "passed on: to two, one fault of any kind",
        clients: &[&[LOCK], &[ADOPT], &[ADOPT]],
        choices: PASSES_ON,
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "passed on: beside a waiter, broken",
        clients: &[&[LOCK], &[ADOPT], &[LOCK]],
        choices: PASSES_ON,
        breaks: 1,
        ..PLAIN
    },
    Setup {
        title: "readers: three, writers first, or readers first",
        clients: &[&[WRITE], &[READ, LOCK], &[EAGER]],
        ..PLAIN
    },
    Setup {
        title: "readers: one fault of any kind",
        clients: &[&[LOCK], &[READ]],
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "readers: they are deleted, and a request comes late",
        clients: &[&[LOCK], &[READ]],
        faults: 2,
        kinds: DELETED_AND_LATE,
        ..PLAIN
    },
    Setup {
        title: "permits: three clients",
        clients: &[&[ONE, TWO], &[ONE], &[TWO]],
        ..PLAIN
    },
    Setup {
        title: "permits: one fault of any kind",
        clients: &[&[ONE], &[TWO]],
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "permits: they are deleted, and a request comes late",
        clients: &[&[LOCK], &[ONE]],
        faults: 2,
        kinds: DELETED_AND_LATE,
        ..PLAIN
    },
    Setup {
        title: "several: three clients",
        clients: &[
            &[several(0, 2)],
            &[several(0, 1), several(1, 1)],
            &[several(0, 2)],
        ],
        names: 2,
        ..PLAIN
    },
    Setup {
        title: "several: one fault of any kind",
        clients: &[&[several(0, 2)], &[several(0, 2)]],
        names: 2,
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "several: a part of a line is lost",
        clients: &[&[several(0, 2)], &[several(0, 2)], &[several(1, 1)]],
        names: 2,
        faults: 1,
        kinds: LINES_LOST,
        ..PLAIN
    },
];
