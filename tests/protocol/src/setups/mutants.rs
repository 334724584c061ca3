//! The setups in which mutants are found, and the rule that each of them breaks there.

use super::{
    ADOPT, ADOPT_ONE, CLIENTS, DELETED_AND_LATE, HOLDERS, LOCK, ONE, PANICS, PASSES_ON, PLAIN,
    READ, SERVER, TIMED, TWO, several,
};
use crate::judge::Rule;
use crate::mutant::Mutant;
use crate::setup::{Choices, Setup};
use crate::world::Fault;

macro_rules! mutants {
    ($(
        $title:literal: $([$($want:expr),+])+ $(, $field:ident: $value:expr)*
            => $($mutant:ident breaks $rule:ident),+;
    )+) => {
        &[$((
            setup!($title: $([$($want),+])+ $(, $field: $value)*),
            &[$((Mutant::$mutant, Rule::$rule)),+],
        )),+]
    };
}

const MUTANTS: &[(Setup, &[(Mutant, Rule)])] = mutants! {
    "two clients, all choices": [LOCK] [TIMED], choices: HOLDERS
        => CounterSetBack breaks Counter, GrantsAreNotTold breaks Service, PlaceIsKept breaks NothingLeft,
        LockWithoutTtl breaks Ttl, LineWithoutTtl breaks Ttl, PanicIsClean breaks Abandoned,
        AbandonmentNotTold breaks Abandoned;
    "a line": [LOCK] [LOCK] [LOCK]
        => HeartbeatLosesPlace breaks Order, NobodyIsLetIn breaks Service;
    "two faults of the network": [LOCK] [TIMED], faults: 2
        => ReleaseIsAlwaysOk breaks Unlock, GiveUpAbandons breaks Abandoned, NewOwnerOnRetry breaks Service,
        ConnectionReused breaks Exclusion, NothingIsTakenBack breaks NothingLeft;
    "three faults of the network": [LOCK] [TIMED], faults: 3
        => AnewIsDone breaks Unlock;
    "two faults of clients": [LOCK] [LOCK], faults: 2, kinds: CLIENTS
        => DeafAreServed breaks Service, OverdueStays breaks Service, ValidityFromReply breaks Exclusion,
        ValidityIgnored breaks Exclusion, SilenceRenews breaks Exclusion, LateRenewalRevives breaks LostForGood,
        GrantNotChecked breaks Exclusion;
    "one fault of the server": [LOCK] [LOCK], faults: 1, kinds: SERVER, choices: HOLDERS
        => TokenRepeated breaks Tokens, ClockIgnored breaks Tokens, HandOversNotSkipped breaks Tokens,
        RenewalRecreates breaks Exclusion, RefusalIgnored breaks Exclusion;
    "a lock that is deleted, and a request that comes late": [LOCK] [LOCK], faults: 2, kinds: DELETED_AND_LATE
        => AnewIsRenewed breaks Renewal;
    "readers that are deleted, and a request that comes late": [LOCK] [READ], faults: 2, kinds: DELETED_AND_LATE
        => AnewIsRenewed breaks Renewal, AnewIsDone breaks Unlock;
    "a client that stops": [LOCK, LOCK] [LOCK], faults: 1, kinds: &[&[Fault::Stop]]
        => AnyoneReleases breaks Exclusion;
    "a line, and a lock that is kept": [LOCK] [LOCK] [LOCK], choices: Choices { keeps: true, ..PLAIN.choices }
        => LineIsIgnored breaks Order;
    "a panic, and an answer that is lost": [LOCK] [LOCK, LOCK],
        faults: 1, kinds: &[&[Fault::LoseReply]], choices: PANICS
        => GiveUpForgets breaks Abandoned;
    "a panic, and a reader": [LOCK, LOCK] [READ], choices: PANICS
        => ReaderTakesAbandonment breaks Abandoned;
    "two readers beside one client": [LOCK] [READ] [READ]
        => ReaderBesideWriter breaks Exclusion, ReadersPassWriters breaks Order;
    "three clients want permits": [ONE] [ONE] [TWO]
        => PermitsNotCounted breaks Exclusion;
    "two clients, and a break": [LOCK] [LOCK], breaks: 1
        => BreakIsClean breaks Abandoned, BreakPassesLine breaks Service, BrokenAreRenewed breaks Broken;
    "a break, and a request that comes late": [LOCK] [LOCK],
        breaks: 1, faults: 1, kinds: &[&[Fault::RepeatRequest]]
        => BrokenComeBack breaks Broken;
    "a break, and a grant that is lost": [LOCK] [LOCK], breaks: 1, faults: 1, kinds: &[&[Fault::LoseGrant]]
        => BrokenKeepTheirOwner breaks Service;
    "a break, and a client that stands still": [LOCK] [LOCK], breaks: 1, faults: 1, kinds: &[&[Fault::Stop]]
        => BreakEndsAnyLease breaks NothingLeft;
    "a lease that is passed on, beside a waiter": [LOCK] [ADOPT] [LOCK], choices: PASSES_ON
        => AnyLeaseIsAdopted breaks Exclusion, AdoptionKeepsToken breaks Tokens, PassedOnIsHeld breaks Exclusion;
    "a permit that is passed on": [ONE] [ADOPT_ONE], choices: PASSES_ON
        => AdoptionKeepsOldOwner breaks NothingLeft;
    "two clients want two names, and one of them is deleted": [several(0, 2)] [several(0, 2)] [several(1, 1)],
        names: 2, faults: 1, kinds: &[&[Fault::DeleteLock]]
        => SomeAreKept breaks Service, SomeAreEnough breaks Exclusion;
};

/// Each mutant, the rule that it breaks, and where.
pub fn mutants() -> impl Iterator<Item = (Mutant, Rule, Setup)> {
    MUTANTS.iter().flat_map(|(setup, broken)| {
        let broken = broken.iter();
        broken.map(move |(mutant, rule)| (*mutant, *rule, *setup))
    })
}
