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

/// (scratch)
pub const QUICK: &[Setup] = &[
    Setup {
        title: "x1 net1 [L,L,L]",
        clients: &[&[LOCK], &[TIMED], &[LOCK]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "x2 client1 [L,L,L]",
        clients: &[&[LOCK], &[TIMED], &[LOCK]],
        faults: 1,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "x3 server1 [L],[L]",
        clients: &[&[LOCK], &[LOCK]],
        faults: 1,
        kinds: SERVER,
        ..PLAIN
    },
    Setup {
        title: "x4 server1 [L,L],[L]",
        clients: &[&[LOCK, LOCK], &[LOCK]],
        faults: 1,
        kinds: SERVER,
        ..PLAIN
    },
    Setup {
        title: "x5 all1 [LL][T]",
        clients: &[&[LOCK, LOCK], &[TIMED]],
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "x6 all1 [L][T] choices",
        clients: &[&[LOCK], &[TIMED]],
        faults: 1,
        kinds: ALL,
        choices: HOLDERS,
        ..PLAIN
    },
    Setup {
        title: "x7 all2 [L][T]",
        clients: &[&[LOCK], &[TIMED]],
        faults: 2,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "x8 net3 [L][T]",
        clients: &[&[LOCK], &[TIMED]],
        faults: 3,
        ..PLAIN
    },
    Setup {
        title: "x9 client3 [L][L]",
        clients: &[&[LOCK], &[LOCK]],
        faults: 3,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "r1 none [W][R][E]",
        clients: &[&[WRITE], &[READ], &[EAGER]],
        ..PLAIN
    },
    Setup {
        title: "r2 none [W][RL][R]",
        clients: &[&[WRITE], &[READ, LOCK], &[READ]],
        ..PLAIN
    },
    Setup {
        title: "r3 net1 [L][R][R]",
        clients: &[&[LOCK], &[READ], &[READ]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "r4 all1 [L][R] choices",
        clients: &[&[LOCK], &[READ]],
        faults: 1,
        kinds: ALL,
        choices: HOLDERS,
        ..PLAIN
    },
    Setup {
        title: "r5 all2 [L][R]",
        clients: &[&[LOCK], &[READ]],
        faults: 2,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "r6 client1 [W][R][R]",
        clients: &[&[WRITE], &[READ], &[READ]],
        faults: 1,
        kinds: CLIENTS,
        ..PLAIN
    },
    Setup {
        title: "p1 none [1 2][1][2 1]",
        clients: &[&[ONE, TWO], &[ONE], &[TWO]],
        ..PLAIN
    },
    Setup {
        title: "p2 net1 [1][1][2]",
        clients: &[&[ONE], &[ONE], &[TWO]],
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "p3 all1 [1][2]",
        clients: &[&[ONE], &[TWO]],
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "p4 all2 [1][2]",
        clients: &[&[ONE], &[TWO]],
        faults: 2,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "s1 none",
        clients: &[
            &[several(0, 2)],
            &[several(0, 1), several(1, 1)],
            &[several(0, 2)],
        ],
        names: 2,
        ..PLAIN
    },
    Setup {
        title: "s2 net1",
        clients: &[&[several(0, 2)], &[several(0, 2)], &[several(1, 1)]],
        names: 2,
        faults: 1,
        ..PLAIN
    },
    Setup {
        title: "s3 all1 2 clients",
        clients: &[&[several(0, 2)], &[several(0, 2)]],
        names: 2,
        faults: 1,
        kinds: ALL,
        ..PLAIN
    },
    Setup {
        title: "s4 net2 2 clients",
        clients: &[&[several(0, 2)], &[several(1, 1)]],
        names: 2,
        faults: 2,
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
