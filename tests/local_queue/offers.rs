//! Leases that are offered to whichever thread of a process comes first.

use crate::threads::HandsOver::ToAny;

in_orders! {
    threads_that_lock_take_what_is_offered(Some(4), [ToAny]): locks(), locks(), locks() => HandedOver WentAhead;
    offer_meets_threads_that_give_up(Some(4), [ToAny]): locks(), locks_for(1), locks_for(1)
        => GivenAtTheLastMoment KnownToBeTaken;
    offer_meets_threads_that_give_up_and_wait(Some(2), [ToAny]): locks(), locks_for(1), locks(), locks()
        => GivenAtTheLastMoment WentAhead;
    offer_meets_a_cancel(Some(3), [ToAny]): locks(), locks_until_cancelled(), locks() => CancelledInQueue WentAhead;
    offer_meets_a_turn_that_ends(Some(3), [ToAny]): loses(), locks(), locks() => FreedWhileHeld WentAhead;
}
