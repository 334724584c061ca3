//! Delayed tasks: when they are due, who gets them, and what becomes of them.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crosslock::{DelayQueue, Error, IfExists, Locker, Task, TaskCounts, TaskId, TaskState};

use crate::{PATIENCE, Place};

/// Long enough that nothing becomes due in a test.
pub(super) const LATER: Duration = Duration::from_secs(600);
pub(super) const NOW: Duration = Duration::ZERO;
const TTL: Duration = Duration::from_millis(150);

pub(super) fn queue(lock: &Locker) -> DelayQueue<u32> {
    lock.delay_queue("tasks").unwrap()
}

/// One whose tasks come in the order of their times.
pub(super) fn in_order(lock: &Locker) -> DelayQueue<u32> {
    queue(lock).shards(1).unwrap()
}

/// Counts in the order of a task's life.
pub(super) fn counts(queue: &DelayQueue<u32>) -> [u64; 4] {
    let TaskCounts {
        delayed,
        ready,
        running,
        buried,
        ..
    } = queue.counts().unwrap();
    [delayed, ready, running, buried]
}

/// A worker whose leases end by themselves.
fn worker_that_vanishes(place: &Place) -> DelayQueue<u32> {
    let lock = place.builder().ttl(place.ttl(TTL)).renew(false);
    queue(&lock.build().unwrap())
}

pub(super) fn take(queue: &DelayQueue<u32>) -> Task<u32> {
    queue.take_for(PATIENCE).unwrap().expect("a task is due")
}

pub(crate) fn task_is_taken_when_it_is_due_and_not_before(place: &Place) {
    let queue = queue(place);
    let id = queue.insert(&7, LATER).unwrap();
    assert!(queue.try_take().unwrap().is_none());
    assert_eq!(counts(&queue), [1, 0, 0, 0]);
    let (began, delay) = (Instant::now(), Duration::from_millis(120));
    assert!(queue.reset(&id, delay).unwrap());
    let task = take(&queue);
    assert!(began.elapsed() >= delay, "{:?}", began.elapsed());
    assert_eq!((*task, Task::id(&task), Task::attempt(&task)), (7, &id, 1));
    assert!(Task::lease(&task).is_held() && !Task::lease(&task).was_abandoned());
    assert_eq!(counts(&queue), [0, 0, 1, 0]);
    Task::done(task).unwrap();
    assert_eq!(counts(&queue), [0; 4]);
    assert_eq!(queue.get(&id).unwrap(), None);
}

pub(crate) fn tasks_come_in_the_order_of_their_times(place: &Place) {
    let queue = in_order(place);
    let now = SystemTime::now();
    let times = [
        now + LATER,
        now - LATER,
        SystemTime::UNIX_EPOCH,
        SystemTime::UNIX_EPOCH + LATER,
    ];
    let ids = [0, 1, 2, 3].map(|at| queue.insert_at(&at, times[at as usize]).unwrap());
    let info = queue.get(&ids[0]).unwrap().unwrap();
    let off = info.due.duration_since(times[0]);
    let off = off.unwrap_or_else(|early| early.duration());
    assert!(off < Duration::from_secs(2), "{off:?}");
    let expected = (0, TaskState::Delayed, 0);
    assert_eq!((info.value, info.state, info.attempt), expected);
    let taken = [(); 3].map(|()| take(&queue));
    assert_eq!(taken.each_ref().map(|task| **task), [2, 3, 1]);
    assert!(Task::late(&taken[2]) >= LATER - Duration::from_secs(2));
}

pub(crate) fn many_are_inserted_together_and_come_in_their_order(place: &Place) {
    let queue = in_order(place);
    let tasks: Vec<_> = (0..250).map(|value| (value, NOW)).collect();
    let ids = queue.insert_all(&tasks).unwrap();
    assert_eq!(ids.len(), 250);
    for (value, _) in tasks {
        let task = queue.try_take().unwrap().expect("it is due");
        assert_eq!((*task, Task::id(&task)), (value, &ids[value as usize]));
        Task::done(task).unwrap();
    }
    assert!(queue.insert_all(&[]).unwrap().is_empty());
    assert_eq!(counts(&queue), [0; 4]);
}

