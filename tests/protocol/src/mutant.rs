//! What can be broken on purpose: a rule that no mutant breaks might look for nothing.

use crate::judge::Rule;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    // Scripts
    /// A release looks at no owner.
    AnyoneReleases,
    /// A release brings the counter back.
    CounterSetBack,
    /// A token is given out again.
    TokenRepeated,
    /// Tokens come from the counter alone, and start anew when it is lost.
    ClockIgnored,
    /// The tokens that a lease used inside its process are given out again.
    HandOversNotSkipped,
    /// A renewal takes a lock that is gone.
    RenewalRecreates,
    /// A reader is renewed whose lease is over.
    OverReaderIsRenewed,
    /// A reader is let in beside an exclusive holder.
    ReaderBesideWriter,
    /// Permits that are out aren't counted.
    PermitsNotCounted,
    /// A free lock goes to whoever asks, past the line.
    LineIsIgnored,
    /// A reader goes in beside those that read, past those that wait for the lock exclusively.
    ReadersPassWriters,
    /// A heartbeat sends its owner to the end of the line.
    HeartbeatLosesPlace,
    /// A release leaves the lock to the next heartbeat.
    NobodyIsLetIn,
    /// One that nobody hears is let in all the same.
    DeafAreServed,
    /// Who was let in isn't told.
    GrantsAreNotTold,
    /// Who doesn't ask any more stays in line.
    OverdueStays,
    /// Who gives up stays in line.
    PlaceIsKept,
    /// The lock has no ttl.
    LockWithoutTtl,
    /// The line has no ttl.
    LineWithoutTtl,
    /// A release answers that it released what wasn't the owner's.
    ReleaseIsAlwaysOk,
    /// Giving up what may have been granted counts as an abandonment.
    GiveUpAbandons,
    /// Giving up takes back an abandonment that nobody was told of.
    GiveUpForgets,
    /// A panic ends a lease like a release in order.
    PanicIsClean,
    /// Nobody is told of an abandonment.
    AbandonmentNotTold,
    /// A reader that ends without a release counts as an abandonment.
    ReaderAbandons,
    /// Who has lost one of several locks keeps its place in the other lines.
    SomeAreKept,
    /// One of several locks is enough.
    SomeAreEnough,
    // Clients
    /// A lease counts from its answer, not from its question.
    ValidityFromReply,
    /// A guard says that it is held after its lease is over.
    ValidityIgnored,
    /// A renewal that wasn't answered counts as one that was.
    SilenceRenews,
    /// A holder that is told that the lock isn't its own goes on.
    RefusalIgnored,
    /// A grant is taken for new, however old it is.
    GrantNotChecked,
    /// A question that wasn't answered is asked again by another owner.
    NewOwnerOnRetry,
    /// An answer is taken for that to a later question.
    ConnectionReused,
    /// Who gives up takes nothing back.
    NothingIsTakenBack,
}

impl Mutant {
    /// Each, and the rule that it breaks.
    pub const ALL: [(Mutant, Rule); 35] = [
        (Mutant::AnyoneReleases, Rule::Exclusion),
        (Mutant::CounterSetBack, Rule::Counter),
        (Mutant::TokenRepeated, Rule::Tokens),
        (Mutant::ClockIgnored, Rule::Tokens),
        (Mutant::HandOversNotSkipped, Rule::Tokens),
        (Mutant::RenewalRecreates, Rule::Exclusion),
        (Mutant::OverReaderIsRenewed, Rule::Exclusion),
        (Mutant::ReaderBesideWriter, Rule::Exclusion),
        (Mutant::PermitsNotCounted, Rule::Exclusion),
        (Mutant::LineIsIgnored, Rule::Order),
        (Mutant::ReadersPassWriters, Rule::Order),
        (Mutant::HeartbeatLosesPlace, Rule::Order),
        (Mutant::NobodyIsLetIn, Rule::Order),
        (Mutant::DeafAreServed, Rule::Service),
        (Mutant::GrantsAreNotTold, Rule::Service),
        (Mutant::OverdueStays, Rule::Service),
        (Mutant::PlaceIsKept, Rule::NothingLeft),
        (Mutant::LockWithoutTtl, Rule::Ttl),
        (Mutant::LineWithoutTtl, Rule::Ttl),
        (Mutant::ReleaseIsAlwaysOk, Rule::Unlock),
        (Mutant::GiveUpAbandons, Rule::Abandoned),
        (Mutant::GiveUpForgets, Rule::Abandoned),
        (Mutant::PanicIsClean, Rule::Abandoned),
        (Mutant::AbandonmentNotTold, Rule::Abandoned),
        (Mutant::ReaderAbandons, Rule::Abandoned),
        (Mutant::SomeAreKept, Rule::Service),
        (Mutant::SomeAreEnough, Rule::Exclusion),
        (Mutant::ValidityFromReply, Rule::Exclusion),
        (Mutant::ValidityIgnored, Rule::Exclusion),
        (Mutant::SilenceRenews, Rule::Exclusion),
        (Mutant::RefusalIgnored, Rule::Exclusion),
        (Mutant::GrantNotChecked, Rule::Exclusion),
        (Mutant::NewOwnerOnRetry, Rule::Service),
        (Mutant::ConnectionReused, Rule::Exclusion),
        (Mutant::NothingIsTakenBack, Rule::NothingLeft),
    ];
}
