//! What is gone through.

use crate::judge::Rule;
use crate::mutant::Mutant;
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

const fn several(first: u8, count: u8) -> Want {
    Want {
        names: Names { first, count },
        mode: Mode::Exclusive,
        patience: Patience::Lock,
    }
}

const NETWORK: &[Fault] = &[
    Fault::LoseRequest,
    Fault::SlowRequest,
    Fault::RepeatRequest,
    Fault::LoseReply,
    Fault::SlowReply,
    Fault::LoseGrant,
    Fault::SlowGrant,
];

const PLAIN: Setup = Setup {
    title: "",
    clients: &[],
    names: 1,
    faults: 0,
    kinds: NETWORK,
    choices: Choices {
        panics: false,
        downgrades: false,
        hands_over: false,
        keeps: false,
    },
    hand_overs: 1,
    is_relative: true,
    mutant: None,
};

const CLIENTS: &[Fault] = &[
    Fault::Stop,
    Fault::Crash,
    Fault::CrashHost,
    Fault::CloseInbox,
    Fault::HalfOpenInbox,
    Fault::LoseReply,
    Fault::Restart,
];

const SERVER: &[Fault] = &[
    Fault::Restart,
    Fault::Forget,
    Fault::FailOver,
    Fault::DeleteLock,
    Fault::DeleteCounter,
    Fault::DeleteQueue,
    Fault::DeleteReaders,
    Fault::DeleteWaiters,
    Fault::DeleteShares,
    Fault::LoseReply,
    Fault::SlowGrant,
];

const ALL: &[Fault] = &[
    Fault::LoseRequest,
    Fault::SlowRequest,
    Fault::RepeatRequest,
    Fault::LoseReply,
    Fault::SlowReply,
    Fault::LoseGrant,
    Fault::SlowGrant,
    Fault::Stop,
    Fault::Crash,
    Fault::CrashHost,
    Fault::CloseInbox,
    Fault::HalfOpenInbox,
    Fault::Restart,
    Fault::Forget,
    Fault::FailOver,
    Fault::DeleteLock,
    Fault::DeleteCounter,
    Fault::DeleteQueue,
    Fault::DeleteReaders,
    Fault::DeleteWaiters,
    Fault::DeleteShares,
];

const HOLDERS: Choices = Choices {
    panics: true,
    downgrades: true,
    hands_over: true,
    keeps: true,
};

const ALL_BUT_LINES: &[Fault] = &[
    Fault::LoseRequest,
    Fault::SlowRequest,
    Fault::RepeatRequest,
    Fault::LoseReply,
    Fault::SlowReply,
    Fault::LoseGrant,
    Fault::SlowGrant,
    Fault::Stop,
    Fault::Crash,
    Fault::CrashHost,
    Fault::CloseInbox,
    Fault::HalfOpenInbox,
    Fault::Restart,
    Fault::Forget,
    Fault::FailOver,
    Fault::DeleteLock,
    Fault::DeleteCounter,
];

const LINES_LOST: &[Fault] = &[
    Fault::DeleteQueue,
    Fault::DeleteLock,
    Fault::DeleteWaiters,
    Fault::DeleteCounter,
];

