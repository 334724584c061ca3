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
//! who asked is only about to send. `reader waits` is the same for readers, `beyond` is without the time
//! in which the writer had the lock (the rest of the reads that the writer waited for, and two hand-offs), and
//! `writes` how many a reader waited for, at worst: one writer alone has no second turn before a reader's. Where readers
//! are preferred the writer may wait until they end, with the round.
//!
//! That nobody had the lock while it was written, and that tokens increase from writer to reader and from reader to
//! writer, is checked of every round.

mod support;

use std::time::Duration;

use crosslock::Prefer;

use support::{Cycle, Inside, Server, Task, Way, Worker, monotonic};

const ROUNDS: u32 = 5;
const READERS: usize = 8;
const READ: Duration = Duration::from_millis(1);

/// How often the writer comes.
const EVERY: Duration = Duration::from_millis(100);

/// How long the processes run before it counts.
const WARM_UP: Duration = Duration::from_millis(250);

/// From the order to begin to the beginning.
const START: Duration = Duration::from_millis(20);

/// How long they run on, so that none ends before it doesn't count any more.
const MARGIN: Duration = Duration::from_millis(30);

fn main() {
    if support::serve() {
        return;
    }
    let seconds = support::argument().unwrap_or(5.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    support::pin(&server);
    let mut subjects: Vec<Subject> = [Prefer::Fair, Prefer::Readers, Prefer::Writers]
        .into_iter()
        .flat_map(|prefer| [1, 20].map(|write| Subject::new(prefer, write)))
        .collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..ROUNDS {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(&server.tcp(), length);
        }
    }
    report(&mut subjects);
}

/// Who goes first, and for how long is written.
struct Subject {
    prefer: Prefer,
    write: Duration,
    rounds: Vec<Round>,
    of_writer: Waits,
    of_readers: Waits,
}

/// What came out of one round.
struct Round {
    /// Per second.
    reads: f64,
    writes: f64,
    /// On average.
    inside: f64,
}

/// What those of one kind waited for.
#[derive(Default)]
struct Waits {
    all: Vec<Duration>,
    /// Without what they had to wait for.
    beyond: Vec<Duration>,
    /// How many of the other kind were let in meanwhile, at worst.
    others: usize,
}

impl Subject {
    fn new(prefer: Prefer, milliseconds: u64) -> Self {
        Subject {
            prefer,
            write: Duration::from_millis(milliseconds),
            rounds: Vec::new(),
            of_writer: Waits::default(),
            of_readers: Waits::default(),
        }
    }

    fn run(&mut self, url: &str, length: Duration) {
        let mut workers: Vec<Worker> = (0..READERS)
            .map(|_| self.spawn(url, Way::Read, READ, Duration::ZERO))
            .collect();
        workers.push(self.spawn(url, Way::Write, self.write, EVERY));
        workers.iter_mut().for_each(Worker::await_ready);
        let begin = monotonic() + START;
        let window = [begin + WARM_UP, begin + WARM_UP + length];
        for worker in &mut workers {
            worker.run(begin, window[1] + MARGIN);
        }
        let writer = workers.pop().expect("it was pushed last");
        let mut reads: Vec<Cycle> = workers.into_iter().flat_map(Worker::cycles).collect();
        reads.sort_unstable_by_key(|read| read.held[0]);
        let writes = writer.cycles();
        check(&reads, &writes);
        self.evaluate(&reads, &writes, window);
    }

    fn spawn(&self, url: &str, way: Way, hold: Duration, every: Duration) -> Worker {
        let prefer = self.prefer;
        let task = Task {
            way,
            prefer,
            hold,
            inside: Inside::Sleep,
            every,
        };
        Worker::spawn_to(url, "bench", task)
    }

    fn evaluate(&mut self, reads: &[Cycle], writes: &[Cycle], window: [Duration; 2]) {
        let length = (window[1] - window[0]).as_secs_f64();
        let per_second = |cycles: &[Cycle]| {
            let counted = cycles.iter().filter(|cycle| is_in(window, cycle.held[0]));
            support::ratio(counted.count(), 1) / length
        };
        self.rounds.push(Round {
            reads: per_second(reads),
            writes: per_second(writes),
            inside: inside(reads, writes, window),
        });
        for write in writes.iter().filter(|write| is_in(window, write.asked)) {
            self.of_writer.add_write(write, reads);
        }
        for read in reads.iter().filter(|read| is_in(window, read.asked)) {
            self.of_readers.add_read(read, writes);
        }
    }

