//! One run: a server, workers behind a proxy each, and faults, one after the other.

use std::env;
use std::mem;
use std::os::unix::fs::chown;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::geteuid;

use super::checker::{Rules, Violation, judge};
use super::faults;
use super::history::{self, ALL, DRIVER, Event, History, PROGRAM};
use super::kinds::{BY_ITSELF, Class, ELECTION, KINDS, Kind};
use super::names::{COUNTER, MOST_PERMITS};
use super::number;
use super::program::Program;
use super::register::Register;
use super::servers::{Directory, Servers};
use super::summary::Summary;
use super::topology::Topology;
use super::watcher::Watchers;
use super::worker::Told;
use support::{Child, Fault, Proxy, eventually};

pub(crate) const WORKERS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(30);
/// The time without faults at the beginning, and now and then: what goes wrong in it has no excuse.
const QUIET: Duration = Duration::from_millis(2_000);
const FAULTS_BETWEEN_QUIET: usize = 12;
/// What a loaded machine may add to a bound, beside the lateness that is seen.
const SLACK: Duration = Duration::from_millis(150);

/// A run.
pub(crate) struct Driver<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) servers: Servers,
    pub(crate) register: Register,
    /// Of each worker one to each server, unless servers have theirs.
    pub(crate) proxies: Vec<Vec<Proxy>>,
    pub(crate) workers: Vec<Child>,
    /// Where the faults are safe: after others two commands may run.
    pub(crate) program: Option<Program>,
    pub(crate) rng: Rng,
    pub(crate) ttl: Duration,
    /// When it was looked last who is a master.
    seen_at: u64,
    /// Whom the workers run as.
    uid: Option<u32>,
    pub(crate) history: History,
    class: Class,
    /// Before the first call.
    watchers: Option<Watchers>,
    lives: u64,
    /// How many were fired.
    pub(crate) faults: u64,
}

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<Violation>,
    pub(crate) summary: Summary,
}

/// Lets workers work for so long, breaks things, and judges what they did.
pub(crate) fn run(
    (topology, class): (Topology, Class),
    dir: &Path,
    seed: u64,
    time: Duration,
) -> Outcome {
    let mut driver = Driver::start(topology, class, dir, seed);
    driver.tell_what_is_left_out();
    let rounds = driver.torment(time);
    driver.watchers = None;
    driver.end();
    driver.history.tell(&Event {
        detail: class.name().to_owned(),
        outcome: topology.name().to_owned(),
        until: driver.ttl.as_nanos().try_into().expect("short"),
        token: time.as_secs(),
        id: rounds,
        ..Event::now("run")
    });
    judged(dir)
}

/// A user that systems don't have, since no limit on threads binds the super-user; `None`, where this process can't
/// become one.
fn stranger() -> Option<u32> {
    geteuid()
        .is_root()
        .then(|| 65_000 + std::process::id() % 500)
}

/// Judges the history in a directory.
pub(crate) fn judged(dir: &Path) -> Outcome {
    let events = history::read(dir).expect("read history");
    let mut reversed = events.iter().rev();
    let run = reversed.find(|event| event.op == "run").expect("its end");
    let mut rules = rules(run);
    let left_out = |name: &str| {
        let mut told = events.iter().filter(|event| event.op == "without");
        told.any(|event| event.detail == name)
    };
    rules.faults.retain(|(name, _)| !left_out(name));
    Outcome {
        violations: judge(&events, &rules),
        summary: Summary::of(&events, rules.ttl),
    }
}

