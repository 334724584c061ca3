//! Leases that are offered to whichever thread of a process comes first.

use std::sync::{Arc, Mutex};

use crate::orders::try_every_order;
use crate::process::HandsOver::{ToAny, ToFirst};
use crate::process::Thread;
use crate::{Queues, at_once, behind, first, local_queue};
use local_queue::{Entered, Left};

#[test]
fn offer_goes_to_who_comes_or_to_who_waits() {
    try_every_order(None, || {
        let queues = Arc::new(Queues::default());
        let (turn, waits) = (first(&queues), behind(&queues));
        let comes = queues.clone();
        let served = Arc::new(Mutex::new(Vec::new()));
        let (came, waited) = (served.clone(), served.clone());
        let threads: Vec<Thread> = vec![
            Box::new(move || assert!(turn.offer(7).is_ok(), "somebody waits")),
            Box::new(move || match comes.enter(&"name") {
                Entered::First(_) => {}
                Entered::Offered(_turn, word) => came.lock().unwrap().push(word),
                Entered::Behind(behind) => match behind.wait(None) {
                    Ok((_turn, word)) => came.lock().unwrap().push(word),
                    Err(_) => panic!("nobody had it look again"),
                },
            }),
            Box::new(move || match waits.wait(None) {
                Ok((_turn, word)) => waited.lock().unwrap().push(word),
                Err(_) => panic!("nobody had it look again"),
            }),
        ];
        at_once(threads);
        let served = served.lock().unwrap();
        // Whoever comes second gets the turn by itself, as after any end of a turn.
        assert!(served.contains(&7), "{served:?}");
        assert_eq!(served.iter().filter(|word| **word == 7).count(), 1);
        assert_eq!(queues.len(), 0);
    });
}

#[test]
fn offer_comes_back_when_nobody_waits() {
    try_every_order(None, || {
        let queues = Queues::default();
        let (turn, leaves) = (first(&queues), behind(&queues));
        let kept = Arc::new(Mutex::new(0));
        let (back, given) = (kept.clone(), kept.clone());
        at_once(vec![
            Box::new(move || {
                if turn.offer(7).is_err() {
                    *back.lock().unwrap() += 1;
                }
            }),
            Box::new(move || {
                if let Left::Given(_turn, 7) = leaves.leave() {
                    *given.lock().unwrap() += 1;
                }
            }),
        ]);
        assert_eq!(*kept.lock().unwrap(), 1);
        assert_eq!(queues.len(), 0);
    });
}

in_orders! {
    threads_that_lock_take_what_is_offered(Some(4), [ToAny]): locks(), locks(), locks() => HandedOver WentAhead;
    offer_meets_threads_that_give_up(Some(4), [ToAny]): locks(), locks_for(1), locks_for(1)
        => GivenAtTheLastMoment KnownToBeTaken;
    offer_meets_threads_that_give_up_and_wait(Some(3), [ToAny]): locks(), locks_for(1), locks(), locks()
        => GivenAtTheLastMoment WentAhead;
    offer_meets_a_cancel(Some(3), [ToAny]): locks(), locks_until_cancelled(), locks() => CancelledInQueue WentAhead;
    offered_lease_is_lost(Some(3), [ToAny, ToFirst]): loses(), locks(), locks() => LostWhileOthersWait ExpiredOnTheWay;
}

#[test]
fn waiter_that_is_dropped_passes_the_offer_on() {
    try_every_order(None, || {
        let queues = Queues::default();
        let (turn, dropped, waits) = (first(&queues), behind(&queues), behind(&queues));
        at_once(vec![
            Box::new(move || drop(turn.offer(7))),
            Box::new(move || drop(dropped)),
            Box::new(move || assert!(waits.wait(None).is_ok_and(|(_turn, word)| word == 7))),
        ]);
        assert_eq!(queues.len(), 0);
    });
}