    fn row(&self) -> String {
        let median = |of: fn(&Round) -> f64| support::median(self.rounds.iter().map(of));
        let (writer, readers) = (&self.of_writer, &self.of_readers);
        format!(
            "{:<8} {:>4} {:>7.0} {:>8.1} {:>6.2} {} {} {:>6} {} {} {:>6}",
            format!("{:?}", self.prefer),
            self.write.as_millis(),
            median(|round| round.reads),
            median(|round| round.writes),
            median(|round| round.inside),
            milliseconds(&writer.all),
            milliseconds(&writer.beyond),
            writer.others,
            milliseconds(&readers.all),
            milliseconds(&readers.beyond),
            readers.others,
        )
    }
}

impl Waits {
    fn add_write(&mut self, write: &Cycle, reads: &[Cycle]) {
        let before = reads.iter().filter(|read| read.held[0] < write.held[0]);
        // Whoever asks is let in or not when the server sees it, which is soon after.
        let (earlier, later): (Vec<&Cycle>, Vec<&Cycle>) =
            before.partition(|read| read.asked < write.asked);
        let last = earlier.iter().map(|read| read.held[1]).max();
        let from = last.unwrap_or_default().max(write.asked);
        self.all.push(write.waited());
        self.beyond.push(write.held[0] - from);
        self.others = self.others.max(later.len());
    }

    fn add_read(&mut self, read: &Cycle, writes: &[Cycle]) {
        let meanwhile = |write: &&Cycle| overlap([read.asked, read.held[0]], write.held);
        let waited_for = || writes.iter().map(|write| meanwhile(&write));
        self.all.push(read.waited());
        self.beyond
            .push(read.waited() - waited_for().sum::<Duration>());
        let count = waited_for().filter(|time| !time.is_zero()).count();
        self.others = self.others.max(count);
    }

    fn sort(&mut self) {
        self.all.sort_unstable();
        self.beyond.sort_unstable();
    }
}

/// Nobody has the lock while it is written; reads are in the order in which they began.
fn check(reads: &[Cycle], writes: &[Cycle]) {
    let alone = |one: &Cycle, other: &Cycle| {
        let (first, second) = if one.held[0] < other.held[0] {
            (one, other)
        } else {
            (other, one)
        };
        let ordered = first.held[1] <= second.held[0] && first.token < second.token;
        assert!(ordered, "held while it was written: {first:?} {second:?}");
    };
    for write in writes {
        reads.iter().for_each(|read| alone(write, read));
    }
    for (before, after) in writes.iter().zip(&writes[1..]) {
        alone(before, after);
    }
}

/// How many read at once, on average over the time in which the writer neither waits nor holds.
fn inside(reads: &[Cycle], writes: &[Cycle], window: [Duration; 2]) -> f64 {
    let mut quiet = vec![window];
    for write in writes {
        let busy = [write.asked, write.held[1]];
        quiet = quiet.iter().flat_map(|&time| without(time, busy)).collect();
    }
    let length: Duration = quiet.iter().map(|[from, to]| *to - *from).sum();
    let read =
        |read: &Cycle| -> Duration { quiet.iter().map(|&time| overlap(time, read.held)).sum() };
    let sum: Duration = reads.iter().map(read).sum();
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

fn is_in(window: [Duration; 2], time: Duration) -> bool {
    window[0] <= time && time < window[1]
}

/// The median and the longest, of sorted times; nothing when there are none.
fn milliseconds(times: &[Duration]) -> String {
    let Some(longest) = times.last() else {
        return format!("{:>8} {:>8}", "-", "-");
    };
    let median = support::percentile(times, 50) / 1e3;
    format!("{median:>8.2} {:>8.2}", longest.as_secs_f64() * 1e3)
}

fn report(subjects: &mut [Subject]) {
    println!(
        "{:<8} {:>4} {:>7} {:>8} {:>6} {:>17} {:>17} {:>6} {:>17} {:>17} {:>6}",
        "prefer",
        "ms",
        "reads/s",
        "writes/s",
        "inside",
        "writer waits",
        "beyond",
        "passed",
        "reader waits",
        "beyond",
        "writes"
    );
    let times = format!("{:>8} {:>8}", "p50 ms", "max ms");
    println!("{:>37} {times} {times} {:>6} {times} {times}", "", "");
    for subject in subjects {
        subject.of_writer.sort();
        subject.of_readers.sort();
        println!("{}", subject.row());
    }
}
