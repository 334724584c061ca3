//! Four processes that want one lock.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::places::Places;
use super::shared::{self, Cycle, Worker, monotonic, sleep_until};
use super::{etcd, zookeeper};

const PROCESSES: usize = 4;
const HOLD: Duration = Duration::from_millis(1);
const ROUNDS: usize = 3;

/// How long each round is, and how long the processes run before it counts.
const LENGTH: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(300);

/// What came out of one round.
struct Round {
    acquisitions: f64,
    requests: f64,
    fairness: f64,
}

struct Subject<'a> {
    what: &'static str,
    urls: Vec<String>,
    /// How many requests the servers have been sent.
    requests: Box<dyn Fn() -> usize + 'a>,
    rounds: Vec<Round>,
    gaps: Vec<Duration>,
    waits: Vec<Duration>,
}

pub(crate) fn run(places: &Places) {
    let none = || Box::new(|| 0_usize) as Box<dyn Fn() -> usize>;
    let mut subjects = [
        Subject::new("file", vec![places.file.clone()], none()),
        Subject::new("redis", vec![places.redis_url()], none()),
        Subject::new(
            "etcd",
            vec![places.etcd_url()],
            Box::new(|| etcd::requests(&places.etcd_members())),
        ),
        Subject::new(
            "zookeeper",
            vec![places.zookeeper_url()],
            Box::new(|| zookeeper::requests(&places.zookeeper_members())),
        ),
    ];
    let mut recipe = Vec::new();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..ROUNDS {
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run();
        }
        recipe.push(run_recipe(places));
    }
    report(&mut subjects, recipe);
}

impl<'a> Subject<'a> {
    fn new(what: &'static str, urls: Vec<String>, requests: Box<dyn Fn() -> usize + 'a>) -> Self {
        Subject {
            what,
            urls,
            requests,
            rounds: Vec::new(),
            gaps: Vec::new(),
            waits: Vec::new(),
        }
    }

    fn run(&mut self) {
        let url = |process: usize| &self.urls[process % self.urls.len()];
        let mut workers: Vec<Worker> = (0..PROCESSES)
            .map(|process| Worker::spawn(url(process), "bench", HOLD))
            .collect();
        workers.iter_mut().for_each(Worker::await_ready);
        let begin = monotonic() + Duration::from_millis(50);
        let end = begin + WARM_UP + LENGTH;
        for worker in &mut workers {
            worker.run(begin, end + WARM_UP);
        }
        sleep_until(begin + WARM_UP);
        let (begin, requests) = (monotonic(), (self.requests)());
        sleep_until(end);
        let (end, requests) = (monotonic(), (self.requests)() - requests);
        let cycles = workers.into_iter().map(Worker::cycles).collect();
        self.evaluate(cycles, [begin, end], requests);
    }

    fn evaluate(&mut self, cycles: Vec<Vec<Cycle>>, [begin, end]: [Duration; 2], requests: usize) {
        let mut order: Vec<(usize, Cycle)> = Vec::new();
        for (process, cycles) in cycles.into_iter().enumerate() {
            order.extend(cycles.into_iter().map(|cycle| (process, cycle)));
        }
        order.sort_unstable_by_key(|(_, cycle)| cycle.token);
        let mut served = [0; PROCESSES];
        for ((_, before), (process, cycle)) in order.iter().zip(&order[1..]) {
            assert!(before.token < cycle.token, "a token came twice");
            assert!(before.held[1] <= cycle.held[0], "held by two at once");
            if begin <= cycle.held[0] && cycle.held[0] < end {
                served[*process] += 1;
                self.gaps.push(cycle.held[0] - before.held[1]);
                self.waits.push(cycle.waited());
            }
        }
        let acquisitions = served.iter().sum();
        self.rounds.push(Round {
            acquisitions: shared::ratio(acquisitions, 1) / (end - begin).as_secs_f64(),
            requests: shared::ratio(requests, acquisitions),
            fairness: shared::fairness(&served),
        });
    }
}

/// Requests for each acquisition by etcd's own recipe, and acquisitions a second.
fn run_recipe(places: &Places) -> [f64; 2] {
    let members = places.etcd_members();
    let mut clients: Vec<_> = (0..PROCESSES)
        .map(|_| etcd::Recipe::to(members[0]))
        .collect();
    let before = (etcd::requests(&members), etcd::HAD.load(Relaxed));
    let start = Instant::now();
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                while start.elapsed() < LENGTH {
                    client.lock();
                    thread::sleep(HOLD);
                    client.unlock();
                }
            });
        }
    });
    let had = etcd::HAD.load(Relaxed) - before.1;
    let requests = etcd::requests(&members) - before.0;
    let per_second = shared::ratio(had, 1) / start.elapsed().as_secs_f64();
    [shared::ratio(requests, had), per_second]
}

fn report(subjects: &mut [Subject<'_>], recipe: Vec<[f64; 2]>) {
    println!(
        "{:<26} {:>8} {:>7} {:>8} {:>8} {:>9} {:>5}",
        "4 processes, 1 ms", "locks/s", "gap us", "p50 ms", "p99 ms", "requests", "fair"
    );
    for subject in subjects {
        subject.gaps.sort_unstable();
        subject.waits.sort_unstable();
        let median = |of: fn(&Round) -> f64| shared::median(subject.rounds.iter().map(of));
        println!(
            "{:<26} {:>8.0} {:>7.0} {:>8.2} {:>8.2} {:>9.2} {:>5.2}",
            subject.what,
            median(|round| round.acquisitions),
            shared::percentile(&subject.gaps, 50),
            shared::percentile(&subject.waits, 50) / 1e3,
            shared::percentile(&subject.waits, 99) / 1e3,
            median(|round| round.requests),
            median(|round| round.fairness),
        );
    }
    let of = |which: usize| shared::median(recipe.iter().map(|round| round[which]));
    println!("{:<26} {:>8.0} {:>36.2}", "etcd's recipe", of(1), of(0));
}
