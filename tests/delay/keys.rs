//! What a queue leaves on a server.

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
