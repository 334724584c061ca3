//! An observer for the [`metrics`](https://docs.rs/metrics) crate (feature `metrics`).
//!
//! It reports to the recorder that your program installs, such as one for Prometheus. Series that end in `_total` are
//! counters, those that end in `_seconds` are histograms, and the others are gauges:
//!
//! | name | what it measures |
//! |---|---|
//! | `crosslock_wait_seconds` | time until a call got its lock |
//! | `crosslock_hold_seconds` | time that a lock was held |
//! | `crosslock_held` | guards that hold a lock |
//! | `crosslock_waiting` | calls that wait for a lock |
//! | `crosslock_acquired_total` | acquisitions |
//! | `crosslock_abandoned_total` | locks that the previous holder never released |
//! | `crosslock_lost_total` | leases that ended before their release; label `reason`: `expired`, `not_owner`, `broken`, `closed` |
//! | `crosslock_gave_up_total` | calls that stopped waiting; label `why`: `timeout`, `attempts`, `cancelled`, `unavailable`, `error` |
//! | `crosslock_renewals_failed_total` | failed renewals |
//! | `crosslock_outages_total` | outages, counted for each call and lease |
//! | `crosslock_broken_total` | locks that this program broke |
//! | `crosslock_tasks_inserted_total` | tasks inserted into delay queues |
//! | `crosslock_tasks_taken_total` | tasks taken from delay queues |
//! | `crosslock_tasks_ended_total` | tasks ended; label `how`: `done`, `retried`, `buried` |
//! | `crosslock_task_late_seconds` | time by which a task was late |
//!
//! Each series also has the label `namespace`, and the label `lock` if you give a function that returns it: see
//! [`MetricsObserver::labelled`]. Names aren't labels by default, because a million names would be a million series.
//!
//! The first event of a lock begins its counters at zero, so that Prometheus sees them increase.
//!
//! [`Event`] defines exactly what counts.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use crosslock::Locker;
//! use crosslock::metrics::MetricsObserver;
//!
//! # fn main() -> crosslock::Result<()> {
//! // Install the recorder first.
//! let observer = Arc::new(MetricsObserver::new());
//! let locker = Locker::builder("memory:").observer(observer).build()?;
//! drop(locker.lock("metrics-example")?);
//! # Ok(())
//! # }
//! ```
// It uses `base` alone. What always holds here: what an event adds to a gauge, another takes away from the same series.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use ::metrics::{
    Label, SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use crate::base::sys::{collections::HashSet, sync::Mutex};
use crate::base::{Error, Event, LostReason, Observer};

const WAIT: &str = "crosslock_wait_seconds";
const HOLD: &str = "crosslock_hold_seconds";
const HELD: &str = "crosslock_held";
const WAITING: &str = "crosslock_waiting";
const ACQUIRED: &str = "crosslock_acquired_total";
const ABANDONED: &str = "crosslock_abandoned_total";
const LOST: &str = "crosslock_lost_total";
const GAVE_UP: &str = "crosslock_gave_up_total";
const RENEWALS_FAILED: &str = "crosslock_renewals_failed_total";
const OUTAGES: &str = "crosslock_outages_total";
const BROKEN: &str = "crosslock_broken_total";
const TASKS_INSERTED: &str = "crosslock_tasks_inserted_total";
const TASKS_TAKEN: &str = "crosslock_tasks_taken_total";
const TASKS_ENDED: &str = "crosslock_tasks_ended_total";
const TASK_LATE: &str = "crosslock_task_late_seconds";

/// Reports the events of locks to the recorder of the `metrics` crate: see [the table](self).
///
/// One observer can serve all lockers of a program. Install the recorder first: events without a recorder are lost, and
/// a gauge that misses its first events stays wrong.
///
/// # Examples
///
/// See [the module](self).
#[derive(Default)]
pub struct MetricsObserver {
    label: Option<Box<Labelling>>,
    /// The labels of locks, and of delay queues, whose counters have begun.
    locks: Mutex<HashSet<Vec<Label>>>,
    queues: Mutex<HashSet<Vec<Label>>>,
}

type Labelling = dyn Fn(&str, &str) -> Option<SharedString> + Send + Sync;

impl MetricsObserver {
    /// Makes an observer whose series have the label `namespace` alone.
    ///
    /// It describes the series to the installed recorder.
    ///
    /// # Examples
    ///
    /// ```
    /// let observer = crosslock::metrics::MetricsObserver::new();
    /// ```
    pub fn new() -> Self {
        describe();
        MetricsObserver::default()
    }

