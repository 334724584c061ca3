//! What the processes of a world do: each thread takes locks of all kinds, and tells the judge.

mod locks;
mod meetings;
mod operate;
mod tasks;
mod values;

use std::sync::Arc;
use std::time::Duration;

use crosslock::{Error, Locker, Prefer, Result};
use crosslock_world::{
    allow_threads, current, record, spawn_joined, time, true_now, uninterrupted, violation,
};
use fastrand::Rng;

pub use locks::panic_with;
pub use tasks::judge_remaining;

use crate::judge::{self, Call, Held, Kind};
use crate::places::Site;
use crate::plan::{Busy, Plan, Step, Topology, Trouble};
use crate::world;

/// A process: it opens its locker, starts its threads and awaits them.
pub fn process(plan: &Arc<Plan>, site: &Site, at: usize, starts: usize) {
    let mut random = Rng::with_seed(plan.seed ^ (at * 1_000 + starts) as u64);
    let prefer = match plan.can_prefer() {
        true => [Prefer::Fair, Prefer::Readers, Prefer::Writers][random.usize(..3)],
        false => Prefer::Fair,
    };
    let Some(locker) = open(plan, &site.url, prefer, at) else {
        return;
    };
    let threads: Vec<_> = (0..plan.threads)
        .map(|thread| {
            allow_threads(current(), true);
            // In memory there are no other processes.
            let own = plan.topology == Topology::Memory && random.bool();
            let own = own.then(|| open(plan, &site.url, prefer, at)).flatten();
            let mut worker = Worker {
                plan: plan.clone(),
                url: site.url.clone(),
                part: at,
                prefer,
                locker: own.unwrap_or_else(|| locker.clone()),
                random: random.fork(),
            };
            let started = spawn_joined(&format!("worker-{thread}"), move || worker.work());
            started.expect("the system has threads")
        })
        .collect();
    drop(locker);
    for thread in threads {
        let _ = thread.join();
    }
    world::done(at);
}

/// A host that is silent is asked for a quarter of a second before another is.
const MOST_OF_OPENING: Duration = Duration::from_millis(600);

