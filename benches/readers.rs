//! Many that read and one that writes: how many read at once, and how long each waits for the others.
//!
//! ```text
//! cargo bench --bench readers [-- SECONDS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and on another 8 processes that read, for 1 ms each time and again
//! at once, and one that comes to write every 100 ms, by TCP. Each row is measured for SECONDS (5), in rounds that are
//! interleaved in one run, with new processes each time; rates and `inside` are medians of the rounds, times are of
//! all of them. Everything is computed from when each process asked, had the lock and let go, by the clock that
//! they share. What they do at first, when they meet and open their inboxes, isn't counted.
//!
//! How to read it: `inside` is how many read at once on average, over the time in which the writer neither waits nor
//! holds. `writer waits` is from asking to having the lock, and `beyond` what is left of it behind the end of the last
//! read that had been asked for before: one hand-off, if nobody is let in before the writer who asked later. `passed`
//! is how many readers were, at the worst write: a few may overtake on the way to the server, as all share a CPU, and
//! who asked is only about to send. `reader waits` is the same for readers, `beyond` is without the time in which the
//! writer had the lock (the rest of the reads that the writer waited for, and two hand-offs), and `writes` how many a
//! reader waited for, at worst: one writer alone has no second turn before a reader's. Where readers are preferred the
//! writer may wait until they end, with the round.
//!
//! That nobody had the lock while it was written, and that tokens increase from writer to reader and from reader to
//! writer, is checked of every round.

mod support;

use std::time::Duration;

use crosslock::Prefer;
use support::{Column, Cycle, MAX, Outcome, P50, Round, Server, Subject, Table, Task, Worker};
use support::{column, contest};

const ROUNDS: u32 = 5;
const READERS: usize = 8;
const READ: Duration = Duration::from_millis(1);

/// How often the writer comes.
const EVERY: Duration = Duration::from_millis(100);

const COLUMNS: [Column; 13] = [
    column("reads/s", "reads/s", P50, 0),
    column("writes/s", "writes/s", P50, 1),
    column("inside", "inside", P50, 2),
    column("writer waits p50 ms", "writer waits ms", P50, 2),
    column("max ms", "writer waits ms", MAX, 2),
    column("beyond p50 ms", "writer beyond ms", P50, 2),
    column("max ms", "writer beyond ms", MAX, 2),
    column("passed", "passed", MAX, 0),
    column("reader waits p50 ms", "reader waits ms", P50, 2),
    column("max ms", "reader waits ms", MAX, 2),
    column("beyond p50 ms", "reader beyond ms", P50, 2),
    column("max ms", "reader beyond ms", MAX, 2),
    column("writes", "writes", MAX, 0),
];

