//! Each mutant, the rule that it breaks, and where.

use super::{
    ADOPT, ADOPT_ONE, CLIENTS, DELETED_AND_LATE, HOLDERS, LOCK, ONE, PANICS, PASSES_ON, PLAIN,
    READ, SERVER, TIMED, TWO, several,
};
use crate::judge::Rule;
use crate::mutant::Mutant;
use crate::setup::{Choices, Setup};
use crate::world::Fault;

pub const MUTANTS: &[(Mutant, Rule, Setup)] = &[
    (Mutant::AnyoneReleases, Rule::Exclusion, STOPS),
    (Mutant::CounterSetBack, Rule::Counter, CALM),
    (Mutant::TokenRepeated, Rule::Tokens, SERVER_FAULT),
    (Mutant::ClockIgnored, Rule::Tokens, SERVER_FAULT),
    (Mutant::HandOversNotSkipped, Rule::Tokens, SERVER_FAULT),
    (Mutant::RenewalRecreates, Rule::Exclusion, SERVER_FAULT),
    (Mutant::AnewIsRenewed, Rule::Renewal, LOST_AND_COPY),
    (Mutant::AnewIsRenewed, Rule::Renewal, READ_LOST_AND_COPY),
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
    (Mutant::AnewIsDone, Rule::Unlock, READ_LOST_AND_COPY),
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
    (Mutant::BreakIsClean, Rule::Abandoned, BREAKS),
    (Mutant::BreakPassesLine, Rule::Service, BREAKS),
    (Mutant::BrokenAreRenewed, Rule::Broken, BREAKS),
    (Mutant::BrokenComeBack, Rule::Broken, BREAK_AND_COPY),
    (Mutant::AnyLeaseIsAdopted, Rule::Exclusion, PASSED_ON),
    (Mutant::AdoptionKeepsToken, Rule::Tokens, PASSED_ON),
    (
        Mutant::AdoptionKeepsOldOwner,
        Rule::NothingLeft,
        PERMIT_PASSED_ON,
    ),
    (Mutant::ValidityFromReply, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::ValidityIgnored, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::SilenceRenews, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::LateRenewalRevives, Rule::LostForGood, CLIENT_FAULTS),
    (Mutant::RefusalIgnored, Rule::Exclusion, SERVER_FAULT),
    (Mutant::GrantNotChecked, Rule::Exclusion, CLIENT_FAULTS),
    (Mutant::NewOwnerOnRetry, Rule::Service, NETWORK_FAULTS),
    (Mutant::BrokenKeepTheirOwner, Rule::Service, BREAK_AND_LOSS),
    (Mutant::BreakEndsAnyLease, Rule::NothingLeft, BREAK_AND_STOP),
    (Mutant::ConnectionReused, Rule::Exclusion, NETWORK_FAULTS),
    (
        Mutant::NothingIsTakenBack,
        Rule::NothingLeft,
        NETWORK_FAULTS,
    ),
    (Mutant::PassedOnIsHeld, Rule::Exclusion, PASSED_ON),
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
const LOST_AND_COPY: Setup = Setup {
    title: "a lock that is deleted, and a request that comes late",
    clients: &[&[LOCK], &[LOCK]],
    faults: 2,
    kinds: DELETED_AND_LATE,
    ..PLAIN
};
const READ_LOST_AND_COPY: Setup = Setup {
    title: "readers that are deleted, and a request that comes late",
    clients: &[&[LOCK], &[READ]],
    ..LOST_AND_COPY
};
const STOPS: Setup = Setup {
    title: "a client that stops",
    clients: &[&[LOCK, LOCK], &[LOCK]],
    faults: 1,
    kinds: &[&[Fault::Stop]],
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
    kinds: &[&[Fault::LoseReply]],
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
const BREAKS: Setup = Setup {
    title: "two clients, and a break",
    clients: &[&[LOCK], &[LOCK]],
    breaks: 1,
    ..PLAIN
};
const BREAK_AND_COPY: Setup = Setup {
    title: "a break, and a request that comes late",
    faults: 1,
    kinds: &[&[Fault::RepeatRequest]],
    ..BREAKS
};
const BREAK_AND_LOSS: Setup = Setup {
    title: "a break, and a grant that is lost",
    faults: 1,
    kinds: &[&[Fault::LoseGrant]],
    ..BREAKS
};
const BREAK_AND_STOP: Setup = Setup {
    title: "a break, and a client that stands still",
    faults: 1,
    kinds: &[&[Fault::Stop]],
    ..BREAKS
};
const PASSED_ON: Setup = Setup {
    title: "a lease that is passed on, beside a waiter",
    clients: &[&[LOCK], &[ADOPT], &[LOCK]],
    choices: PASSES_ON,
    ..PLAIN
};
const PERMIT_PASSED_ON: Setup = Setup {
    title: "a permit that is passed on",
    clients: &[&[ONE], &[ADOPT_ONE]],
    choices: PASSES_ON,
    ..PLAIN
};
const SEVERAL: Setup = Setup {
    title: "two clients want two names, and one of them is deleted",
    clients: &[&[several(0, 2)], &[several(0, 2)], &[several(1, 1)]],
    names: 2,
    faults: 1,
    kinds: &[&[Fault::DeleteLock]],
    ..PLAIN
};
