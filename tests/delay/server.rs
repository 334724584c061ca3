//! Queues on one server: which commands are sent, and what is left.

use std::sync::mpsc::channel;
use std::time::Duration;

use crosslock::{Locker, Task};
use support::RedisServer;

#[test]
fn empty_queue_leaves_one_key_for_a_day_and_its_next_task_stays() {
    let server = RedisServer::start();
    let locker = Locker::open(&server.url()).expect("open");
    let queue = locker.delay_queue::<u32>("tasks").expect("a queue");
    let ttl = || server.query::<i64>(&["PTTL", "{crosslock:tasks}:tasks"]);
    for _ in 0..2 {
        queue.insert(&1, Duration::ZERO).expect("a server");
        assert_eq!(ttl(), -1);
        Task::done(queue.take().expect("a server")).expect("its own");
        assert!((1..=86_400_000).contains(&ttl()), "{}", ttl());
        let keys = server.query::<Vec<String>>(&["KEYS", "*tasks}*"]);
        assert_eq!(keys, ["{crosslock:tasks}:tasks"]);
    }
}

#[test]
fn one_command_ends_a_task_and_takes_the_next() {
    const TASKS: u32 = 200;
    let server = RedisServer::start();
    let locker = Locker::open(&server.url()).expect("open");
    let queue = locker.delay_queue::<u32>("tasks");
    let queue = queue.expect("a queue");
    let tasks: Vec<_> = (0..TASKS).map(|value| (value, Duration::ZERO)).collect();
    queue.insert_all(&tasks).expect("a server");
    let before = server.command_calls("evalsha");
    let (sender, done) = channel();
    let workers = queue.work(1, move |task: &Task<u32>| sender.send(**task));
    for value in 0..TASKS {
        assert_eq!(done.recv(), Ok(value));
    }
    drop(workers);
    let calls = server.command_calls("evalsha") - before;
    // The first of a script that the server doesn't know isn't counted, and some look in vain.
    assert!(calls.abs_diff(u64::from(TASKS)) < 20, "{calls}");
}