fn main() {
    if support::serve(|_, _| None) {
        return;
    }
    let seconds = support::argument().unwrap_or(5.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    support::pin(&server);
    let url = &server.tcp();
    let mut subjects = Vec::new();
    for prefer in [Prefer::Fair, Prefer::Readers, Prefer::Writers] {
        for write_ms in [1, 20] {
            let write = Duration::from_millis(write_ms);
            let run = move || round(url, prefer, write, length);
            subjects.push(Subject::new(&format!("{prefer:?}|{write_ms}"), run));
        }
    }
    let table = Table::new(&["prefer", "ms"], &COLUMNS, ROUNDS as usize);
    table.run(subjects);
}

fn round(url: &str, prefer: Prefer, write: Duration, length: Duration) -> Round {
    let task = |kind, hold, every| Task {
        prefer,
        every,
        ..Task::holding(hold).by(kind)
    };
    let reader = task("Read", READ, Duration::ZERO);
    let readers = (0..READERS).map(|_| Worker::spawn(url, "bench", &reader));
    let writer = Worker::spawn(url, "bench", &task("Write", write, EVERY));
    let workers = readers.chain([writer]).collect();
    let (mut outcome, ()) = contest(workers, length, || || ());
    let writes = outcome.cycles.pop().expect("the writer's");
    let mut reads = outcome.cycles.concat();
    reads.sort_unstable_by_key(|read| read.held[0]);
    check(&reads, &writes);
    evaluate(&reads, &writes, &outcome)
}

fn evaluate(reads: &[Cycle], writes: &[Cycle], outcome: &Outcome) -> Round {
    let per_second = |cycles: &[Cycle]| {
        let counted = cycles.iter().filter(|cycle| outcome.counts(cycle.held[0]));
        outcome.per_second(counted.count())
    };
    let mut round = Round::default()
        .with("reads/s", per_second(reads))
        .with("writes/s", per_second(writes))
        .with("inside", inside(reads, writes, outcome.window));
    let counts = |cycle: &&Cycle| outcome.counts(cycle.asked);
    for write in writes.iter().filter(counts) {
        add_write(&mut round, write, reads);
    }
    for read in reads.iter().filter(counts) {
        add_read(&mut round, read, writes);
    }
    round
}

fn add_write(round: &mut Round, write: &Cycle, reads: &[Cycle]) {
    let before = reads.iter().filter(|read| read.held[0] < write.held[0]);
    // Whoever asks is let in or not when the server sees it, which is soon after.
    let (earlier, later): (Vec<&Cycle>, Vec<&Cycle>) =
        before.partition(|read| read.asked < write.asked);
    let last = earlier.iter().map(|read| read.held[1]).max();
    let from = last.unwrap_or_default().max(write.asked);
    round.millis("writer waits ms", write.waited());
    round.millis("writer beyond ms", write.held[0] - from);
    round.add("passed", support::per(later.len(), 1));
}

fn add_read(round: &mut Round, read: &Cycle, writes: &[Cycle]) {
    let meanwhile = |write: &Cycle| overlap([read.asked, read.held[0]], write.held);
    let waited_for: Vec<_> = writes.iter().map(meanwhile).collect();
    let beyond = read.waited() - waited_for.iter().sum::<Duration>();
    let count = waited_for.iter().filter(|time| !time.is_zero()).count();
    round.millis("reader waits ms", read.waited());
    round.millis("reader beyond ms", beyond);
    round.add("writes", support::per(count, 1));
}

/// Nobody has the lock while it is written; reads are in the order in which they began.
fn check(reads: &[Cycle], writes: &[Cycle]) {
    let alone = |one: &Cycle, other: &Cycle| {
        let is_first = one.held[0] < other.held[0];
        let (first, second) = if is_first { (one, other) } else { (other, one) };
        let ordered = first.held[1] <= second.held[0] && first.token < second.token;
        assert!(ordered, "held while it was written: {first:?} {second:?}");
    };
    for write in writes {
        reads.iter().for_each(|read| alone(write, read));
    }
    writes.windows(2).for_each(|pair| alone(&pair[0], &pair[1]));
}

/// How many read at once, on average over the time in which the writer neither waits nor holds.
fn inside(reads: &[Cycle], writes: &[Cycle], window: [Duration; 2]) -> f64 {
    let mut quiet = vec![window];
    for write in writes {
        let busy = [write.asked, write.held[1]];
        quiet = quiet.iter().flat_map(|&time| without(time, busy)).collect();
    }
    let length: Duration = quiet.iter().map(|[from, to]| *to - *from).sum();
    let read_in = |time: [Duration; 2]| -> Duration {
        reads.iter().map(|read| overlap(time, read.held)).sum()
    };
    let sum: Duration = quiet.iter().map(|&time| read_in(time)).sum();
    sum.as_secs_f64() / length.as_secs_f64()
}

/// What is left of a time when another is cut out.
fn without([from, to]: [Duration; 2], cut: [Duration; 2]) -> impl Iterator<Item = [Duration; 2]> {
    let parts = [[from, to.min(cut[0])], [from.max(cut[1]), to]];
    parts.into_iter().filter(|[from, to]| from < to)
}

fn overlap(one: [Duration; 2], other: [Duration; 2]) -> Duration {
    let (from, to) = (one[0].max(other[0]), one[1].min(other[1]));
    to.saturating_sub(from)
}
