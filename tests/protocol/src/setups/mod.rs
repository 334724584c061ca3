//! What is gone through.

/// A setup: its title, what each client wants one after the other, and what else is not plain.
macro_rules! setup {
    ($title:literal: $([$($want:expr),+])+ $(, $field:ident: $value:expr)*) => {
        Setup {
            title: $title,
            clients: &[$(&[$($want),+]),+],
            $($field: $value,)*
            ..PLAIN
        }
    };
}

macro_rules! setups {
    ($($title:literal: $([$($want:expr),+])+ $(, $field:ident: $value:expr)*;)+) => {
        &[$(setup!($title: $([$($want),+])+ $(, $field: $value)*)),+]
    };
}

mod mutants;

pub use self::mutants::mutants;
use crate::server::{Mode, Names};
use crate::setup::{Choices, Patience, Setup, Want};
use crate::world::Fault;

const fn want(mode: Mode, patience: Patience) -> Want {
    Want {
        names: Names::one(0),
        mode,
        patience,
    }
}

const LOCK: Want = want(Mode::Exclusive, Patience::Lock);
const TRY: Want = want(Mode::Exclusive, Patience::Try);
const TIMED: Want = want(Mode::Exclusive, Patience::Timed);
const WRITE: Want = want(Mode::Writer, Patience::Lock);
const READ: Want = want(Mode::Read, Patience::Lock);
const EAGER: Want = want(Mode::EagerRead, Patience::Lock);
const ONE: Want = want(Mode::Permits { count: 1, of: 2 }, Patience::Lock);
const TWO: Want = want(Mode::Permits { count: 2, of: 2 }, Patience::Lock);
const ADOPT: Want = want(Mode::Exclusive, Patience::Adopt);
const ADOPT_ONE: Want = want(Mode::Permits { count: 1, of: 2 }, Patience::Adopt);

const fn several(first: u8, count: u8) -> Want {
    Want {
        names: Names { first, count },
        mode: Mode::Exclusive,
        patience: Patience::Lock,
    }
}

// Kinds of faults. A setup has some of them.
const PACKETS: &[Fault] = &[
    Fault::LoseRequest,
    Fault::SlowRequest,
    Fault::RepeatRequest,
    Fault::LoseReply,
    Fault::SlowReply,
    Fault::LoseGrant,
    Fault::SlowGrant,
];
const PROCESSES: &[Fault] = &[
    Fault::Stop,
    Fault::Crash,
    Fault::CrashHost,
    Fault::CloseInbox,
    Fault::HalfOpenInbox,
];
const MEMORY: &[Fault] = &[
    Fault::Restart,
    Fault::Forget,
    Fault::FailOver,
    Fault::DeleteLock,
    Fault::DeleteCounter,
];
const LINES: &[Fault] = &[
    Fault::DeleteQueue,
    Fault::DeleteReaders,
    Fault::DeleteWaiters,
    Fault::DeleteShares,
];

const NETWORK: &[&[Fault]] = &[PACKETS];
const CLIENTS: &[&[Fault]] = &[PROCESSES, &[Fault::LoseReply, Fault::Restart]];
const SERVER: &[&[Fault]] = &[MEMORY, LINES, &[Fault::LoseReply, Fault::SlowGrant]];
const ALL: &[&[Fault]] = &[PACKETS, PROCESSES, MEMORY, LINES];
const DELETED_AND_LATE: &[&[Fault]] = &[&[Fault::DeleteLock, Fault::RepeatRequest]];
const LINES_LOST: &[&[Fault]] = &[&[
    Fault::DeleteQueue,
    Fault::DeleteLock,
    Fault::DeleteWaiters,
    Fault::DeleteCounter,
]];

const PLAIN: Setup = Setup {
    title: "",
    clients: &[],
    names: 1,
    breaks: 0,
    faults: 0,
    kinds: NETWORK,
    choices: Choices {
        panics: false,
        downgrades: false,
        hands_over: false,
        keeps: false,
        passes_on: false,
    },
    mutant: None,
};

const HOLDERS: Choices = Choices {
    panics: true,
    downgrades: true,
    hands_over: true,
    keeps: true,
    passes_on: false,
};

const GOES_ON: Choices = Choices {
    downgrades: true,
    hands_over: true,
    ..PLAIN.choices
};

const PASSES_ON: Choices = Choices {
    passes_on: true,
    ..PLAIN.choices
};

const PANICS: Choices = Choices {
    panics: true,
    ..PLAIN.choices
};

