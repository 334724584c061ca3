//! One thread, a free lock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};

use super::places::Places;
use super::shared::percentile;
use super::{etcd, zookeeper};

/// How many cycles of each subject aren't measured.
const FIRST: usize = 20;

/// Something that locks and unlocks.
struct Subject {
    what: &'static str,
    /// How far in front the subject stands that it is compared with.
    against: usize,
    cycle: Box<dyn FnMut() -> [Duration; 2]>,
    times: [Vec<Duration>; 2],
}

impl Subject {
    fn new(
        what: &'static str,
        against: usize,
        cycle: impl FnMut() -> [Duration; 2] + 'static,
    ) -> Self {
        Subject {
            what,
            against,
            cycle: Box::new(cycle),
            times: Default::default(),
        }
    }

    fn run(&mut self, record: bool) {
        let times = (self.cycle)();
        if record {
            for (all, time) in self.times.iter_mut().zip(times) {
                all.push(time);
            }
        }
    }

    /// In microseconds, sorted before: that percentile of locking, and of unlocking.
    fn at(&self, percent: usize) -> [f64; 2] {
        [0, 1].map(|step| percentile(&self.times[step], percent))
    }
}

pub(crate) fn run(places: &Places, cycles: usize) {
    let mut subjects = vec![
        Subject::new("memory", 0, ours("memory:")),
        Subject::new("file", 0, ours(&places.file)),
        Subject::new("redis", 0, ours(&places.redis_url())),
        Subject::new("etcd: two transactions", 0, bare_etcd(places)),
        Subject::new("etcd", 1, ours(&places.etcd_url())),
        Subject::new("zookeeper: three requests", 0, bare_zookeeper(places)),
        Subject::new("zookeeper", 1, ours(&places.zookeeper_url())),
    ];
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for cycle in 0..FIRST + cycles {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(cycle >= FIRST);
        }
    }
    report(&mut subjects);
}

pub(crate) fn ours(url: &str) -> impl FnMut() -> [Duration; 2] + use<> {
    let locker = Locker::open(url).expect("an engine");
    move || {
        let start = Instant::now();
        let guard = locker.lock("bench").expect("a free lock");
        let locked = start.elapsed();
        black_box(&guard);
        let start = Instant::now();
        unlock(guard);
        [locked, start.elapsed()]
    }
}

/// On a machine that is busy with other work, no answer may come in time.
fn unlock(guard: LockGuard) {
    guard.unlock().unwrap_or_else(|e| eprintln!("{e}"));
}

fn bare_etcd(places: &Places) -> impl FnMut() -> [Duration; 2] + use<> {
    let mut bare = etcd::Bare::to(places.etcd_members()[0]);
    move || {
        let start = Instant::now();
        bare.lock();
        let locked = start.elapsed();
        let start = Instant::now();
        bare.unlock();
        [locked, start.elapsed()]
    }
}

fn bare_zookeeper(places: &Places) -> impl FnMut() -> [Duration; 2] + use<> {
    let mut bare = zookeeper::Bare::to(places.zookeeper_members()[0]);
    move || {
        let start = Instant::now();
        bare.lock();
        let locked = start.elapsed();
        let start = Instant::now();
        bare.unlock();
        [locked, start.elapsed()]
    }
}

fn report(subjects: &mut [Subject]) {
    println!(
        "{:<26} {:>9} {:>9} {:>6} {:>10} {:>10} {:>6}",
        "alone", "lock p50", "p99 us", "ratio", "unlock p50", "p99 us", "ratio"
    );
    for subject in &mut *subjects {
        subject
            .times
            .iter_mut()
            .for_each(|times| times.sort_unstable());
    }
    for (number, subject) in subjects.iter().enumerate() {
        let (p50, p99) = (subject.at(50), subject.at(99));
        let least = subjects[number - subject.against].at(50);
        println!(
            "{:<26} {:>9.1} {:>9.1} {:>6.2} {:>10.1} {:>10.1} {:>6.2}",
            subject.what,
            p50[0],
            p99[0],
            p50[0] / least[0],
            p50[1],
            p99[1],
            p50[1] / least[1],
        );
    }
    println!();
}
