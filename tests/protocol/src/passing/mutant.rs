//! What can be broken on purpose.

use super::Rule;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    // Places
    /// A place is given to the next thread, and given up too.
    PlacePassedAndGivenUp,
    /// A place is given up although a thread waits for it.
    PlaceNotPassed,
    /// The last question of a call leaves the line, although a thread waits that could have the place.
    LastQuestionLeavesLine,
    /// The next thread asks as a new owner, and the old one stays in line.
    NewOwnerForPlace,
    /// What nobody here waits for any more isn't given up.
    PlaceNotGivenUp,
    /// A question that wasn't answered is taken for one that never arrived.
    FailedQuestionForgotten,
    // Leases
    /// A lease is handed over, and released too.
    HandedOverAndReleased,
    /// The next thread doesn't look whether its lease has run out on the way.
    ExpiredLeaseTaken,
    /// A lease that is handed over is valid anew.
    HandedOverValidAnew,
    /// A lease is handed over for ever.
    HandOverUnlimited,
    /// The time to hand over begins anew with every hand-over.
    HandOverTimeRestarts,
    /// A lease is handed over just before it ends.
    HandedOverTooLate,
    /// A lease is handed over by a panic.
    PanicHandsOver,
    /// A lease that is handed over keeps its token.
    TokenNotRaised,
    /// A lease is handed over too often.
    HandOversNotCounted,
    /// A deferred release brings the token that was granted, and not the last one.
    DeferredReleaseOfOldToken,
    /// A deferred release names the owner of whoever has the seat.
    DeferredReleaseOfOtherOwner,
    // The seat
    /// A lease that is lost keeps its seat until its guard ends.
    LostLeaseKeepsSeat,
    /// A guard that ends keeps its seat, although threads wait for it.
    SeatNotPassed,
    /// A thread that leaves doesn't look whether it was given the seat: that goes on, what came with it doesn't.
    GivenSeatIgnored,
    /// The seat goes to the thread that came last.
    LastComeFirstServed,
    /// The lock is known to be taken, although the seat has gone to a thread that is to ask.
    TakenAfterRelease,
    /// The lock is known to be taken, although the last question wasn't answered.
    TakenAfterFailure,
    /// The same, although a lease that was handed over ran out on its way.
    TakenAfterExpiry,
    /// A call that can't reach the server ends as one that found the lock taken, before its time is over.
    FailureEndsAsTaken,
    /// The next thread isn't told that the last question wasn't answered.
    FailureNotPassedOn,
    // The server
    /// A free lock goes to whoever asks, past the line.
    FreeLockPastLine,
    /// A process that has crashed is let in.
    DeafAreLetIn,
}

impl Mutant {
    /// Each, and the rule that it breaks.
    pub const ALL: [(Mutant, Rule); 28] = [
        (Mutant::PlacePassedAndGivenUp, Rule::OneHome),
        (Mutant::PlaceNotPassed, Rule::PlaceKept),
        (Mutant::LastQuestionLeavesLine, Rule::PlaceKept),
        (Mutant::NewOwnerForPlace, Rule::NothingLeft),
        (Mutant::PlaceNotGivenUp, Rule::NothingLeft),
        (Mutant::FailedQuestionForgotten, Rule::NothingLeft),
        (Mutant::HandedOverAndReleased, Rule::OneHome),
        (Mutant::ExpiredLeaseTaken, Rule::HandOver),
        (Mutant::HandedOverValidAnew, Rule::Exclusion),
        (Mutant::HandOverUnlimited, Rule::HandOver),
        (Mutant::HandOverTimeRestarts, Rule::HandOver),
        (Mutant::HandedOverTooLate, Rule::HandOver),
        (Mutant::PanicHandsOver, Rule::HandOver),
        (Mutant::TokenNotRaised, Rule::Tokens),
        (Mutant::HandOversNotCounted, Rule::Tokens),
        (Mutant::DeferredReleaseOfOldToken, Rule::Tokens),
        (Mutant::DeferredReleaseOfOtherOwner, Rule::Exclusion),
        (Mutant::LostLeaseKeepsSeat, Rule::Seat),
        (Mutant::SeatNotPassed, Rule::Seat),
        (Mutant::GivenSeatIgnored, Rule::NothingLeft),
        (Mutant::LastComeFirstServed, Rule::LocalOrder),
        (Mutant::TakenAfterRelease, Rule::Taken),
        (Mutant::TakenAfterFailure, Rule::Taken),
        (Mutant::TakenAfterExpiry, Rule::Taken),
        (Mutant::FailureEndsAsTaken, Rule::Taken),
        (Mutant::FailureNotPassedOn, Rule::Taken),
        (Mutant::FreeLockPastLine, Rule::Turn),
        (Mutant::DeafAreLetIn, Rule::NothingLeft),
    ];
}
