//! What random walks go through: more than can be gone through completely.

use super::{
    ADOPT, ADOPT_ONE, ALL, ALL_BUT_LINES, EAGER, HOLDERS, LOCK, ONE, PLAIN, READ, TIMED, TRY, TWO,
    WRITE, several,
};
use crate::setup::{Choices, Setup};

pub const WALKS: &[Setup] = &[
    Setup {
        title: "exclusive",
        clients: &[
            &[LOCK, TRY, LOCK, LOCK],
            &[TIMED, LOCK, LOCK, ADOPT],
            &[LOCK, TIMED, LOCK, ADOPT],
        ],
        ..WALK
    },
    Setup {
        title: "readers",
        clients: &[
            &[LOCK, READ, WRITE, READ],
            &[READ, WRITE, READ],
            &[EAGER, READ, LOCK],
        ],
        ..WALK
    },
    Setup {
        title: "permits",
        clients: &[
            &[ONE, TWO, ONE, ONE],
            &[ONE, ONE, TWO, ADOPT_ONE],
            &[TWO, ONE, LOCK],
        ],
        ..WALK
    },
    Setup {
        title: "two names",
        clients: &[
            &[several(0, 2), several(0, 1), several(0, 2)],
            &[several(1, 1), several(0, 2), several(0, 2)],
            &[several(0, 2), several(0, 1), several(1, 1)],
        ],
        names: 2,
        kinds: ALL_BUT_LINES,
        ..WALK
    },
];

const WALK: Setup = Setup {
    faults: 4,
    kinds: ALL,
    breaks: 2,
    choices: Choices {
        passes_on: true,
        ..HOLDERS
    },
    hand_overs: 1024,
    is_relative: false,
    ..PLAIN
};
