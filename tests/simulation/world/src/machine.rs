//! Machines, and their clocks: each runs at a speed of its own, the clock of the day can be set, and the monotonic one
//! stands while the machine sleeps.

use crate::events::Nanos;
use crate::scheduler::{Inside, with};

/// A machine, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine(pub(crate) usize);

#[derive(Default)]
pub(crate) struct Machines(Vec<Clocks>);

struct Clocks {
    name: String,
    /// By how many millionths its clocks are fast.
    fast: i64,
    booted: Nanos,
    slept: Nanos,
    asleep_since: Option<Nanos>,
    /// What the clock of the day showed when the world began.
    day: i64,
}

/// 2026-01-01, when worlds begin.
pub(crate) const EPOCH: i64 = 1_767_225_600_000_000_000;

impl Machines {
    pub(crate) fn add(&mut self, name: &str, fast: i64, booted: Nanos) -> Machine {
        self.0.push(Clocks {
            name: name.to_owned(),
            fast,
            booted,
            slept: 0,
            asleep_since: None,
            day: EPOCH,
        });
        Machine(self.0.len() - 1)
    }

    pub(crate) fn name(&self, of: Machine) -> &str {
        &self.0[of.0].name
    }

    pub(crate) fn is_asleep(&self, machine: Machine) -> bool {
        self.0[machine.0].asleep_since.is_some()
    }

    pub(crate) fn boot(&self, of: Machine, now: Nanos) -> Nanos {
        let clocks = &self.0[of.0];
        clocks.booted + local(now, clocks.fast)
    }

    pub(crate) fn monotonic(&self, of: Machine, now: Nanos) -> Nanos {
        let clocks = &self.0[of.0];
        let asleep = clocks
            .asleep_since
            .map_or(0, |since| local(now - since, clocks.fast));
        self.boot(of, now) - clocks.slept - asleep
    }

    pub(crate) fn wall(&self, of: Machine, now: Nanos) -> Nanos {
        let clocks = &self.0[of.0];
        local(now, clocks.fast).saturating_add_signed(clocks.day)
    }

    /// How long it takes in truth until its clocks have moved by so much.
    pub(crate) fn true_of(&self, of: Machine, local: Nanos) -> Nanos {
        local
            .saturating_add_signed(-drift(local, self.0[of.0].fast))
            .saturating_add(1)
    }
}

/// Without an overflow, and exact enough for a clock.
fn drift(time: Nanos, fast: i64) -> i64 {
    i64::try_from(time / 1_000)
        .unwrap_or(i64::MAX / 4_000)
        .saturating_mul(fast)
        / 1_000
}

/// How far a clock moves in that time.
pub(crate) fn local(time: Nanos, fast: i64) -> Nanos {
    time.saturating_add_signed(drift(time, fast))
}

impl Inside {
    pub(crate) fn machine_of(&self, thread: usize) -> Machine {
        self.processes.machine(self.threads[thread].process)
    }
}

/// Adds a machine whose clocks are fast by so many millionths, or slow.
pub fn add_machine(name: &str, fast: i64) -> Machine {
    with(|inside| {
        let booted = 10_000_000_000_000 + inside.drawn.u64(..1_000_000_000_000);
        inside.machines.add(name, fast, booted)
    })
}

/// Sets its clock of the day.
pub fn step_clock(machine: Machine, micros: i64) {
    with(|inside| inside.machines.0[machine.0].day += micros * 1_000);
}

/// All its processes stand still, and so does its monotonic clock.
pub fn suspend_machine(machine: Machine) {
    with(|inside| {
        inside.machines.0[machine.0]
            .asleep_since
            .get_or_insert(inside.now);
        for process in inside.processes.on(machine) {
            inside.pause(process);
        }
    });
}

/// They go on.
pub fn resume_machine(machine: Machine) {
    with(|inside| {
        let now = inside.now;
        let clocks = &mut inside.machines.0[machine.0];
        if let Some(since) = clocks.asleep_since.take() {
            clocks.slept += local(now - since, clocks.fast);
        }
        for process in inside.processes.on(machine) {
            inside.resume(process);
        }
    });
}
