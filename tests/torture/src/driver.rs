//! One run: servers, workers, the program, and faults, one after the other.

use std::env;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::faults::{FAULTS, Fault};
use super::history::{self, Event, History, What};
use super::program::Program;
use super::servers::{Servers, Topology};
use super::worker::{COUNTER, Told};
use support::{Child, eventually};

const WORKERS: u32 = 4;
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// In the end each thread has each lock once more, and the program runs a command.
const ENDS_WITHIN: Duration = Duration::from_secs(90);

pub(crate) struct Driver<'a> {
    dir: &'a Path,
    program_of_workers: &'a Path,
    pub(crate) servers: Servers,
    pub(crate) workers: Vec<Worker>,
    pub(crate) program: Program,
    pub(crate) rng: Rng,
    pub(crate) ttl: Duration,
    history: History,
    last: u32,
}

pub(crate) struct Worker {
    number: u32,
    pub(crate) child: Child,
}

/// Lets workers work while faults are fired for so long. Gives what happened.
pub(crate) fn run(
    topology: Topology,
    dir: &Path,
    program: &Path,
    seed: u64,
    time: Duration,
) -> Vec<Event> {
    let mut driver = Driver::start(topology, dir, program, seed);
    driver.torment(time);
    driver.end();
    history::read(dir).expect("read history")
}

/// Those that `TORTURE_FAULTS` names, or all, where they can be fired.
fn faults(topology: Topology) -> Vec<Fault> {
    let named = env::var("TORTURE_FAULTS").unwrap_or_default();
    let is_named = |name: &str| named.is_empty() || named.split(',').any(|one| one == name);
    let mut all = FAULTS.to_vec();
    all.retain(|fault| fault.is_on(topology) && is_named(fault.name));
    assert!(!all.is_empty(), "there is no fault {named:?} here");
    all
}

impl<'a> Driver<'a> {
    fn start(topology: Topology, dir: &'a Path, program: &'a Path, seed: u64) -> Self {
        let (servers, ttl) = (Servers::start(topology, dir), topology.ttl());
        let mut driver = Driver {
            dir,
            program_of_workers: program,
            workers: Vec::new(),
            program: Program::start(dir, program, &servers.url_of_program(), ttl),
            servers,
            rng: Rng::with_seed(seed),
            ttl,
            history: History::open(dir, "driver", 0).expect("write history"),
            last: 0,
        };
        driver.workers = (0..WORKERS).map(|_| driver.new_worker()).collect();
        for worker in &mut driver.workers {
            worker.child.wait_for("ready", STARTS_WITHIN);
        }
        driver
    }

    fn new_worker(&mut self) -> Worker {
        self.last += 1;
        let told = Told {
            dir: self.dir.to_owned(),
            number: self.last,
            url: self.servers.url(),
            ttl: self.ttl,
            io_timeout: self.servers.topology.io_timeout(),
            seed: self.rng.u64(..),
        };
        Worker {
            number: self.last,
            child: told.start(self.program_of_workers),
        }
    }

    pub(crate) fn kill_worker(&mut self, index: usize) {
        self.history
            .tell_of(self.workers[index].number, What::Killed);
        self.workers[index].child.kill();
        self.workers[index] = self.new_worker();
    }

    /// Fires faults for so long, all of them before one comes again.
    fn torment(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut faults = faults(self.servers.topology);
        let mut order = Vec::new();
        while Instant::now() < end {
            if order.is_empty() {
                self.rng.shuffle(&mut faults);
                order.clone_from(&faults);
            }
            if let Some(fault) = order.pop()
                && (fault.fire)(self)
            {
                self.tell(What::Fault(fault.name.to_owned()));
            }
            thread::sleep(Duration::from_millis(self.rng.u64(50..300)));
        }
    }

    /// Ends the workers, and looks for what they left.
    fn end(&mut self) {
        for worker in &mut self.workers {
            worker.child.tell("end");
        }
        self.program.end();
        let mut stuck = Vec::new();
        eventually(ENDS_WITHIN, || {
            let workers = self.workers.iter_mut();
            let working =
                workers.filter_map(|one| (!one.child.has_said("done")).then_some(one.number));
            stuck = working.collect();
            stuck.is_empty()
        });
        for number in stuck {
            self.tell(What::Stuck(format!("worker {number}")));
        }
        if !self.program.has_ended(ENDS_WITHIN) {
            self.tell(What::Stuck("crosslock run".to_owned()));
        }
        if let Some(left) = self.servers.left() {
            self.tell(What::Left(left));
        }
        match self.servers.stored() {
            Ok(Some(stored)) => self.history.tell(0, COUNTER, What::Stored(stored)),
            other => self.tell(What::Stuck(format!("reading the value: {other:?}"))),
        }
    }

    fn tell(&self, what: What) {
        self.history.tell(0, "", what);
    }
}
