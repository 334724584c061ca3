//! Workers of delay queues: who is woken, in which order, and how their waits end.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, DelayQueue, Error, LostReason, Task};

use super::delay::{LATER, NOW, counts, queue, take};
use crate::{PATIENCE, Place};

/// A worker whose heartbeats come so seldom that it has a task only when it is called.
fn rarely_asking(place: &Place) -> DelayQueue<u32> {
    let ttl = place.ttl(3 * PATIENCE);
    queue(&place.builder().ttl(ttl).build().unwrap())
}

/// Less than between two heartbeats.
const CALLED: Duration = PATIENCE.checked_div(2).unwrap();

pub(crate) fn worker_that_waits_hears_of_an_earlier_task(place: &Place) {
    let (queue, other) = (queue(place), rarely_asking(place));
    queue.insert(&1, LATER).unwrap();
    let (sender, taken) = channel();
    let worker = thread::spawn(move || sender.send(*take(&other)).unwrap());
    assert_eq!(
        taken.recv_timeout(Duration::from_millis(300)),
        Err(RecvTimeoutError::Timeout)
    );
    queue.insert(&2, Duration::from_millis(50)).unwrap();
    assert_eq!(taken.recv_timeout(CALLED), Ok(2));
    worker.join().unwrap();
}

/// Of several shards one worker may be the first in all lines, and is called by each.
pub(crate) fn as_many_workers_are_called_as_tasks_are_due(place: &Place) {
    let (queue, other) = (queue(place), rarely_asking(place));
    let (sender, taken) = channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (worker, sender) = (other.clone(), sender.clone());
            scope.spawn(move || sender.send(worker.take_for(2 * CALLED).unwrap()).is_ok());
            // They come one after the other.
            thread::sleep(Duration::from_millis(150));
        }
        (0..4).for_each(|value| drop(queue.insert(&value, NOW).unwrap()));
        // All are there until the last is taken.
        let tasks = [(); 4].map(|()| taken.recv_timeout(CALLED).unwrap().unwrap());
        let mut values = tasks.each_ref().map(|task| **task);
        values.sort_unstable();
        assert_eq!(values, [0, 1, 2, 3]);
    });
}

pub(crate) fn wait_for_a_task_ends_in_time(place: &Place) {
    let queue = queue(place);
    let (began, timeout) = (Instant::now(), Duration::from_millis(150));
    assert!(queue.take_for(timeout).unwrap().is_none());
    assert!(queue.take_until(began + 2 * timeout).unwrap().is_none());
    assert!(began.elapsed() >= 2 * timeout);
    // A worker that gave up stands in nobody's way.
    queue.insert(&1, NOW).unwrap();
    assert!(queue.try_take().unwrap().is_some());
}

pub(crate) fn wait_for_a_task_is_cancelled(place: &Place) {
    let (token, lock) = (CancelToken::new(), place.other());
    let own = queue(&lock);
    own.insert(&1, NOW).unwrap();
    let task = take(&own);
    let waits = |queue: DelayQueue<u32>, end: &dyn Fn()| {
        let worker = thread::spawn(move || queue.take());
        thread::sleep(Duration::from_millis(100));
        end();
        let outcome = worker.join().unwrap();
        support::assert_like!(outcome, Err(Error::Cancelled { .. }));
    };
    waits(queue(&place.with_cancel(&token)), &|| token.cancel());
    waits(own, &|| lock.close());
    let lost = Task::lease(&task).lost().recv().unwrap();
    assert_eq!(lost.reason, LostReason::Closed);
    assert_eq!(counts(&queue(place))[2], 0, "it is given back");
}

pub(crate) fn handler_that_fails_or_panics_is_called_again(place: &Place) {
    let queue = queue(place);
    let (sender, called) = channel();
    for name in ["error", "panic"] {
        let entry = queue.entry(name).tries(2).backoff(NOW, NOW);
        assert!(entry.insert(&u32::from(name == "panic")).unwrap());
    }
    let workers = queue.work(1, move |task: &Task<u32>| {
        sender.send(Task::id(task).to_string()).unwrap();
        if **task == 1 {
            std::panic::resume_unwind(Box::new("no way"));
        }
        Err("it can't")
    });
    let mut calls = [(); 4].map(|()| called.recv_timeout(PATIENCE).unwrap());
    drop(workers.unwrap());
    calls.sort();
    assert_eq!(calls, ["error", "error", "panic", "panic"]);
    let why = |id: &str| queue.get(&id.into()).unwrap().unwrap().last_error.unwrap();
    assert!(why("error").contains("it can't") && why("panic").contains("no way"));
    assert_eq!(counts(&queue), [0, 0, 0, 2]);
}

pub(crate) fn drop_of_workers_waits_for_those_that_work(place: &Place) {
    let queue = queue(place);
    let (sender, begun) = channel();
    let workers = queue.work(2, move |_: &Task<u32>| {
        sender.send(()).unwrap();
        thread::sleep(Duration::from_millis(200));
        Ok::<(), Error>(())
    });
    let workers = workers.unwrap();
    queue.insert(&1, NOW).unwrap();
    begun.recv_timeout(PATIENCE).unwrap();
    drop(workers);
    assert_eq!(counts(&queue), [0; 4]);
}
