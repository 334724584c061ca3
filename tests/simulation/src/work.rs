//! What the processes of a world do: each thread takes locks of all kinds, and tells the judge.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, MutexGuard, Prefer, Result};
use crosslock_world::{record, spawn_joined, time, true_now, violation};
use fastrand::Rng;

use crate::places::Site;
use crate::plan::{Plan, Topology};
use crate::{judge, world};

/// The permits of a semaphore.
const PERMITS: u32 = 3;

/// A process: it opens its locker, starts its threads and awaits them.
pub fn process(plan: &Arc<Plan>, site: &Site, at: usize, starts: usize) {
    let mut random = Rng::with_seed(plan.seed ^ (at * 1_000 + starts) as u64);
    let Some(locker) = open(plan, site, &mut random, at) else {
        return;
    };
    let threads: Vec<_> = (0..plan.threads)
        .map(|thread| {
            let mut worker = Worker {
                plan: plan.clone(),
                part: at,
                locker: locker.clone(),
                random: random.fork(),
            };
            spawn_joined(&format!("worker-{thread}"), move || worker.work())
        })
        .collect();
    drop(locker);
    for thread in threads {
        let _ = thread.expect("the system has threads").join();
    }
    world::done(at);
}

/// Opens it, however long the servers can't be reached.
fn open(plan: &Plan, site: &Site, random: &mut Rng, at: usize) -> Option<Locker> {
    loop {
        let mut builder = Locker::builder(&site.url)
            .ttl(plan.ttl)
            .io_timeout(plan.io_timeout)
            .connect_timeout(plan.io_timeout);
        if plan.can_prefer() {
            builder =
                builder.prefer([Prefer::Fair, Prefer::Readers, Prefer::Writers][random.usize(..3)]);
        }
        if plan.min_replicas > 0 {
            builder = builder.min_replicas(plan.min_replicas);
        }
        match builder.build() {
            Ok(locker) => return Some(locker),
            Err(error) if is_trouble(plan, &error) => time::sleep(Duration::from_millis(100)),
            Err(error) => {
                violation(format!("it can't be opened: {error}"));
                world::done(at);
                return None;
            }
        }
    }
}

struct Worker {
    plan: Arc<Plan>,
    /// The number of its process, which is the same when that is started again.
    part: usize,
    locker: Locker,
    random: Rng,
}

/// Which errors a call may return in this world.
fn is_trouble(plan: &Plan, error: &Error) -> bool {
    match error {
        Error::Lost { .. } | Error::Unavailable { .. } => !plan.is_calm(),
        // What is garbled may mean anything.
        Error::Denied { .. }
        | Error::Conflict { .. }
        | Error::Engine { .. }
        | Error::Corrupt { .. } => plan.has(crate::plan::Trouble::Message),
        _ => false,
    }
}

impl Worker {
    fn work(&mut self) {
        while world::takes_round(&self.plan, self.part) {
            let pause = self.random.f64().powi(4) * 200.0;
            time::sleep(Duration::from_secs_f64(pause / 1_000.0));
            if let Err(error) = self.step() {
                record(&format!("error: {error}"));
                if !is_trouble(&self.plan, &error) {
                    violation(format!("an error that nothing explains: {error}"));
                }
            }
        }
    }

    fn name(&mut self, kind: &str) -> String {
        format!("{kind}-{}", self.random.usize(..self.plan.names))
    }

    fn step(&mut self) -> Result<()> {
        match self.random.u32(..10) {
            0..=2 => self.lock(),
            3 => self.try_lock(),
            4 => self.timed(),
            5 => self.shared(),
            6 => self.permits(),
            7 => self.all(),
            8 => self.counter(),
            _ => self.pass_on(),
        }
    }

    fn lock(&mut self) -> Result<()> {
        let name = self.name("lock");
        let guard = self.locker.lock(&name)?;
        self.hold(&[&name], judge::Kind::Exclusive, guard)
    }

    fn try_lock(&mut self) -> Result<()> {
        let name = self.name("lock");
        let guard = self.bounded(Duration::ZERO, |locker| locker.try_lock(&name))?;
        match guard {
            Some(guard) => self.hold(&[&name], judge::Kind::Exclusive, guard),
            None => Ok(()),
        }
    }

    fn timed(&mut self) -> Result<()> {
        let name = self.name("lock");
        let timeout = self.plan.ttl.mul_f64(self.random.f64() * 1.5);
        let guard = self.bounded(timeout, |locker| locker.try_lock_for(&name, timeout))?;
        match guard {
            Some(guard) => self.hold(&[&name], judge::Kind::Exclusive, guard),
            None => Ok(()),
        }
    }

