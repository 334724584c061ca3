//! The others: together with the quick ones they are the full set.

use super::{
    ADOPT, ADOPT_ONE, ALL, CLIENTS, HOLDERS, LINES_LOST, LOCK, ONE, PASSES_ON, PLAIN, READ, SERVER,
    TIMED, TWO, WRITE, several,
};
use crate::setup::Setup;
use crate::world::Fault;

pub const FULL: &[Setup] = &[
    Setup {
        title: "exclusive: three faults of the network",
        clients: &[&[LOCK], &[TIMED]],
        faults: 3,
        ..PLAIN
    },
    Setup {
        title: "exclusive: three faults of clients",
        clients: &[&[LOCK], &[LOCK]],
        faults: 3,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "exclusive: two faults of the server",
        clients: &[&[LOCK], &[LOCK]],
        faults: 2,
        kinds: SERVER,
        ..PLAIN
    },
    Setup {
        title: "exclusive: a line of three, one fault of the network",
        clients: &[&[LOCK], &[TIMED], &[LOCK]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "exclusive: a line of three, one fault of clients",
        clients: &[&[LOCK], &[TIMED], &[LOCK]],
        faults: 1,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "exclusive: two acquisitions, one fault of any kind",
        clients: &[&[LOCK, LOCK], &[TIMED]],
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "exclusive: all that a holder may do, one fault of any kind",
        clients: &[&[LOCK], &[TIMED]],
        faults: 1,
        kinds: ALL,
        choices: HOLDERS,
        ..PLAIN
    },
    Setup {
        title: "broken: twice, a line of three",
        clients: &[&[LOCK], &[TIMED], &[LOCK]],
        breaks: 2,
        ..PLAIN
    },
    Setup {
        title: "broken: one fault of any kind",
        clients: &[&[LOCK], &[LOCK]],
        breaks: 1,
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "broken: twice, all that a holder may do",
        clients: &[&[LOCK], &[TIMED]],
        breaks: 2,
        choices: HOLDERS,
        ..PLAIN
    },
    Setup {
        title: "broken: readers",
        clients: &[&[LOCK], &[READ], &[READ]],
        breaks: 1,
        ..PLAIN
    },
    Setup {
        title: "broken: permits, three clients",
        clients: &[&[ONE], &[ONE], &[TWO]],
        breaks: 1,
        ..PLAIN
    },
    Setup {
        title: "broken: several, one fault of the network",
        clients: &[&[several(0, 2)], &[several(1, 1)]],
        names: 2,
        breaks: 1,
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "passed on: to two, broken, two faults of the network",
        clients: &[&[LOCK], &[ADOPT], &[ADOPT]],
        choices: PASSES_ON,
        breaks: 1,
        faults: 2,
        ..PLAIN
    },
    Setup {
        title: "passed on: permits, broken, one fault of the network",
        clients: &[&[ONE], &[ADOPT_ONE], &[TWO]],
        choices: PASSES_ON,
        breaks: 1,
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "readers: two, one fault of the network",
        clients: &[&[LOCK], &[READ], &[READ]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "readers: two, a writer first, one fault of clients",
        clients: &[&[WRITE], &[READ], &[READ]],
        faults: 1,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "readers: two faults of the network",
        clients: &[&[LOCK], &[READ]],
        faults: 2,
        ..PLAIN
    },
    Setup {
        title: "permits: three clients, one fault of the network",
        clients: &[&[ONE], &[ONE], &[TWO]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "permits: three clients, one fault of clients",
        clients: &[&[ONE], &[ONE], &[TWO]],
        faults: 1,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "several: three clients, one fault of the network",
        clients: &[&[several(0, 2)], &[several(0, 2)], &[several(1, 1)]],
        names: 2,
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "several: two acquisitions, a part of a line is lost",
        clients: &[
            &[several(0, 2), several(0, 2)],
            &[several(0, 2), several(1, 1)],
        ],
        names: 2,
        faults: 1,
        kinds: LINES_LOST,
        ..PLAIN
    },
    Setup {
        title: "several: three clients, two parts of lines are lost",
        clients: &[&[several(0, 2)], &[several(0, 2)], &[several(0, 2)]],
        names: 2,
        faults: 2,
        kinds: &[&[Fault::DeleteQueue, Fault::DeleteWaiters]],
        ..PLAIN
    },
    Setup {
        title: "several: three clients, a part of a line is lost",
        clients: &[&[several(0, 2)], &[several(0, 2)], &[several(0, 2)]],
        names: 2,
        faults: 1,
        kinds: LINES_LOST,
        ..PLAIN
    },
];