pub(crate) fn id_is_known_while_it_is_there_and_after_it_is_done(place: &Place) {
    let queue = queue(place).remember(Duration::from_millis(300));
    assert!(queue.entry("a").insert(&1).unwrap());
    assert!(!queue.entry("a").insert(&2).unwrap());
    let task = take(&queue);
    // It is running.
    let entry = queue.entry("a").if_exists(IfExists::Replace);
    assert!(!entry.insert(&3).unwrap());
    assert_eq!(*task, 1);
    let done = Instant::now();
    Task::done(task).unwrap();
    let is_known = !queue.entry("a").insert(&4).unwrap();
    assert!(is_known || done.elapsed() > Duration::from_millis(250));
    thread::sleep(Duration::from_millis(320));
    assert!(queue.entry("a").insert(&5).unwrap() || !is_known);
}

pub(crate) fn old_task_is_kept_reset_or_replaced(place: &Place) {
    let queue = queue(place);
    let id = TaskId::from("a");
    let value = || queue.get(&id).unwrap().unwrap().value;
    let entry = || queue.entry(&id).after(LATER);
    assert!(entry().insert(&1).unwrap());
    assert!(!entry().insert(&2).unwrap());
    assert_eq!(value(), 1);
    let due = queue.get(&id).unwrap().unwrap().due;
    let reset = queue.entry(&id).after(2 * LATER).if_exists(IfExists::Reset);
    assert!(reset.insert(&3).unwrap());
    let info = queue.get(&id).unwrap().unwrap();
    assert!(info.value == 1 && info.due > due);
    let entry = queue.entry(&id).if_exists(IfExists::Replace);
    assert!(entry.insert(&4).unwrap());
    let task = take(&queue);
    assert_eq!((*task, Task::attempt(&task)), (4, 1));
    // While it is running it stays as it is.
    assert!(!queue.reset(&id, LATER).unwrap() && !queue.remove(&id).unwrap());
    Task::retry_in(task, LATER).unwrap();
    assert!(queue.reset(&id, 2 * LATER).unwrap() && queue.remove(&id).unwrap());
    assert!(!queue.remove(&id).unwrap() && !queue.reset(&id, NOW).unwrap());
    assert!(!queue.kick(&id).unwrap() && queue.try_take().unwrap().is_none());
}

pub(crate) fn task_that_is_dropped_is_tried_again_by_its_backoff(place: &Place) {
    let queue = queue(place);
    let (base, cap) = (Duration::from_millis(200), Duration::from_secs(60));
    assert!(queue.entry("a").backoff(base, cap).insert(&1).unwrap());
    let dropped = Instant::now();
    drop(take(&queue));
    let task = take(&queue);
    assert!(dropped.elapsed() >= base * 4 / 5, "{:?}", dropped.elapsed());
    assert_eq!(Task::attempt(&task), 2);
    // Nobody vanished.
    assert!(!Task::lease(&task).was_abandoned());
    let unwound = thread::spawn(move || {
        let _task = task;
        std::panic::resume_unwind(Box::new("as planned"));
    });
    unwound.join().unwrap_err();
    let info = queue.get(&"a".into()).unwrap().unwrap();
    assert!(info.last_error.unwrap().contains("panicked"));
}