/// Those that every run of the tests goes through.
pub const QUICK: &[Setup] = &[
    Setup {
        title: "exclusive: a process that asks three times, all that a holder may do",
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

/// The others: together with those they are the full set.
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
        kinds: &[Fault::DeleteQueue, Fault::DeleteWaiters],
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

/// What random walks go through: more than can be gone through completely.
pub const WALKS: &[Setup] = &[
    Setup {
        title: "exclusive",
        clients: &[
            &[LOCK, TRY, LOCK, LOCK],
            &[TIMED, LOCK, LOCK],
            &[LOCK, TIMED, LOCK],
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
        clients: &[&[ONE, TWO, ONE, ONE], &[ONE, ONE, TWO], &[TWO, ONE, LOCK]],
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
    choices: HOLDERS,
    hand_overs: 1024,
    is_relative: false,
    ..PLAIN
};

const PANICS: Choices = Choices {
    panics: true,
    ..PLAIN.choices
};

/// Each mutant, the rule that it breaks, and where.
pub const MUTANTS: &[(Mutant, Rule, Setup)] = &[
    (Mutant::AnyoneReleases, Rule::Exclusion, STOPS),
    (Mutant::CounterSetBack, Rule::Counter, CALM),
    (Mutant::TokenRepeated, Rule::Tokens, SERVER_FAULT),
    (Mutant::ClockIgnored, Rule::Tokens, SERVER_FAULT),
    (Mutant::HandOversNotSkipped, Rule::Tokens, SERVER_FAULT),
    (Mutant::RenewalRecreates, Rule::Exclusion, SERVER_FAULT),
    (Mutant::ReaderBesideWriter, Rule::Exclusion, READERS),
    (Mutant::PermitsNotCounted, Rule::Exclusion, PERMITS),
    (Mutant::LineIsIgnored, Rule::Order, KEPT),
    (Mutant::ReadersPassWriters, Rule::Order, READERS),
    (Mutant::HeartbeatLosesPlace, Rule::Order, LINE),
    (Mutant::NobodyIsLetIn, Rule::Service, LINE),
    (Mutant::DeafAreServed, Rule::Service, CLIENT_FAULTS),
    (Mutant::GrantsAreNotTold, Rule::Service, CALM),
    (Mutant::OverdueStays, Rule::Service, CLIENT_FAULTS),
    (Mutant::PlaceIsKept, Rule::NothingLeft, CALM),
    (Mutant::LockWithoutTtl, Rule::Ttl, CALM),
    (Mutant::LineWithoutTtl, Rule::Ttl, CALM),
    (Mutant::ReleaseIsAlwaysOk, Rule::Unlock, NETWORK_FAULTS),
    (Mutant::AnewIsDone, Rule::Unlock, NETWORK_FAULTS_3),
    (Mutant::GiveUpAbandons, Rule::Abandoned, NETWORK_FAULTS),
    (Mutant::GiveUpForgets, Rule::Abandoned, PANIC_AND_LOSS),
    (Mutant::PanicIsClean, Rule::Abandoned, CALM),
    (Mutant::AbandonmentNotTold, Rule::Abandoned, CALM),
    (
        Mutant::ReaderTakesAbandonment,
        Rule::Abandoned,
        PANIC_AND_READ,
    ),
    (Mutant::SomeAreKept, Rule::Service, SEVERAL),
    (Mutant::SomeAreEnough, Rule::Exclusion, SEVERAL),
    (Mutant::ValidityFromReply, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::ValidityIgnored, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::SilenceRenews, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::LateRenewalRevives, Rule::LostForGood, CLIENT_FAULTS),
    (Mutant::RefusalIgnored, Rule::Exclusion, SERVER_FAULT),
    (Mutant::GrantNotChecked, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::NewOwnerOnRetry, Rule::Service, NETWORK_FAULTS),
    (Mutant::ConnectionReused, Rule::Exclusion, NETWORK_FAULTS),
    (
        Mutant::NothingIsTakenBack,
        Rule::NothingLeft,
        NETWORK_FAULTS,
    ),
];

const CALM: Setup = Setup {
    title: "two clients, all choices",
    clients: &[&[LOCK], &[TIMED]],
    choices: HOLDERS,
    ..PLAIN
};
const LINE: Setup = Setup {
    title: "a line",
    clients: &[&[LOCK], &[LOCK], &[LOCK]],
    ..PLAIN
};
const NETWORK_FAULTS: Setup = Setup {
    title: "two faults of the network",
    clients: &[&[LOCK], &[TIMED]],
    faults: 2,
    ..PLAIN
};
const NETWORK_FAULTS_3: Setup = Setup {
    title: "three faults of the network",
    faults: 3,
    ..NETWORK_FAULTS
};
const CLIENT_FAULTS: Setup = Setup {
    title: "two faults of clients",
    clients: &[&[LOCK], &[LOCK]],
    faults: 2,
    kinds: CLIENTS,
    ..PLAIN
};
const SERVER_FAULT: Setup = Setup {
    title: "one fault of the server",
    clients: &[&[LOCK], &[LOCK]],
    faults: 1,
    kinds: SERVER,
    choices: HOLDERS,
    ..PLAIN
};
const STOPS: Setup = Setup {
    title: "a client that stops",
    clients: &[&[LOCK, LOCK], &[LOCK]],
    faults: 1,
    kinds: &[Fault::Stop],
    ..PLAIN
};
const KEPT: Setup = Setup {
    title: "a line, and a lock that is kept",
    clients: &[&[LOCK], &[LOCK], &[LOCK]],
    choices: Choices {
        keeps: true,
        ..PLAIN.choices
    },
    ..PLAIN
};
const PANIC_AND_LOSS: Setup = Setup {
    title: "a panic, and an answer that is lost",
    clients: &[&[LOCK], &[LOCK, LOCK]],
    faults: 1,
    kinds: &[Fault::LoseReply],
    choices: PANICS,
    ..PLAIN
};
const PANIC_AND_READ: Setup = Setup {
    title: "a panic, and a reader",
    clients: &[&[LOCK, LOCK], &[READ]],
    choices: PANICS,
    ..PLAIN
};
const READERS: Setup = Setup {
    title: "two readers beside one client",
    clients: &[&[LOCK], &[READ], &[READ]],
    ..PLAIN
};
const PERMITS: Setup = Setup {
    title: "three clients want permits",
    clients: &[&[ONE], &[ONE], &[TWO]],
    ..PLAIN
};
const SEVERAL: Setup = Setup {
    title: "two clients want two names, and one of them is deleted",
    clients: &[&[several(0, 2)], &[several(0, 2)], &[several(1, 1)]],
    names: 2,
    faults: 1,
    kinds: &[Fault::DeleteLock],
    ..PLAIN
};