fn rules(run: &Event) -> Rules {
    let class = Class::named(&run.detail).expect("a class");
    let (seconds, rounds) = (run.token, run.id);
    let count = |number: u64| usize::try_from(number).expect("no ages");
    // While others take the places of masters, nobody gets a lock.
    let topology = Topology::named(&run.outcome).unwrap_or(Topology::Single);
    let is_single = matches!(topology, Topology::Single | Topology::File);
    let io_timeout = topology.io_timeout();
    let least = |number| count(if is_single { number } else { number / 4 });
    let are_all = env::var_os("TORTURE_FAULTS").is_none();
    Rules {
        class,
        ttl: Duration::from_nanos(run.until),
        io_timeout,
        // What the library makes of its default.
        replica_timeout: (class == Class::Safe && topology.replicas() > 0)
            .then_some(io_timeout / 2),
        slack: SLACK,
        acquisitions: least(seconds * 10),
        of_each_sort: least(seconds / 4),
        commands: match class {
            Class::Safe => least(seconds / 10),
            Class::Unsafe => 0,
        },
        permits: MOST_PERMITS,
        stale_writes: usize::from(rounds > 0 && are_all),
        // A fault may meet nobody now and then.
        faults: kinds(class)
            .map(|kind| (kind.name, count(rounds * 2 / 3)))
            .collect(),
    }
}

/// Those that are fired.
fn kinds(class: Class) -> impl Iterator<Item = &'static Kind> {
    let chosen = env::var("TORTURE_FAULTS").unwrap_or_default();
    KINDS
        .iter()
        .filter(move |kind| kind.is_of(class) && kind.is_among(&chosen))
        .filter(|kind| ![BY_ITSELF, ELECTION].contains(&kind.name))
}

impl<'a> Driver<'a> {
    fn start(topology: Topology, class: Class, dir: &'a Path, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let ttl = number("TORTURE_TTL").unwrap_or_else(|| rng.u64(topology.ttls()));
        let ttl = Duration::from_millis(ttl);
        let servers = Servers::start(topology, class, dir);
        let watchers = Watchers::start(&servers, dir).expect("write history");
        let proxies = (0..WORKERS).map(|_| servers.proxies_for_one()).collect();
        let uid = stranger();
        chown(dir, uid, uid).expect("give away the directory");
        let mut driver = Driver {
            dir,
            register: Register::start(dir, uid).expect("listen"),
            proxies,
            workers: Vec::new(),
            program: None,
            rng,
            ttl,
            history: History::open(dir, "driver.jsonl", DRIVER).expect("write history"),
            class,
            watchers: Some(watchers),
            lives: 0,
            faults: 0,
            seen_at: history::now(),
            servers,
            uid,
        };
        for index in 0..WORKERS {
            let child = driver.new_worker(index);
            driver.workers.push(child);
        }
        for worker in &mut driver.workers {
            worker.wait_for("ready", PATIENCE);
        }
        if class == Class::Safe {
            let seed = driver.rng.u64(..);
            driver.program = Some(Program::start(dir, &driver.servers, ttl, seed));
        }
        driver
    }

    fn tell_what_is_left_out(&self) {
        for kind in kinds(self.class).filter(|kind| !self.can_fire(kind)) {
            self.history.tell(&Event {
                detail: kind.name.to_owned(),
                ..Event::now("without")
            });
        }
    }

    fn can_fire(&self, kind: &Kind) -> bool {
        let has_disk = self.servers.directory().is_none_or(Directory::has_disk);
        let is_there = has_disk || kind.name != "disk full";
        is_there && kind.on.contains(&self.servers.topology())
    }

    /// A process behind the proxy with this number, if there are such.
    pub(crate) fn new_worker(&mut self, index: u32) -> Child {
        self.lives += 1;
        let number = usize::try_from(index).expect("few");
        let told = Told {
            dir: self.dir.to_owned(),
            index,
            life: self.lives,
            url: self.servers.url_by(&self.proxies[number]),
            ttl: self.ttl,
            io_timeout: self.servers.topology().io_timeout(),
            seed: self.rng.u64(..),
        };
        told.start(self.uid)
    }

    /// Those between a worker and the servers.
    pub(crate) fn proxies_of(&self, index: u32) -> Vec<&Proxy> {
        let own = usize::try_from(index).ok();
        let all = self.servers.proxies();
        match own.and_then(|own| self.proxies.get(own)) {
            _ if !all.is_empty() => all,
            Some(own) => own.iter().collect(),
            None => self.proxies.iter().flatten().collect(),
        }
    }

    /// Does this to what passes between a worker and the servers.
    pub(crate) fn set_network(&self, index: u32, fault: Fault) {
        let proxies = self.proxies_of(index);
        proxies.iter().for_each(|proxy| proxy.set(fault));
    }