pub(crate) fn task_is_buried_after_its_last_try_and_kicked(place: &Place) {
    let queue = queue(place);
    let id = TaskId::from("a");
    let entry = queue.entry(&id).tries(2).backoff(NOW, NOW);
    assert!(entry.insert(&1).unwrap());
    Task::retry_in(take(&queue), NOW).unwrap();
    drop(take(&queue));
    assert_eq!(counts(&queue), [0, 0, 0, 1]);
    let buried = queue.buried(10).unwrap();
    assert!(buried.len() == 1 && buried[0].id == id && buried[0].attempt == 2);
    assert!(buried[0].last_error.is_some());
    assert!(queue.try_take().unwrap().is_none());
    assert!(queue.kick(&id).unwrap() && !queue.kick(&id).unwrap());
    let task = take(&queue);
    assert_eq!(Task::attempt(&task), 1);
    Task::bury(task, "no").unwrap();
    let buried = queue.buried(10).unwrap();
    assert_eq!(buried[0].last_error.as_deref(), Some("no"));
    assert!(queue.buried(0).unwrap().is_empty());
    let entry = queue.entry(&id).if_exists(IfExists::Reset);
    assert!(entry.insert(&2).unwrap());
    let task = take(&queue);
    assert_eq!((*task, Task::attempt(&task)), (1, 1));
    Task::bury(task, "no").unwrap();
    assert!(queue.remove(&id).unwrap());
    assert_eq!(counts(&queue), [0; 4]);
}

pub(crate) fn task_of_a_vanished_worker_runs_again_when_its_lease_ends(place: &Place) {
    let (queue, vanishing) = (queue(place), worker_that_vanishes(place));
    queue.insert(&1, NOW).unwrap();
    let began = Instant::now();
    let first = take(&vanishing);
    let token = Task::fencing_token(&first);
    let second = take(&queue);
    let ttl = place.ttl(TTL);
    assert!(began.elapsed() >= place.least(ttl), "{:?}", began.elapsed());
    assert!(!Task::lease(&first).is_held(), "two have it");
    assert!(Task::lease(&second).was_abandoned() && Task::attempt(&second) == 2);
    assert!(Task::fencing_token(&second) > token);
    let refused = Task::done(first).unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    // The second has it still, and gives it back.
    Task::lease(&second).verify().unwrap();
    Task::retry_in(second, NOW).unwrap();
    let third = take(&queue);
    assert!(!Task::lease(&third).was_abandoned() && Task::attempt(&third) == 3);
    Task::done(third).unwrap();
}

pub(crate) fn values_that_do_not_fit_are_refused_or_buried(place: &Place) {
    let long = place.delay_queue::<String>("tasks").unwrap();
    let long = long.payload_limit(10);
    let refused = long.insert(&"x".repeat(9), NOW);
    assert!(matches!(refused, Err(Error::InvalidValue { .. })));
    assert!(long.insert(&"x".repeat(8), NOW).is_ok());
    for id in ["", &"x".repeat(513)] {
        let refused = long.entry(id).insert(&String::new());
        assert!(matches!(refused, Err(Error::InvalidName { .. })));
    }
    let queue = queue(place);
    assert!(matches!(queue.take(), Err(Error::Corrupt { .. })));
    assert_eq!(counts(&queue), [0, 0, 0, 1]);
    assert_eq!(long.buried(1).unwrap()[0].value, "x".repeat(8));
}

pub(crate) fn queues_and_locks_of_a_name_are_apart(place: &Place) {
    for shards in [0, 257] {
        let refused = queue(place).shards(shards);
        assert!(matches!(refused, Err(Error::InvalidOption { .. })));
    }
    let queue = queue(place);
    let _guard = place.lock("tasks").unwrap();
    queue.insert(&1, NOW).unwrap();
    let task = take(&queue);
    let other = place.delay_queue::<u32>("other").unwrap();
    assert!(other.try_take().unwrap().is_none());
    let other = place.with_namespace("another").unwrap();
    assert!(self::queue(&other).try_take().unwrap().is_none());
    assert_eq!(super::inspect::listed(place, ""), ["tasks"]);
    Task::done(task).unwrap();
}

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) fn there_are_none_here(place: &Place) {
    let refused = place.delay_queue::<u32>("tasks").unwrap_err();
    assert!(refused.to_string().contains("delay queues"), "{refused}");
    assert!(matches!(refused, Error::Unsupported { .. }));
}