    /// Makes an observer whose series also have the label `lock`, with the value that `label` returns for a namespace
    /// and a name. `None` leaves the label out.
    ///
    /// Each value makes series of its own, so return few: drop the numbers and ids in a name. The observer calls the
    /// function for each event. It must return the same value for the same name.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::metrics::MetricsObserver;
    ///
    /// // "order/4711" and "order/4712" are both "order".
    /// let kinds = MetricsObserver::labelled(|_namespace, name| {
    ///     let (kind, _id) = name.split_once('/')?;
    ///     Some(kind.to_owned())
    /// });
    ///
    /// // Only these have series of their own.
    /// let some = MetricsObserver::labelled(|_namespace, name| match name {
    ///     "migration" => Some("migration"),
    ///     name if name.starts_with("nightly-") => Some("nightly"),
    ///     _ => None,
    /// });
    /// ```
    pub fn labelled<L: Into<Cow<'static, str>>>(
        label: impl Fn(&str, &str) -> Option<L> + Send + Sync + 'static,
    ) -> Self {
        describe();
        let label = move |namespace: &str, name: &str| {
            let value: Cow<'static, str> = label(namespace, name)?.into();
            Some(value.into())
        };
        MetricsObserver {
            label: Some(Box::new(label)),
            ..MetricsObserver::default()
        }
    }

    fn lock(&self, namespace: &str, name: &str) -> Series {
        let lock = self.series(namespace, name);
        lock.begin(&self.locks, &COUNTERS_OF_LOCKS);
        lock
    }

    fn queue(&self, namespace: &str, name: &str) -> Series {
        let queue = self.series(namespace, name);
        queue.begin(&self.queues, &COUNTERS_OF_QUEUES);
        queue
    }

    fn series(&self, namespace: &str, name: &str) -> Series {
        let lock = self.label.as_ref();
        let lock = lock.and_then(|label| label(namespace, name));
        let namespace = SharedString::from_shared(Arc::from(namespace));
        let mut labels = vec![Label::new("namespace", namespace)];
        labels.extend(lock.map(|lock| Label::new("lock", lock)));
        Series(labels)
    }
}

impl Observer for MetricsObserver {
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Waiting { namespace, name } => self.lock(namespace, name).add(WAITING, 1.0),
            Event::Acquired {
                namespace,
                name,
                waited,
                was_waiting,
                abandoned,
                ..
            } => {
                let series = self.lock(namespace, name);
                series.acquired(waited, was_waiting, abandoned);
            }
            Event::GaveUp {
                namespace,
                name,
                error,
                ..
            } => {
                let series = self.lock(namespace, name);
                series.add(WAITING, -1.0);
                series.with("why", why(error)).count(GAVE_UP);
            }
            Event::Released {
                namespace,
                name,
                held,
                ..
            } => self.lock(namespace, name).ended(held),
            Event::Lost {
                namespace,
                name,
                held,
                reason,
                ..
            } => {
                let series = self.lock(namespace, name);
                series.ended(held);
                series.with("reason", reason_label(reason)).count(LOST);
            }
            Event::RenewalFailed {
                namespace, name, ..
            } => self.lock(namespace, name).count(RENEWALS_FAILED),
            Event::OutageBegan {
                namespace, name, ..
            } => self.lock(namespace, name).count(OUTAGES),
            Event::Broken {
                namespace, name, ..
            } => self.lock(namespace, name).count(BROKEN),
            Event::TasksInserted {
                namespace,
                name,
                tasks,
            } => self
                .queue(namespace, name)
                .count_many(TASKS_INSERTED, tasks),
            Event::TaskTaken {
                namespace,
                name,
                late,
                ..
            } => {
                let series = self.queue(namespace, name);
                series.count(TASKS_TAKEN);
                series.record(TASK_LATE, late);
            }
            Event::TaskEnded {
                namespace,
                name,
                how,
                ..
            } => self
                .queue(namespace, name)
                .with("how", how)
                .count(TASKS_ENDED),
            Event::Renewed { .. } | Event::OutageEnded { .. } => {}
        }
    }
}

impl fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsObserver").finish_non_exhaustive()
    }
}

/// A counter, and the label that it has besides, with all its values.
type Counter = (&'static str, &'static str, &'static [&'static str]);

