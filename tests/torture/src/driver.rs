//! One run: servers, workers, and faults, one after the other.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::faults::{FAULTS, Fault};
use super::history::{self, Event, History, What, now};
use super::servers::{Servers, Topology};
use super::worker::{COUNTER, Told};
use support::Child;

const WORKERS: u32 = 4;
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// In the end each thread has each lock once more.
const ENDS_WITHIN: Duration = Duration::from_secs(90);

pub(crate) struct Driver<'a> {
    dir: &'a Path,
    program: &'a Path,
    pub(crate) servers: Servers,
    pub(crate) workers: Vec<Worker>,
    pub(crate) rng: Rng,
    history: History,
    last: u32,
}

pub(crate) struct Worker {
    number: u32,
    pub(crate) child: Child,
}

/// Lets workers work while faults are fired for so long. Gives what happened.
pub(crate) fn run(topology: Topology, dir: &Path, program: &Path, time: Duration) -> Vec<Event> {
    let mut driver = Driver {
        dir,
        program,
        workers: Vec::new(),
        servers: Servers::start(topology, dir),
        rng: Rng::new(),
        history: History::open(dir, 0).expect("write history"),
        last: 0,
    };
    driver.workers = (0..WORKERS).map(|_| driver.new_worker()).collect();
    for worker in &mut driver.workers {
        worker.child.wait_for("ready", STARTS_WITHIN);
    }
    driver.torment(time);
    driver.end();
    history::read(dir).expect("read history")
}

impl Driver<'_> {
    fn new_worker(&mut self) -> Worker {
        self.last += 1;
        let topology = self.servers.topology;
        let told = Told {
            dir: self.dir.to_owned(),
            number: self.last,
            url: self.servers.url(),
            ttl: topology.ttl(),
            io_timeout: topology.io_timeout(),
            only_locks: topology == Topology::Quorum,
        };
        Worker {
            number: self.last,
            child: told.start(self.program),
        }
    }

    pub(crate) fn kill_worker(&mut self, index: usize) {
        let killed = What::Killed(self.workers[index].number);
        self.history.tell(0, "", killed);
        self.workers[index].child.kill();
        self.workers[index] = self.new_worker();
    }

    /// Fires faults for so long, all of them before one comes again.
    fn torment(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut order: Vec<&Fault> = Vec::new();
        while Instant::now() < end {
            if order.is_empty() {
                order.extend(
                    FAULTS
                        .iter()
                        .filter(|one| one.on.contains(&self.servers.topology)),
                );
                self.rng.shuffle(&mut order);
            }
            let fault = order.pop().expect("some are everywhere");
            println!("{} {}", now(), fault.name);
            (fault.fire)(self);
            thread::sleep(Duration::from_millis(self.rng.u64(50..300)));
        }
    }

    /// Ends the workers, each of which has to have all locks once more, and looks for what they left.
    fn end(&mut self) {
        for worker in &mut self.workers {
            worker.child.tell("end");
        }
        for worker in &mut self.workers {
            worker.child.wait_for("done", ENDS_WITHIN);
        }
        self.servers.wait_until_free();
        let stored = What::Stored(self.servers.stored());
        self.history.tell(0, COUNTER, stored);
    }
}
