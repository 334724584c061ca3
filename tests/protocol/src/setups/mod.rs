//! What is gone through.

mod full;
mod mutants;
mod quick;
mod walks;

pub use self::full::FULL;
pub use self::mutants::MUTANTS;
pub use self::quick::QUICK;
pub use self::walks::WALKS;
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
const ALL_BUT_LINES: &[&[Fault]] = &[PACKETS, PROCESSES, MEMORY];
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
    hand_overs: 1,
    is_relative: true,
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