/// Opens it, however long the servers can't be reached.
fn open(plan: &Plan, url: &str, prefer: Prefer, at: usize) -> Option<Locker> {
    loop {
        let mut builder = Locker::builder(url)
            .ttl(plan.ttl)
            .renew(plan.renews)
            .io_timeout(plan.io_timeout)
            .connect_timeout(plan.io_timeout)
            .prefer(prefer);
        if plan.min_replicas > 0 {
            builder = builder.min_replicas(plan.min_replicas);
        }
        if let Some(max_hold) = plan.max_hold {
            builder = builder.max_hold(max_hold);
        }
        if plan.busy.is_some() {
            builder = builder.hand_over(Duration::from_millis(10));
        }
        let began = true_now();
        let built = builder.build();
        let took = true_now() - began;
        if plan.troubles == [Trouble::SilentHost] && took > MOST_OF_OPENING {
            violation(format!(
                "it took {took:?} to open, by one host that is silent"
            ));
        }
        match built {
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

/// How long it takes until the threads of a busy process begin again.
fn until_burst() -> Duration {
    const EVERY: Duration = Duration::from_secs(2);
    let since = true_now().as_micros() % EVERY.as_micros();
    EVERY - Duration::from_micros(u64::try_from(since).unwrap_or(0))
}

struct Worker {
    plan: Arc<Plan>,
    url: String,
    /// The number of its process, which is the same when that is started again.
    part: usize,
    prefer: Prefer,
    locker: Locker,
    random: Rng,
}

/// Which errors a call may return in this world.
fn is_trouble(plan: &Plan, error: &Error) -> bool {
    match error {
        Error::Lost { .. } if plan.loses() => true,
        // A lease may end while its release is on its way, which is given up then.
        Error::Unavailable { .. } if !plan.renews || plan.max_hold.is_some() => true,
        Error::Lost { .. } | Error::Unavailable { .. } => !plan.is_calm(),
        Error::Engine { .. } if plan.has(Trouble::NoThreads) => true,
        // The library logs in anew once for a question. If its process then stands still, that login ends as well.
        Error::Denied { .. } if plan.logs_in && plan.pauses() => {
            causes(error).contains("invalid auth token") || plan.has(Trouble::Message)
        }
        // What is garbled may mean anything.
        Error::Denied { .. }
        | Error::Conflict { .. }
        | Error::Engine { .. }
        | Error::Corrupt { .. } => plan.has(Trouble::Message),
        _ => false,
    }
}

/// An error, and what it comes from.
pub fn causes(error: &Error) -> String {
    let first: &dyn std::error::Error = error;
    let all = std::iter::successors(Some(first), |error| error.source());
    let texts: Vec<String> = all.map(ToString::to_string).collect();
    texts.join(": ")
}

/// A call whose time was over before the answer came may also say that there was none.
fn in_time<T>(timeout: Duration, call: impl FnOnce() -> Result<Option<T>>) -> Result<Option<T>> {
    let end = true_now() + timeout;
    match call() {
        Err(Error::Unavailable { .. }) if true_now() >= end => Ok(None),
        answer => answer,
    }
}

impl Worker {
    fn work(&mut self) {
        while world::takes_round(&self.plan, self.part) {
            let pause = self.pause();
            time::sleep(pause);
            if let Err(error) = self.step() {
                let causes = causes(&error);
                record(&format!("error: {causes}"));
                if !is_trouble(&self.plan, &error) {
                    violation(format!("an error that nothing explains: {causes}"));
                }
            }
        }
    }

    /// The threads of a busy process begin together.
    fn pause(&mut self) -> Duration {
        match self.plan.busy {
            None => Duration::from_millis(200).mul_f64(self.random.f64().powi(4)),
            Some(busy) if self.random.u32(..busy.rounds()) == 0 => until_burst(),
            Some(_) => Duration::from_micros(self.random.u64(..30)),
        }
    }

    /// A call has ended its wait. For a while nobody may come then, but those that wait.
    fn gave_up(&mut self) {
        if self.plan.busy == Some(Busy::GivesUp) && self.random.bool() {
            time::sleep(until_burst());
        }
    }

    fn name(&mut self, kind: &str) -> String {
        format!("{kind}-{}", self.random.usize(..self.plan.names))
    }

    fn step(&mut self) -> Result<()> {
        match self.plan.steps[self.random.usize(..self.plan.steps.len())] {
            Step::Lock => self.lock(),
            Step::TryLock => self.try_lock(),
            Step::Timed => self.timed(),
            Step::Cancelled => self.cancelled(),
            Step::LeastTime => self.least_time(),
            Step::Panic => self.panic(),
            Step::OtherNamespace => self.other_namespace(),
            Step::Close => self.close(),
            Step::Shared => self.shared(),
            Step::Permits => self.permits(),
            Step::All => self.all(),
            Step::PassOn => self.pass_on(),
            Step::Break => self.break_one(),
            Step::Inspect => self.inspect(),
            Step::Counter => self.counter(),
            Step::SharedValue => self.shared_value(),
            Step::Condition => self.condition(),
            Step::Remove => self.remove(),
            Step::Once => self.once(),
            Step::Latch => self.latch(),
            Step::Barrier => self.barrier(),
            Step::Election => self.election(),
            Step::Tasks => self.task(),
        }
    }

    /// Asks for a lock, and tells the judge of it.
    fn ask<G>(
        &mut self,
        name: &str,
        timeout: Option<Duration>,
        call: impl FnOnce(&Locker) -> Result<Option<G>>,
    ) -> Result<Option<(G, Call)>> {
        let asked = judge::began(name, timeout);
        let held = match timeout {
            Some(timeout) => in_time(timeout, || self.bounded(timeout, call)),
            None => call(&self.locker),
        };
        let has_it = matches!(held, Ok(Some(_)));
        uninterrupted(|| judge::ended(asked, has_it));
        Ok(held?.map(|held| (held, asked)))
    }

    /// The same for a name that readers and writers ask for.
    fn ask_shared<G>(
        &mut self,
        name: &str,
        reads: bool,
        call: impl FnOnce(&Locker) -> Result<G>,
    ) -> Result<(G, Call)> {
        let asked = judge::began_shared(name, reads, self.prefer);
        let held = call(&self.locker);
        uninterrupted(|| judge::ended(asked, held.is_ok()));
        Ok((held?, asked))
    }

    /// Holds it for a while. What is given is the guard alone.
    fn hold<G: Held + 'static>(
        &mut self,
        names: &[&str],
        kind: Kind,
        (guard, call): (G, Call),
    ) -> G {
        let (guard, id) = self.hold_on(names, kind, guard, Some(call));
        judge::ending(names, id, false);
        record(&format!("leaves {names:?}"));
        owned(guard)
    }

    /// The same, but it still counts as held.
    fn hold_on<G: Held + 'static>(
        &mut self,
        names: &[&str],
        kind: Kind,
        guard: G,
        call: Option<Call>,
    ) -> (Arc<G>, u64) {
        let guard = Arc::new(guard);
        let id = judge::acquired(names, kind, &guard, call);
        self.work_under(guard.lease());
        (guard, id)
    }

    fn work_under(&mut self, guard: &crosslock::LockGuard) {
        if self.plan.busy.is_some() {
            return time::sleep(Duration::from_micros(self.random.u64(..100)));
        }
        // A break is told to who holds on.
        // So do leases that aren't renewed end.
        let outlasts = self.plan.does(Step::Break) || !self.plan.renews;
        let often = match self.plan.is_calm() {
            _ if self.plan.is_about_one() => 2,
            _ if outlasts || !self.plan.is_safe() || self.plan.min_replicas > 0 => 6,
            true => 30,
            false => 12,
        };
        let long = if self.random.u32(..often) == 0 {
            // Where two may hold it, the first learns of that.
            if self.plan.is_safe() { 2.0 } else { 5.0 }
        } else {
            0.01
        };
        let began = true_now();
        let work = self.plan.ttl.mul_f64(self.random.f64() * long);
        if self.random.u32(..10) == 0 {
            let _ = guard.verify();
        }
        match self.random.u32(..3) {
            0 => _ = guard.wait_lost(work),
            _ => time::sleep(work),
        }
        let most = self.plan.max_hold.map(|most| most + self.plan.ttl);
        let held = true_now() - began;
        if most.is_some_and(|most| most < held) && self.plan.is_calm() && guard.is_held() {
            violation(format!("a lock was held for {held:?}"));
        }
    }

    /// Does what is to end by its timeout.
    fn bounded<T>(&self, timeout: Duration, call: impl FnOnce(&Locker) -> Result<T>) -> Result<T> {
        let began = true_now();
        let done = call(&self.locker);
        let took = true_now() - began;
        let most = timeout.mul_f64(1.01) + Duration::from_millis(100);
        if self.plan.has_time() && self.plan.topology != Topology::Memory && took > most {
            violation(format!("a call for {timeout:?} took {took:?}"));
        }
        done
    }

    /// Releases by an unlock or a drop, which both end soon.
    fn release<G>(
        &mut self,
        names: &[&str],
        guard: G,
        unlock: impl FnOnce(G) -> Result<()>,
    ) -> Result<()> {
        let began = true_now();
        record(&format!("releases {names:?}"));
        let mut done = Ok(());
        if self.random.bool() {
            done = unlock(guard);
        } else {
            drop(guard);
        }
        let took = true_now() - began;
        if took > Duration::from_millis(600) && self.plan.has_time() {
            violation(format!("a release took {took:?}"));
        }
        judge::unreleased(names, true_now());
        done
    }
}

/// The guard alone, once the judge has let go of it.
pub fn owned<G>(mut guard: Arc<G>) -> G {
    loop {
        match Arc::try_unwrap(guard) {
            Ok(guard) => return guard,
            Err(shared) => guard = shared,
        }
        time::yield_now();
    }
}