const COUNTERS_OF_LOCKS: [Counter; 7] = [
    (ACQUIRED, "", &[]),
    (ABANDONED, "", &[]),
    (
        LOST,
        "reason",
        &["expired", "not_owner", "broken", "closed"],
    ),
    (
        GAVE_UP,
        "why",
        &["timeout", "attempts", "cancelled", "unavailable", "error"],
    ),
    (RENEWALS_FAILED, "", &[]),
    (OUTAGES, "", &[]),
    (BROKEN, "", &[]),
];

const COUNTERS_OF_QUEUES: [Counter; 3] = [
    (TASKS_INSERTED, "", &[]),
    (TASKS_TAKEN, "", &[]),
    (TASKS_ENDED, "how", &["done", "retried", "buried"]),
];

/// The series of one lock, or of all that have its labels.
struct Series(Vec<Label>);

impl Series {
    /// Makes its counters, all zero, unless they are in `begun`.
    fn begin(&self, begun: &Mutex<HashSet<Vec<Label>>>, counters: &[Counter]) {
        // Whoever has it locked may be a thread that a forked child doesn't have. The next event begins them, then.
        let Some(mut begun) = begun.try_lock() else {
            return;
        };
        if begun.contains(&self.0) {
            return;
        }
        begun.insert(self.0.clone());
        drop(begun);
        for (name, label, values) in counters {
            if values.is_empty() {
                self.count_many(name, 0);
            }
            for value in *values {
                Series(self.0.clone())
                    .with(label, value)
                    .count_many(name, 0);
            }
        }
    }

    fn with(mut self, key: &'static str, value: &'static str) -> Self {
        self.0.push(Label::from_static_parts(key, value));
        self
    }

    fn count(&self, name: &'static str) {
        counter!(name, self.0.clone()).increment(1);
    }

    fn count_many(&self, name: &'static str, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        counter!(name, self.0.clone()).increment(number);
    }

    fn add(&self, name: &'static str, difference: f64) {
        gauge!(name, self.0.clone()).increment(difference);
    }

    fn record(&self, name: &'static str, duration: Duration) {
        histogram!(name, self.0.clone()).record(duration);
    }

    fn acquired(&self, waited: Duration, was_waiting: bool, abandoned: bool) {
        if was_waiting {
            self.add(WAITING, -1.0);
        }
        self.add(HELD, 1.0);
        self.record(WAIT, waited);
        self.count(ACQUIRED);
        if abandoned {
            self.count(ABANDONED);
        }
    }

    fn ended(&self, held: Duration) {
        self.add(HELD, -1.0);
        self.record(HOLD, held);
    }
}

fn why(error: Option<&Error>) -> &'static str {
    match error {
        None => "timeout",
        Some(Error::Busy { .. }) => "attempts",
        Some(Error::Cancelled { .. }) => "cancelled",
        Some(Error::Unavailable { .. }) => "unavailable",
        Some(_) => "error",
    }
}

fn reason_label(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Expired => "expired",
        LostReason::NotOwner => "not_owner",
        LostReason::Broken => "broken",
        LostReason::Closed => "closed",
    }
}

fn describe() {
    let histograms = [
        (WAIT, "Time until a call got its lock."),
        (HOLD, "Time that a lock was held."),
        (TASK_LATE, "Time by which a task was late."),
    ];
    for (name, text) in histograms {
        describe_histogram!(name, Unit::Seconds, text);
    }
    let gauges = [
        (HELD, "Guards that hold a lock."),
        (WAITING, "Calls that wait for a lock."),
    ];
    for (name, text) in gauges {
        describe_gauge!(name, Unit::Count, text);
    }
    let counters = [
        (ACQUIRED, "Acquisitions."),
        (ABANDONED, "Locks that the previous holder never released."),
        (LOST, "Leases that ended before their release."),
        (GAVE_UP, "Calls that stopped waiting."),
        (RENEWALS_FAILED, "Failed renewals."),
        (OUTAGES, "Outages, counted for each call and lease."),
        (BROKEN, "Locks that this program broke."),
        (TASKS_INSERTED, "Tasks inserted into delay queues."),
        (TASKS_TAKEN, "Tasks taken from delay queues."),
        (TASKS_ENDED, "Tasks ended."),
    ];
    for (name, text) in counters {
        describe_counter!(name, Unit::Count, text);
    }
}
