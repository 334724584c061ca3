//! Processes that want one lock: how fast it goes from one to the next, and what that costs.
//!
//! ```text
//! cargo bench --bench hand_off [-- SECONDS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and on another P processes that lock, hold and unlock in a loop, by
//! TCP. The same goes for a master behind three sentinels, and for a cluster of three masters, of which each process
//! is told another node first; none has replicas, and all servers share their CPU. Each row is measured for SECONDS
//! (3), in rounds that are interleaved in one run, with new processes each time; rates and ratios are medians of the
//! rounds, times are of all of them. All processes of a round begin together, and what they do at first, when they
//! meet and open their inboxes, isn't counted.
//!
//! How to read it: a lock that is held for 1 ms can be taken 1000 times a second, if it cost nothing to give it to
//! the next; `ratio` is against that. With nothing to hold, it is against what one process alone does in the
//! same run: a cycle of lock and unlock is two round trips. `hand-offs` are acquisitions after another process, and
//! have the same ratio beside them. `gap` is the median time from one holder's last moment to the first of the next.
//! `p50` and `p99` are of the time from asking for the lock to having it, and `held` is what a sleep of the time to
//! hold came to. Per acquisition there are `evalsha`, the commands that the processes sent, and `all`, with those
//! that the scripts run for them, `script`, the microseconds that the servers spend in EVALSHA, and `cpu`, all of
//! their CPU time in microseconds; of a cluster that is the CPU time of three, two of which have nothing to do.
//! `fair` is how often the least served process had the lock, against the most served.
//!
//! That no two held it at once, and that tokens increase from holder to holder, is checked of every round.

mod support;

use std::time::Duration;

use support::{Counting, Cycle, Place, Usage, Worker, monotonic};

const ROUNDS: u32 = 5;

/// How long the processes run before it counts.
const WARM_UP: Duration = Duration::from_millis(150);

/// From the order to begin to the beginning.
const START: Duration = Duration::from_millis(20);

/// How long they run on, so that none ends before it doesn't count any more.
const MARGIN: Duration = Duration::from_millis(30);

/// For as long the counting may begin late: the servers have to be asked.
const LATE: Duration = Duration::from_millis(100);

fn main() {
    if support::serve() {
        return;
    }
    let seconds = support::argument().unwrap_or(3.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = [Place::single, Place::sentinels, Place::cluster];
    let places = start.map(|start| start(directory.path()));
    support::pin_places(&places);
    let mut subjects = Vec::new();
    for (place, processes) in places.iter().zip([&[1, 2, 4, 16][..], &[4], &[4]]) {
        for hold in [0, 1] {
            let subject = |processes: &usize| Subject::new(place, *processes, hold);
            subjects.extend(processes.iter().map(subject));
        }
    }
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..ROUNDS {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(length);
        }
    }
    report(&mut subjects);
}

/// So many processes, which hold for as long.
struct Subject<'a> {
    place: &'a Place,
    processes: usize,
    hold: Duration,
    rounds: Vec<Round>,
    waits: Vec<Duration>,
    /// From one holder to the next.
    gaps: Vec<Duration>,
}

/// What came out of one round.
struct Round {
    /// Per second.
    acquisitions: f64,
    hand_offs: f64,
    /// Per acquisition.
    evalsha: f64,
    all: f64,
    /// Microseconds per acquisition.
    script: f64,
    cpu: f64,
    fairness: f64,
    held: f64,
}

impl<'a> Subject<'a> {
    fn new(place: &'a Place, processes: usize, milliseconds: u64) -> Self {
        Subject {
            place,
            processes,
            hold: Duration::from_millis(milliseconds),
            rounds: Vec::new(),
            waits: Vec::new(),
            gaps: Vec::new(),
        }
    }

    fn run(&mut self, length: Duration) {
        let servers = self.place.admins();
        let mut workers: Vec<Worker> = (0..self.processes)
            .map(|process| Worker::spawn(&self.place.url(process), "bench", self.hold))
            .collect();
        workers.iter_mut().for_each(Worker::await_ready);
        let begin = monotonic() + START;
        let latest = begin + WARM_UP + LATE + length;
        for worker in &mut workers {
            worker.run(begin, latest + MARGIN);
        }
        support::sleep_until(begin + WARM_UP);
        let counting = Counting::start(servers);
        let begin = monotonic();
        let end = latest.min(begin + length);
        support::sleep_until(end);
        let usage = counting.end();
        let cycles = workers.into_iter().map(Worker::cycles).collect();
        self.evaluate(cycles, [begin, end], &usage);
    }