    fn shared(&mut self) -> Result<()> {
        let name = self.name("shared");
        if self.random.u32(..3) > 0 {
            let guard = self.locker.read(&name)?;
            return self.hold(&[&name], judge::Kind::Shared, guard);
        }
        let guard = self.locker.write(&name)?;
        if self.random.bool() {
            return self.hold(&[&name], judge::Kind::Exclusive, guard);
        }
        let guard = Arc::new(guard);
        let id = judge::acquired(&[&name], judge::Kind::Exclusive, &guard);
        self.work_under(&guard);
        judge::ending(&[&name], id);
        let guard = owned(guard).downgrade()?;
        self.hold(&[&name], judge::Kind::Shared, guard)
    }

    fn permits(&mut self) -> Result<()> {
        let name = self.name("permits");
        let count = self.random.u32(1..=2);
        let semaphore = self.locker.semaphore(&name, PERMITS)?;
        let guard = semaphore.acquire_many(count)?;
        self.hold(&[&name], judge::Kind::Permits { count, of: PERMITS }, guard)
    }

    fn all(&mut self) -> Result<()> {
        let mut names: Vec<String> = (0..self.random.usize(1..=3))
            .map(|_| self.name("lock"))
            .collect();
        names.sort();
        names.dedup();
        let guard = self.locker.lock_all(&names)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.hold(&names, judge::Kind::Exclusive, guard)
    }

    fn counter(&mut self) -> Result<()> {
        let name = self.name("counter");
        let counter = self.locker.mutex(&name, 0_i64)?;
        let mut guard = counter.lock()?;
        if MutexGuard::lease(&guard).is_held() {
            judge::ACQUISITIONS.fetch_add(1, Ordering::Relaxed);
            judge::read(&name, *guard);
        }
        *guard += 1;
        self.work_under(MutexGuard::lease(&guard));
        judge::storing(&name);
        let stored = MutexGuard::unlock(guard);
        match &stored {
            Ok(()) => judge::stored(&name, true),
            Err(Error::Lost { .. }) => judge::stored(&name, false),
            // It may come to be stored, or not.
            Err(_) => {}
        }
        record(&format!("has stored {name}: {stored:?}"));
        stored
    }

    /// Passes a lease on to itself, as to another process.
    fn pass_on(&mut self) -> Result<()> {
        let name = self.name("lock");
        let guard = Arc::new(self.locker.lock(&name)?);
        let id = judge::acquired(&[&name], judge::Kind::Exclusive, &guard);
        self.work_under(&guard);
        judge::ending(&[&name], id);
        let ticket = owned(guard).into_ticket()?;
        let guard = self.locker.adopt(ticket)?;
        self.hold(&[&name], judge::Kind::Exclusive, guard)
    }

    /// Holds it for a while, and releases it.
    fn hold(&mut self, names: &[&str], kind: judge::Kind, guard: LockGuard) -> Result<()> {
        let guard = Arc::new(guard);
        let id = judge::acquired(names, kind, &guard);
        self.work_under(&guard);
        judge::ending(names, id);
        record(&format!("leaves {names:?}"));
        let guard = owned(guard);
        if self.random.bool() {
            return guard.unlock();
        }
        drop(guard);
        Ok(())
    }

    fn work_under(&mut self, guard: &LockGuard) {
        let long = if self.random.u32(..30) == 0 {
            2.0
        } else {
            0.01
        };
        let work = self.plan.ttl.mul_f64(self.random.f64() * long);
        if self.random.u32(..10) == 0 {
            let _ = guard.verify();
        }
        match self.random.u32(..3) {
            0 => _ = guard.wait_lost(work),
            _ => time::sleep(work),
        }
    }

    /// Does what is to end by its timeout.
    fn bounded<T>(&self, timeout: Duration, call: impl FnOnce(&Locker) -> Result<T>) -> Result<T> {
        let began = true_now();
        let done = call(&self.locker);
        let took = true_now() - began;
        let most = timeout.mul_f64(1.01) + Duration::from_millis(100);
        let most = if timeout.is_zero() {
            most + self.plan.io_timeout
        } else {
            most
        };
        if self.plan.is_calm() && self.plan.topology != Topology::Memory && took > most {
            violation(format!("a call for {timeout:?} took {took:?}"));
        }
        done
    }
}

/// The guard alone, once the judge has let go of it.
pub fn owned(mut guard: Arc<LockGuard>) -> LockGuard {
    loop {
        match Arc::try_unwrap(guard) {
            Ok(guard) => return guard,
            Err(shared) => guard = shared,
        }
        time::yield_now();
    }
}
