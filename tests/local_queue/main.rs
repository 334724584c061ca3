//! The local queue under a model checker: threads that lock, try, give up, hand over and lose, in every order of
//! their steps when there are few, and in many random orders when there are more. A thread that waits for ever is
//! reported as a deadlock.

#[macro_use]
mod orders;
mod book;
#[path = "../../src/queue/local.rs"]
mod local_queue;
mod offers;
mod sync;
mod threads;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use book::Seen;
use local_queue::{Entered, LocalQueues, Turn, Waiter};
use orders::try_every_order;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use threads::HandsOver::{self, No, ToAny, ToFirst};
use threads::{Process, Thread};

type Threads = fn(&Arc<Process>) -> Vec<Thread>;
type Queues = LocalQueues<&'static str, u32>;

/// Runs all of these, the first in this thread, until the last has ended.
fn at_once(threads: Vec<Thread>) {
    let mut threads = threads.into_iter();
    let first = threads.next().unwrap();
    let others: Vec<_> = threads.map(sync::spawn).collect();
    first();
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// The threads in a process of their own, where nothing is to be left. It adds what was seen to `seen`.
fn model(
    hands_over: &'static [HandsOver],
    threads: Threads,
    seen: &Arc<Mutex<BTreeSet<Seen>>>,
) -> impl Fn() + use<> {
    let seen = seen.clone();
    move || {
        let process = Process::new(hands_over);
        at_once(threads(&process));
        seen.lock().unwrap().extend(process.end());
    }
}

/// In every order, or with so many interruptions: for threads that can't be run in every order, because there are too
/// many.
fn in_orders_with(
    interruptions: Option<u32>,
    hands_over: &'static [HandsOver],
    threads: Threads,
) -> BTreeSet<Seen> {
    let seen = Arc::default();
    try_every_order(interruptions, model(hands_over, threads, &seen));
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

fn first(queues: &Queues) -> Turn<&'static str, u32> {
    match queues.enter(&"name") {
        Entered::First(turn) => turn,
        Entered::Offered(..) | Entered::Behind(_) => panic!("somebody has the turn"),
    }
}

fn behind(queues: &Queues) -> Waiter<&'static str, u32> {
    match queues.enter(&"name") {
        Entered::First(_) | Entered::Offered(..) => panic!("nobody has the turn"),
        Entered::Behind(waiter) => waiter,
    }
}

#[test]
fn waiter_that_is_dropped_passes_the_turn_and_the_offer_on() {
    for word in [0, 7] {
        try_every_order(None, move || {
            let queues = Queues::default();
            let (turn, dropped, waits) = (first(&queues), behind(&queues), behind(&queues));
            at_once(vec![
                Box::new(move || match word {
                    0 => drop(turn),
                    word => drop(turn.offer(word)),
                }),
                Box::new(move || drop(dropped)),
                Box::new(move || {
                    assert!(waits.wait(None).is_ok_and(|(_turn, given)| given == word))
                }),
            ]);
            assert_eq!(queues.len(), 0);
        });
    }
}

#[test]
fn cancel_leaves_room_for_the_turn() {
    try_every_order(None, || {
        let queues = Queues::default();
        let (turn, mut waiter) = (first(&queues), behind(&queues));
        let look_again = waiter.look_again().unwrap();
        assert!(waiter.look_again().is_none());
        let cancels: Thread = Box::new(move || (0..3).for_each(|_| look_again.tell()));
        let waits: Thread = Box::new(move || {
            // It looks again, and wants to wait for the turn all the same.
            let given = waiter.wait(None).or_else(|waiter| waiter.wait(None));
            assert!(given.is_ok());
        });
        at_once(vec![Box::new(move || drop(turn)), cancels, waits]);
        assert_eq!(queues.len(), 0);
    });
}

in_orders! {
    threads_that_do_not_hand_over_ask_one_after_the_other(None, [No]): locks(), locks(), locks() =>;
    threads_that_lock_hand_the_lease_over(None, [ToFirst]): locks(), locks(), locks() => HandedOver;
    turn_that_ends_while_its_guard_is_there_meets_threads_that_give_up_and_try(Some(3), [ToFirst]):
        loses(), locks_for(1), tries() => FreedWhileHeld GivenAtTheLastMoment AskedWithoutTurn;
    thread_that_gives_up_takes_nothing_with_it(Some(4), [ToFirst]): locks(), locks_for(1), locks()
        => GivenAtTheLastMoment KnownToBeTaken;
    thread_that_tries_takes_nothing_with_it(Some(4), [ToFirst]): locks(), tries(), locks()
        => AskedWithoutTurn KnownToBeTaken;
    thread_that_is_cancelled_takes_nothing_with_it(Some(3), [ToFirst]): locks(), locks_until_cancelled(), locks()
        => CancelledInQueue CancelMetTurn;
}

/// Too many even for orders with few interruptions.
fn crowd(scheduler: impl Scheduler + 'static) {
    let threads: Threads = |process| {
        vec![
            process.locks(),
            process.loses(),
            process.locks_for(2),
            process.tries(),
            process.locks_until_cancelled(),
            process.locks(),
            process.locks_for(1),
        ]
    };
    let seen = Arc::default();
    let model = model(&[ToAny, ToFirst, ToAny, No], threads, &seen);
    Runner::new(scheduler, Config::new()).run(model);
    let seen = Arc::into_inner(seen).unwrap().into_inner().unwrap();
    assert_eq!(seen, Seen::ALL.into(), "not everything was tried");
}

#[test]
fn crowd_in_random_orders() {
    crowd(RandomScheduler::new(10_000));
}

#[test]
fn crowd_in_orders_with_few_changes_of_rank() {
    crowd(PctScheduler::new(4, 10_000));
}
