//! A process that works on delayed tasks, with two threads, until it is killed.

use std::thread;

use crosslock::{DelayQueue, Error, Task};

use super::*;
use support::{now, say};

/// The lines say what is known at a time: the task's number, its token, and microseconds of the clock of all processes.
pub(crate) fn work() {
    let queue = open().delay_queue::<u32>("tasks").expect("a queue");
    let other = queue.clone();
    thread::spawn(move || work_on(&other));
    work_on(&queue);
}

/// The server may be cut off just now.
fn open() -> Locker {
    loop {
        let ttl = Duration::from_millis(arg(TTL).parse().expect("a number"));
        match Locker::builder(&arg(URL)).ttl(ttl).build() {
            Ok(locker) => return locker,
            Err(e) => say(&format!("failed {e}")),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn work_on(queue: &DelayQueue<u32>) {
    loop {
        match queue.take() {
            Ok(task) => end(task),
            Err(e) => say(&format!("failed {e}")),
        }
    }
}

fn end(task: Task<u32>) {
    let of = format!("{} {}", *task, Task::fencing_token(&task));
    say_while_held("took", &task, &of);
    thread::sleep(Duration::from_micros(fastrand::u64(..4_000)));
    say_while_held("had", &task, &of);
    match Task::done(task) {
        Ok(()) => say(&format!("done {of}")),
        Err(Error::Lost { .. }) => say(&format!("lost {of}")),
        Err(_) => say(&format!("unsure {of}")),
    }
}

/// The time comes first: the lease is valid then, if it is afterwards.
fn say_while_held(what: &str, task: &Task<u32>, of: &str) {
    let at = now().as_micros();
    if Task::lease(task).is_held() {
        say(&format!("{what} {of} {at}"));
    } else {
        say(&format!("late {of}"));
    }
}
