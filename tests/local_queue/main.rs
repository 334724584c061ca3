//! The local queue under a model checker: threads that lock, try, give up, hand over and lose, in every order of
//! their steps when there are few, and in many random orders when there are more. A thread that waits for ever is
//! reported as a deadlock.

#[macro_use]
mod orders;
mod asker;
mod guard;
#[path = "../../src/queue/local.rs"]
mod local_queue;
mod offers;
mod process;
mod sync;
mod world;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use local_queue::{Entered, LocalQueues, Turn, Waiter};
use orders::try_every_order;
use process::HandsOver::{No, ToAny, ToFirst};
use process::{Process, Thread};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use world::{Seen, World};

type Threads = fn(&Arc<World>) -> Vec<Thread>;
type Queues = LocalQueues<&'static str, u32>;

/// Runs all of these, the first in this thread, until the last has ended.
fn at_once(threads: Vec<Thread>) {
    let mut threads = threads.into_iter();
    let first = threads.next().unwrap();
    let others: Vec<_> = threads.map(sync::spawn).collect();
    first();
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// The threads in a world of their own, where nothing is to be left. It adds what was seen to `seen`.
fn model(threads: Threads, seen: &Arc<Mutex<BTreeSet<Seen>>>) -> impl Fn() + use<> {
    let seen = seen.clone();
    move || {
        let world = Arc::new(World::default());
        at_once(threads(&world));
        seen.lock().unwrap().extend(world.end());
    }
}

/// In every order, or with so many interruptions: for threads that can't be run in every order, because there are too
/// many.
fn in_orders_with(interruptions: Option<u32>, threads: Threads) -> BTreeSet<Seen> {
    let seen = Arc::default();
    try_every_order(interruptions, model(threads, &seen));
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

fn in_orders_of(scheduler: impl Scheduler + 'static, threads: Threads) -> BTreeSet<Seen> {
    let seen = Arc::default();
    Runner::new(scheduler, Config::new()).run(model(threads, &seen));
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
fn waiter_that_is_dropped_passes_the_seat_on() {
    try_every_order(None, || {
        let queues = Queues::default();
        let (turn, dropped, waits) = (first(&queues), behind(&queues), behind(&queues));
        at_once(vec![
            Box::new(move || drop(turn)),
            Box::new(move || drop(dropped)),
            Box::new(move || drop(waits.wait(None))),
        ]);
        assert_eq!(queues.len(), 0);
    });
}

#[test]
fn names_have_queues_of_their_own() {
    try_every_order(None, || {
        let queues = Arc::new(LocalQueues::<_, ()>::default());
        let takes = |name: &'static str| -> Thread {
            let queues = queues.clone();
            Box::new(move || assert!(matches!(queues.enter(&name), Entered::First(_))))
        };
        at_once(vec![takes("one"), takes("other"), takes("third")]);
        assert_eq!(queues.len(), 0);
    });
}

#[test]
fn names_that_are_gone_take_no_room() {
    let threads = || {
        let queues = Arc::new(LocalQueues::<u32, ()>::default());
        let takes = |names: Range<u32>| -> Thread {
            let queues = queues.clone();
            Box::new(move || drop(names.map(|name| queues.enter(&name)).collect::<Vec<_>>()))
        };
        at_once(vec![takes(0..200), takes(200..400)]);
        assert!(queues.room() < 100, "{}", queues.room());
    };
    Runner::new(RandomScheduler::new(10), Config::new()).run(threads);
}

in_orders! {
    threads_that_lock_hand_the_lease_over(None, [ToFirst]): locks(), locks(), locks() => HandedOver;
    lost_lease_frees_the_seat_while_its_guard_is_there(None, [ToFirst]): loses(), locks()
        => LostWhileOthersWait ExpiredOnTheWay;
    lost_lease_meets_a_thread_that_gives_up(None, [ToFirst]): loses(), locks_for(1)
        => LostWhileOthersWait GivenAtTheLastMoment;
    lost_lease_meets_threads_that_lock_and_try(Some(3), [ToFirst]): loses(), locks(), tries()
        => LostWhileOthersWait AskedWithoutSeat ExpiredOnTheWay;
    thread_that_gives_up_takes_nothing_with_it(Some(4), [ToFirst]): locks(), locks_for(1), locks()
        => GivenAtTheLastMoment KnownToBeTaken;
    thread_that_tries_takes_nothing_with_it(Some(4), [ToFirst]): locks(), tries(), locks()
        => AskedWithoutSeat KnownToBeTaken;
    thread_that_is_cancelled_takes_nothing_with_it(Some(3), [ToFirst]): locks(), locks_until_cancelled(), locks()
        => CancelledInQueue CancelMetTurn;
}

#[test]
fn threads_that_do_not_hand_over_ask_one_after_the_other() {
    let seen = in_orders_with(None, |world| {
        let process = Process::new(world, 0, &[No]);
        vec![process.locks(), process.locks(), process.locks()]
    });
    assert!(seen.is_empty(), "{seen:?}");
}

fn two_processes(world: &Arc<World>) -> [Arc<Process>; 2] {
    [0, 1].map(|id| Process::new(world, id, &[ToFirst]))
}

#[test]
fn place_in_line_goes_to_the_next_thread_of_the_process() {
    let seen = in_orders_with(Some(3), |world| {
        let [one, other] = two_processes(world);
        vec![other.locks(), one.locks_for(1), one.locks()]
    });
    assert!(seen.contains(&Seen::PlacePassedOn));
}

#[test]
fn processes_whose_threads_give_up_leave_the_line() {
    let seen = in_orders_with(Some(3), |world| {
        let [one, other] = two_processes(world);
        vec![other.locks_for(1), one.locks_for(1), one.tries()]
    });
    assert!(seen.contains(&Seen::KnownToBeTaken));
}

#[test]
fn thread_that_tries_asks_when_the_last_answer_was_lost() {
    let seen = in_orders_with(Some(3), |world| {
        world.loses_answer(3);
        let [one, other] = two_processes(world);
        vec![other.locks(), one.locks_for(2), one.tries()]
    });
    assert!(seen.contains(&Seen::AnswerLost));
    assert!(seen.contains(&Seen::AskedWithoutSeat));
    assert!(seen.contains(&Seen::KnownToBeTaken));
}

#[test]
fn place_whose_last_answer_was_lost_goes_to_the_next_thread() {
    let seen = in_orders_with(Some(3), |world| {
        world.loses_answer(2);
        let process = Process::new(world, 0, &[ToFirst]);
        vec![process.locks_for(1), process.tries(), process.locks()]
    });
    assert!(seen.contains(&Seen::AnswerLost));
    assert!(seen.contains(&Seen::PlacePassedOn));
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

/// Too many even for orders with few interruptions.
fn crowd(world: &Arc<World>) -> Vec<Thread> {
    world.loses_answer(4);
    let one = Process::new(world, 0, &[ToAny, ToFirst, ToAny, No]);
    let other = Process::new(world, 1, &[No, ToAny]);
    vec![
        one.locks(),
        one.loses(),
        one.locks_for(2),
        one.tries(),
        one.locks_until_cancelled(),
        one.locks(),
        other.locks_for(1),
        other.loses(),
        other.locks_for(2),
    ]
}

#[test]
fn crowd_in_random_orders() {
    let seen = in_orders_of(RandomScheduler::new(10_000), crowd);
    assert_eq!(seen, Seen::ALL.into(), "not everything was tried");
}

#[test]
fn crowd_in_orders_with_few_changes_of_rank() {
    let seen = in_orders_of(PctScheduler::new(4, 10_000), crowd);
    assert_eq!(seen, Seen::ALL.into(), "not everything was tried");
}
