//! Queues on one server: which commands are sent, which answers may be lost, and what is left.

use std::sync::{Arc, mpsc::channel};
use std::time::Duration;

use crosslock::{Locker, Task, TaskCounts};
use support::{Proxy, RedisServer};

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

/// Far more than anything here takes, and far less than a ttl.
const PATIENCE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(600);

fn locker(url: &str) -> Locker {
    Locker::builder(url).ttl(TTL).build().expect("open")
}

/// One that can't hear, and whose heartbeat is overdue.
#[test]
fn worker_that_asks_no_more_keeps_no_task_from_others() {
    let server = RedisServer::start();
    let queue = locker(&server.url()).delay_queue::<u32>("tasks");
    let queue = queue.expect("a queue");
    server.query::<()>(&["RPUSH", "{crosslock:tasks}:line", "gone"]);
    server.query::<()>(&["HSET", "{crosslock:tasks}:waiting", "gone", "- 1 "]);
    queue.insert(&1, Duration::ZERO).expect("a server");
    let task = queue.try_take().expect("a server");
    assert_eq!(*task.expect("nobody is ahead"), 1);
}

#[test]
fn one_command_ends_a_task_and_takes_the_next() {
    const TASKS: u32 = 200;
    let server = RedisServer::start();
    let queue = locker(&server.url()).delay_queue::<u32>("tasks");
    let queue = queue.expect("a queue");
    let tasks: Vec<_> = (0..TASKS).map(|value| (value, Duration::ZERO)).collect();
    queue.insert_all(&tasks).expect("a server");
    let before = server.command_calls("evalsha");
    let (sender, done) = channel();
    let workers = queue.work(1, move |task: &Task<u32>| sender.send(**task));
    for value in 0..TASKS {
        assert_eq!(done.recv_timeout(PATIENCE), Ok(value));
    }
    drop(workers);
    let calls = server.command_calls("evalsha") - before;
    // The first of a script that the server doesn't know isn't counted, and some look in vain.
    assert!(calls.abs_diff(u64::from(TASKS)) < 20, "{calls}");
}

/// The question for it was the command whose answer was lost.
#[test]
fn next_task_whose_worker_does_not_hear_of_it_is_given_back() {
    let server = RedisServer::start();
    let proxy = Arc::new(Proxy::start(server.addr()));
    let queue = locker(&proxy.url()).delay_queue::<u32>("tasks");
    let queue = queue.expect("a queue");
    let tasks = [0, 1, 2, 3].map(|value| (value, Duration::ZERO));
    queue.insert_all(&tasks).expect("a server");
    let (sender, done) = channel();
    let losing = proxy.clone();
    let workers = queue.work(1, move |task: &Task<u32>| {
        // The server has the script by then.
        if **task == 1 {
            losing.lose_next_reply("EVALSHA", true);
        }
        sender.send((**task, Task::attempt(task)))
    });
    let workers = workers.expect("threads");
    let mut tasks: Vec<_> = (0..4)
        .map(|_| done.recv_timeout(PATIENCE).expect("a task"))
        .collect();
    drop(workers);
    assert_eq!(proxy.lost_replies(), 1);
    tasks.sort_unstable();
    // The try that nobody has made doesn't count.
    assert_eq!(tasks, [(0, 1), (1, 1), (2, 1), (3, 1)]);
    assert_eq!(queue.counts().expect("a server"), TaskCounts::default());
}
