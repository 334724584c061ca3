//! When processes ran late, and what that excuses.

use super::facts::Span;
use crate::history::{DRIVER, Event, PROGRAM, SERVER, WAITED};

/// When processes ran late: threads that wanted to run didn't, or the server didn't answer.
///
/// Threads that only try it see less of it than others suffer, which work, and are woken one after the other. So what
/// they saw may have delayed others by four times as much. What a process itself has waited for, or was stopped for, is
/// known exactly.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    /// By the time of their beginning.
    all: Vec<Late>,
    /// How long the longest lasted.
    longest: u64,
}

/// One was late, from when it was due until it ran.
#[derive(Clone, Copy, Debug)]
struct Late {
    process: u32,
    pid: u32,
    from: u64,
    until: u64,
    is_exact: bool,
}

/// So many times what was seen.
const FACTOR: u64 = 4;

impl Lateness {
    pub(super) fn take_in(&mut self, event: &Event) {
        self.add(Late {
            process: event.process,
            pid: event.pid,
            from: event.at,
            until: event.until,
            is_exact: event.detail == WAITED,
        });
    }

    fn add(&mut self, late: Late) {
        self.longest = self.longest.max(late.until.saturating_sub(late.from));
        let at = self.all.partition_point(|other| other.from <= late.from);
        self.all.insert(at, late);
    }

    /// Those that may have lasted at some moment between the two times.
    fn near(&self, from: u64, until: u64) -> &[Late] {
        let earliest = from.saturating_sub(self.longest);
        let begin = self.all.partition_point(|late| late.from < earliest);
        let end = self.all.partition_point(|late| late.from <= until);
        self.all.get(begin..end).unwrap_or_default()
    }

    /// A process that is stopped is late until it goes on. Of the program only one process is.
    pub(super) fn take_in_stop(&mut self, span: &Span<'_>) {
        if span.kind.name.starts_with("stop ") && span.process != PROGRAM {
            self.add(Late {
                process: span.process,
                pid: 0,
                from: span.from,
                until: span.until,
                is_exact: true,
            });
        }
    }

    /// By how much a process may have been delayed between the two times, in nanoseconds.
    pub(crate) fn of(&self, process: u32, from: u64, until: u64) -> u64 {
        self.sum(from, until, |late| late.process == process)
    }

    /// The same for the program, and for the machine, which is seen by the driver.
    pub(super) fn of_program(&self, from: u64, until: u64) -> u64 {
        self.sum(from, until, |late| matches!(late.process, PROGRAM | DRIVER))
    }

    /// For how long a process was late in all, in nanoseconds.
    pub(crate) fn seen(&self, process: u32) -> u64 {
        let its = self.all.iter().filter(|late| late.process == process);
        union(its, 0, u64::MAX)
    }

    /// The same delay for all that a call of this process and its answer pass through: it, the driver, and the server.
    pub(crate) fn on_the_way(&self, process: u32, from: u64, until: u64) -> u64 {
        self.on_the_way_of(&[process], from, until)
    }

    /// The same, where it depends on several processes.
    pub(crate) fn on_the_way_of(&self, processes: &[u32], from: u64, until: u64) -> u64 {
        let is_on_it = |process| matches!(process, DRIVER | SERVER) || processes.contains(&process);
        self.sum(from, until, |late| is_on_it(late.process))
    }

    /// The same for a process that is known by its system's number.
    pub(super) fn on_the_way_of_pid(&self, pid: u32, from: u64, until: u64) -> u64 {
        let is_on_it = |late: &Late| matches!(late.process, DRIVER | SERVER) || late.pid == pid;
        self.sum(from, until, is_on_it)
    }

    /// The most for the way of the process within any time of that length.
    pub(super) fn worst_on_the_way(&self, process: u32, from: u64, until: u64, length: u64) -> u64 {
        let spans = self.near(from, until).iter();
        let spans = spans.filter(|late| late.from <= until && from <= late.until);
        let within = |late: &Late| {
            let begin = late.from.max(from);
            self.on_the_way(process, begin, until.min(begin.saturating_add(length)))
        };
        spans.map(within).max().unwrap_or_default()
    }

    /// What several are late by at the same time counts once.
    fn sum(&self, from: u64, until: u64, counts: impl Fn(&Late) -> bool) -> u64 {
        let near = self.near(from, until).iter();
        let theirs = near.filter(|late| counts(late));
        let (all, exact) = (theirs.clone(), theirs.filter(|late| late.is_exact));
        let (all, exact) = (union(all, from, until), union(exact, from, until));
        exact + FACTOR * (all - exact)
    }
}

/// How much of the time between the two is in any of these.
fn union<'a>(spans: impl Iterator<Item = &'a Late>, from: u64, until: u64) -> u64 {
    let mut spans: Vec<_> = spans
        .map(|late| (late.from.max(from), late.until.min(until)))
        .filter(|(from, until)| from < until)
        .collect();
    spans.sort_unstable();
    let (mut sum, mut counted) = (0, 0);
    for (from, until) in spans {
        sum += until.saturating_sub(from.max(counted));
        counted = counted.max(until);
    }
    sum
}