    fn evaluate(&mut self, cycles: Vec<Vec<Cycle>>, [begin, end]: [Duration; 2], usage: &Usage) {
        let order = in_order(cycles);
        let counts = |cycle: &Cycle| begin <= cycle.held[0] && cycle.held[0] < end;
        let mut served = vec![0; self.processes];
        let (mut hand_offs, mut held) = (0, Duration::ZERO);
        for (before, (process, cycle)) in order.iter().zip(&order[1..]) {
            if counts(cycle) {
                served[*process] += 1;
                hand_offs += usize::from(before.0 != *process);
                held += cycle.held[1] - cycle.held[0];
                self.waits.push(cycle.waited());
                self.gaps.push(cycle.held[0] - before.1.held[1]);
            }
        }
        let acquisitions: usize = served.iter().sum();
        assert!(acquisitions > 0, "nobody had the lock");
        let per_second = |count| support::ratio(count, 1) / (end - begin).as_secs_f64();
        self.rounds.push(Round {
            acquisitions: per_second(acquisitions),
            hand_offs: per_second(hand_offs),
            evalsha: support::ratio(usage.evalsha, acquisitions),
            all: support::ratio(usage.all, acquisitions),
            script: usage.script / support::ratio(acquisitions, 1),
            cpu: usage.cpu * 1e6 / support::ratio(acquisitions, 1),
            fairness: support::fairness(&served),
            held: held.as_secs_f64() * 1e3 / support::ratio(acquisitions, 1),
        });
    }

    fn row(&self, most: f64) -> String {
        let acquisitions = self.median(|round| round.acquisitions);
        let hand_offs = self.median(|round| round.hand_offs);
        let wait = |percent| support::percentile(&self.waits, percent) / 1e3;
        format!(
            "{:<10} {:>3} {:>7} {acquisitions:>7.0} {:>5.2} {hand_offs:>9.0} {:>5.2} {:>7.0} {:>7.3} {:>7.3} {:>7.2} {:>5.1} {:>6.1} {:>5.0} {:>5.2} {:>4.2}",
            self.place.kind,
            self.processes,
            self.hold.as_millis(),
            acquisitions / most,
            hand_offs / most,
            support::percentile(&self.gaps, 50),
            wait(50),
            wait(99),
            self.median(|round| round.evalsha),
            self.median(|round| round.all),
            self.median(|round| round.script),
            self.median(|round| round.cpu),
            self.median(|round| round.held),
            self.median(|round| round.fairness),
        )
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        support::median(self.rounds.iter().map(of))
    }
}

/// All cycles with their processes, in the order of their tokens.
fn in_order(cycles: Vec<Vec<Cycle>>) -> Vec<(usize, Cycle)> {
    let number = |(process, cycles): (usize, Vec<Cycle>)| {
        cycles.into_iter().map(move |cycle| (process, cycle))
    };
    let mut order: Vec<_> = cycles.into_iter().enumerate().flat_map(number).collect();
    order.sort_unstable_by_key(|(_, cycle)| cycle.token);
    for (before, after) in order.iter().zip(&order[1..]) {
        let ordered = before.1.token < after.1.token && before.1.held[1] <= after.1.held[0];
        assert!(ordered, "held at once: {before:?} {after:?}");
    }
    order
}

fn report(subjects: &mut [Subject]) {
    let alone = subjects[0].median(|round| round.acquisitions);
    println!(
        "{:<10} {:>3} {:>7} {:>7} {:>5} {:>9} {:>5} {:>7} {:>7} {:>7} {:>7} {:>5} {:>6} {:>5} {:>5} {:>4}",
        "",
        "P",
        "hold ms",
        "locks/s",
        "ratio",
        "hand-offs",
        "ratio",
        "gap us",
        "p50 ms",
        "p99 ms",
        "evalsha",
        "all",
        "script",
        "cpu",
        "held",
        "fair"
    );
    for subject in subjects {
        subject.waits.sort_unstable();
        subject.gaps.sort_unstable();
        let most = if subject.hold.is_zero() {
            alone
        } else {
            1.0 / subject.hold.as_secs_f64()
        };
        println!("{}", subject.row(most));
    }
}