/// Those that every run of the tests goes through.
pub const QUICK: &[Setup] = setups! {
    "exclusive: two acquisitions each, all that a holder may do": [LOCK, LOCK] [TIMED, TRY], choices: HOLDERS;
    "exclusive: a line of three": [LOCK, LOCK] [TIMED] [LOCK];
    "exclusive: two faults of the network": [LOCK] [TIMED], faults: 2;
    "exclusive: two faults of clients": [LOCK] [LOCK], faults: 2, kinds: CLIENTS;
    "exclusive: one fault of the server": [LOCK, LOCK] [LOCK], faults: 1, kinds: SERVER;
    "broken: a line of three": [LOCK] [LOCK] [LOCK], breaks: 1;
    "broken: downgraded, or handed over": [LOCK] [LOCK], breaks: 1, choices: GOES_ON;
    "broken: twice": [LOCK] [LOCK], breaks: 2;
    "broken: one fault of the network": [LOCK] [TIMED], breaks: 1, faults: 1;
    "broken: permits, twice": [ONE] [TWO], breaks: 2;
    "broken: several": [several(0, 2)] [several(1, 1)], names: 2, breaks: 1;
    "passed on: to two, one fault of any kind": [LOCK] [ADOPT] [ADOPT], choices: PASSES_ON, faults: 1, kinds: ALL;
    "passed on: beside a waiter, broken": [LOCK] [ADOPT] [LOCK], choices: PASSES_ON, breaks: 1;
    "readers: three, writers first, or readers first": [WRITE] [READ, LOCK] [EAGER];
    "readers: one fault of any kind": [LOCK] [READ], faults: 1, kinds: ALL;
    "readers: they are deleted, and a request comes late": [LOCK] [READ], faults: 2, kinds: DELETED_AND_LATE;
    "permits: three clients": [ONE, TWO] [ONE] [TWO];
    "permits: one fault of any kind": [ONE] [TWO], faults: 1, kinds: ALL;
    "permits: they are deleted, and a request comes late": [LOCK] [ONE], faults: 2, kinds: DELETED_AND_LATE;
    "several: three clients": [several(0, 2)] [several(0, 1), several(1, 1)] [several(0, 2)], names: 2;
    "several: one fault of any kind": [several(0, 2)] [several(0, 2)], names: 2, faults: 1, kinds: ALL;
    "several: a part of a line is lost": [several(0, 2)] [several(0, 2)] [several(1, 1)],
        names: 2, faults: 1, kinds: LINES_LOST;
};

/// The others: together with the quick ones they are the full set.
pub const FULL: &[Setup] = setups! {
    "exclusive: three faults of the network": [LOCK] [TIMED], faults: 3;
    "exclusive: three faults of clients": [LOCK] [LOCK], faults: 3, kinds: CLIENTS;
    "exclusive: two faults of the server": [LOCK] [LOCK], faults: 2, kinds: SERVER;
    "exclusive: a line of three, one fault of the network": [LOCK] [TIMED] [LOCK], faults: 1;
    "exclusive: a line of three, one fault of clients": [LOCK] [TIMED] [LOCK], faults: 1, kinds: CLIENTS;
    "exclusive: two acquisitions, one fault of any kind": [LOCK, LOCK] [TIMED], faults: 1, kinds: ALL;
    "exclusive: all that a holder may do, one fault of any kind": [LOCK] [TIMED],
        faults: 1, kinds: ALL, choices: HOLDERS;
    "broken: twice, a line of three": [LOCK] [TIMED] [LOCK], breaks: 2;
    "broken: one fault of any kind": [LOCK] [LOCK], breaks: 1, faults: 1, kinds: ALL;
    "broken: twice, all that a holder may do": [LOCK] [TIMED], breaks: 2, choices: HOLDERS;
    "broken: readers": [LOCK] [READ] [READ], breaks: 1;
    "broken: permits, three clients": [ONE] [ONE] [TWO], breaks: 1;
    "broken: several, one fault of the network": [several(0, 2)] [several(1, 1)], names: 2, breaks: 1, faults: 1;
    "passed on: to two, broken, two faults of the network": [LOCK] [ADOPT] [ADOPT],
        choices: PASSES_ON, breaks: 1, faults: 2;
    "passed on: permits, broken, one fault of the network": [ONE] [ADOPT_ONE] [TWO],
        choices: PASSES_ON, breaks: 1, faults: 1;
    "readers: two, one fault of the network": [LOCK] [READ] [READ], faults: 1;
    "readers: two, a writer first, one fault of clients": [WRITE] [READ] [READ], faults: 1, kinds: CLIENTS;
    "readers: two faults of the network": [LOCK] [READ], faults: 2;
    "permits: three clients, one fault of the network": [ONE] [ONE] [TWO], faults: 1;
    "permits: three clients, one fault of clients": [ONE] [ONE] [TWO], faults: 1, kinds: CLIENTS;
    "several: three clients, one fault of the network": [several(0, 2)] [several(0, 2)] [several(1, 1)],
        names: 2, faults: 1;
    "several: two acquisitions, a part of a line is lost":
        [several(0, 2), several(0, 2)] [several(0, 2), several(1, 1)],
        names: 2, faults: 1, kinds: LINES_LOST;
    "several: three clients, two parts of lines are lost": [several(0, 2)] [several(0, 2)] [several(0, 2)],
        names: 2, faults: 2, kinds: &[&[Fault::DeleteQueue, Fault::DeleteWaiters]];
    "several: three clients, a part of a line is lost": [several(0, 2)] [several(0, 2)] [several(0, 2)],
        names: 2, faults: 1, kinds: LINES_LOST;
};
