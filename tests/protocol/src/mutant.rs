//! What can be broken on purpose: a rule that no mutant breaks might look for nothing.

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
    /// A renewal renews what its owner has anew, by a late copy of its request.
    AnewIsRenewed,
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
    /// A release answers that it released what its owner has anew, by a late copy of its request.
    AnewIsDone,
    /// Giving up what may have been granted counts as an abandonment.
    GiveUpAbandons,
    /// Giving up takes back an abandonment that nobody was told of.
    GiveUpForgets,
    /// A panic ends a lease like a release in order.
    PanicIsClean,
    /// Nobody is told of an abandonment.
    AbandonmentNotTold,
    /// A reader is told of an abandonment instead of the next exclusive holder.
    ReaderTakesAbandonment,
    /// Who has lost one of several locks keeps its place in the other lines.
    SomeAreKept,
    /// One of several locks is enough.
    SomeAreEnough,
    /// A break ends a lease like a release in order.
    BreakIsClean,
    /// A break leaves the lock to the next heartbeat.
    BreakPassesLine,
    /// A lease that was broken is renewed.
    BrokenAreRenewed,
    /// An owner whose lease was broken is let in by a late copy of its request.
    BrokenComeBack,
    /// A lease is adopted whoever has it.
    AnyLeaseIsAdopted,
    /// Who adopts a lease goes on with its token.
    AdoptionKeepsToken,
    /// Who passes a permit on keeps it.
    AdoptionKeepsOldOwner,
    // Clients
    /// A lease counts from its answer, not from its question.
    ValidityFromReply,
    /// A guard says that it is held after its lease is over.
    ValidityIgnored,
    /// A renewal that wasn't answered counts as one that was.
    SilenceRenews,
    /// A lease that has run out is valid again when a renewal is answered after all.
    LateRenewalRevives,
    /// A holder that is told that the lock isn't its own goes on.
    RefusalIgnored,
    /// A grant is taken for new, however old it is.
    GrantNotChecked,
    /// A question that wasn't answered is asked again by another owner.
    NewOwnerOnRetry,
    /// An owner whose lease was broken before it knew of it goes on asking.
    BrokenKeepTheirOwner,
    /// A message that its lease was broken ends a later lease of the same owner.
    BreakEndsAnyLease,
    /// An answer is taken for that to a later question.
    ConnectionReused,
    /// Who gives up takes nothing back.
    NothingIsTakenBack,
    /// Who passes a lease on goes on holding it.
    PassedOnIsHeld,
}

impl Mutant {
    /// Whether it is a script that is broken, and not a client.
    pub fn is_of_a_script(self) -> bool {
        (self as u8) < Mutant::ValidityFromReply as u8
    }
}
