//! How late the workers of a delay queue have its tasks.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use crosslock::{Locker, Task, crossbeam_channel};

const THREADS: usize = 4;
/// From the insertion to the first task.
const FIRST: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(5);

/// Inserts tasks, and returns a line for each: the nanoseconds from its time until a waiting worker has it.
///
/// The clock of the day is that of the server, too, because both are on this machine.
pub fn late(url: &str, name: &str, ttl: Duration, count: u64) -> String {
    let locker = Locker::builder(url).ttl(ttl).build().expect("an engine");
    let queue = locker.delay_queue::<u64>(name).expect("a queue");
    let (sender, times) = crossbeam_channel::unbounded();
    let workers = queue.work(THREADS, move |task: &Task<u64>| {
        let late = SystemTime::now().duration_since(Task::due(task));
        sender.send(late.unwrap_or_default().as_nanos())
    });
    let workers = workers.expect("threads");
    let mut due = FIRST;
    let next = |task| {
        due += STEP;
        (task, due)
    };
    let tasks: Vec<_> = (0..count).map(next).collect();
    queue.insert_all(&tasks).expect("tasks");
    let mut lines = String::new();
    for late in times.iter().take(tasks.len()) {
        writeln!(lines, "{late}").expect("a text");
    }
    drop(workers);
    lines
}