    pub(crate) fn worker(&mut self, index: u32) -> &mut Child {
        &mut self.workers[usize::try_from(index).expect("few")]
    }

    /// Fires faults for so long; says how often each.
    fn torment(&mut self, time: Duration) -> u64 {
        let end = Instant::now() + time;
        let kinds: Vec<_> = kinds(self.class)
            .filter(|kind| self.can_fire(kind))
            .collect();
        let (mut rounds, mut fired) = (0, 0);
        thread::sleep(QUIET);
        loop {
            let mut order = kinds.clone();
            self.rng.shuffle(&mut order);
            for kind in order {
                if Instant::now() >= end {
                    return rounds;
                }
                self.notice();
                self.fire(kind);
                fired += 1;
                let pause = self.rng.u64(200..800);
                thread::sleep(Duration::from_millis(pause));
                if fired % FAULTS_BETWEEN_QUIET == 0 {
                    thread::sleep(QUIET);
                }
            }
            rounds += 1;
        }
    }

    /// Tells of a master that was replaced although nobody asked for it: the machine was too busy for it.
    fn notice(&mut self) {
        let since = mem::replace(&mut self.seen_at, history::now());
        if !self.servers.has_changed() {
            return;
        }
        self.faults += 1;
        let told = Event {
            at: since,
            op: "fault".to_owned(),
            process: ALL,
            id: self.faults,
            detail: BY_ITSELF.to_owned(),
            ..Event::default()
        };
        self.history.tell(&told);
        self.servers.mend();
        self.history.tell(&Event {
            at: history::now(),
            op: "faulted".to_owned(),
            ..told
        });
    }

    /// Fires one, when somebody holds a lock, or waits for it.
    fn fire(&mut self, kind: &'static Kind) {
        self.faults += 1;
        let id = self.faults;
        let Some(target) = faults::aim(self, kind) else {
            // Nobody was there: it isn't counted.
            return;
        };
        let pid = match target.process {
            ALL => 0,
            // What hits the watchdog leaves it alive.
            PROGRAM if kind.name.ends_with(" watchdog") => 0,
            PROGRAM => self.program.as_ref().map_or(0, Program::pid).into(),
            index => self.worker(index).pid().into(),
        };
        let is_everyones = kind.is_of_network() && !self.servers.proxies().is_empty();
        let told = Event {
            process: if is_everyones { ALL } else { target.process },
            name: target.name.clone(),
            id,
            token: pid,
            detail: kind.name.to_owned(),
            ..Event::now("fault")
        };
        self.history.tell(&told);
        let hit = faults::fire(self, kind, &target);
        self.seen_at = history::now();
        self.history.tell(&Event {
            outcome: if hit { "hit" } else { "" }.to_owned(),
            at: history::now(),
            op: "faulted".to_owned(),
            ..told
        });
    }

    /// Ends the workers, and looks for what they left.
    fn end(&mut self) {
        self.workers
            .iter_mut()
            .for_each(|worker| worker.tell("end"));
        let mut stuck = Vec::new();
        eventually(PATIENCE, || {
            let working = self.workers.iter_mut();
            let working = working.filter_map(|one| (!one.has_said("done")).then(|| one.pid()));
            stuck = working.collect();
            stuck.is_empty()
        });
        if !stuck.is_empty() {
            self.tell_left(format!("the processes {stuck:?}, which don't end"));
        }
        if let Some(program) = &mut self.program
            && !program.end(PATIENCE)
        {
            self.tell_left("the program, which doesn't end".to_owned());
        }
        let mut left = None;
        if !eventually(Duration::from_secs(10), || {
            left = self.servers.left();
            left.is_none()
        }) {
            self.tell_left(left.expect("it isn't clean"));
        }
        self.tell_value();
        self.workers.iter_mut().for_each(Child::hang_up);
    }

    fn tell_left(&self, detail: String) {
        self.history.tell(&Event {
            detail,
            ..Event::now("left")
        });
    }

    fn tell_value(&self) {
        let stored = self.servers.stored(COUNTER);
        self.history.tell(&Event {
            name: COUNTER.to_owned(),
            until: stored,
            ..Event::now("stored")
        });
    }
}
