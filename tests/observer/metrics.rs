//! What the recorder of the `metrics` crate is told. Each test has a namespace of its own, by which it knows its
//! series.

use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ::metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use crosslock::metrics::MetricsObserver;

use super::*;

/// Keeps all series of this process, by their names and labels, such as `held{namespace=a}`.
#[derive(Default)]
struct Series {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    described: Mutex<BTreeMap<String, Option<Unit>>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

/// That of this process.
fn series() -> &'static Series {
    static SERIES: Series = Series {
        counters: Mutex::new(BTreeMap::new()),
        gauges: Mutex::new(BTreeMap::new()),
        histograms: Mutex::new(BTreeMap::new()),
        described: Mutex::new(BTreeMap::new()),
    };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| ::metrics::set_global_recorder(&SERIES).unwrap());
    &SERIES
}

fn get<T: Default>(series: &Mutex<BTreeMap<String, Arc<T>>>, key: &str) -> Arc<T> {
    series
        .lock()
        .unwrap()
        .entry(key.into())
        .or_default()
        .clone()
}

fn shown(key: &Key) -> String {
    let labels = key.labels().map(|l| format!("{}={}", l.key(), l.value()));
    format!("{}{{{}}}", key.name(), labels.collect::<Vec<_>>().join(","))
}

impl Series {
    fn describe(&self, name: KeyName, unit: Option<Unit>) {
        let name = name.as_str().to_owned();
        self.described.lock().unwrap().insert(name, unit);
    }

    fn count(&self, key: &str) -> u64 {
        get(&self.counters, key).load(Ordering::SeqCst)
    }

    fn gauge(&self, key: &str) -> f64 {
        f64::from_bits(get(&self.gauges, key).load(Ordering::SeqCst))
    }

    fn values(&self, key: &str) -> Vec<f64> {
        get(&self.histograms, key).0.lock().unwrap().clone()
    }
}

impl Recorder for &'static Series {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(get(&self.counters, &shown(key)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(get(&self.gauges, &shown(key)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(get(&self.histograms, &shown(key)))
    }
}

fn measured(
    namespace: &str,
    observer: MetricsObserver,
    set: impl FnOnce(LockerBuilder) -> LockerBuilder,
) -> Locker {
    let builder = Locker::builder("memory:").namespace(namespace);
    set(builder.observer(Arc::new(observer))).build().unwrap()
}

#[test]
fn waits_and_holds_are_measured_and_counted() {
    let series = series();
    let locker = measured("m-holds", MetricsObserver::new(), |builder| builder);
    let (held, waiting) = (
        "crosslock_held{namespace=m-holds}",
        "crosslock_waiting{namespace=m-holds}",
    );
    let guard = locker.lock("a").unwrap();
    assert_eq!(series.gauge(held), 1.0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("a").unwrap());
        wait_until("the waiter", PATIENCE, || series.gauge(waiting) == 1.0);
        thread::sleep(SHORT);
        drop(guard);
        drop(waiter.join().unwrap());
    });
    assert_eq!((series.gauge(held), series.gauge(waiting)), (0.0, 0.0));
    assert_eq!(
        series.count("crosslock_acquired_total{namespace=m-holds}"),
        2
    );
    let waits = series.values("crosslock_wait_seconds{namespace=m-holds}");
    let holds = series.values("crosslock_hold_seconds{namespace=m-holds}");
    assert_eq!((waits.len(), holds.len()), (2, 2));
    let short = SHORT.as_secs_f64();
    assert!(
        (short..PATIENCE.as_secs_f64()).contains(&waits[1]),
        "{waits:?}"
    );
    assert!(
        (short..PATIENCE.as_secs_f64()).contains(&holds[0]),
        "{holds:?}"
    );
}

#[test]
fn losses_and_vain_waits_are_counted_by_their_reasons() {
    let series = series();
    let short = |builder: LockerBuilder| builder.ttl(2 * SHORT).renew(false);
    let locker = measured("m-losses", MetricsObserver::new(), short);
    let guard = locker.lock("a").unwrap();
    guard.lost().recv().unwrap();
    wait_until("the count", PATIENCE, || {
        series.count("crosslock_lost_total{namespace=m-losses,reason=expired}") == 1
    });
    drop(guard);
    assert_eq!(series.gauge("crosslock_held{namespace=m-losses}"), 0.0);
    assert_eq!(
        series
            .values("crosslock_hold_seconds{namespace=m-losses}")
            .len(),
        1
    );
    let abandoned = locker.lock("a").unwrap().was_abandoned();
    assert_eq!(
        series.count("crosslock_abandoned_total{namespace=m-losses}"),
        u64::from(abandoned)
    );
    let few = |builder: LockerBuilder| builder.attempts(2);
    let counted = measured("m-losses", MetricsObserver::new(), few);
    let guard = counted.lock("b").unwrap();
    assert!(locker.try_lock_for("b", SHORT).unwrap().is_none());
    assert!(counted.lock("b").is_err());
    for why in ["timeout", "attempts"] {
        let key = format!("crosslock_gave_up_total{{namespace=m-losses,why={why}}}");
        assert_eq!(series.count(&key), 1, "{why}");
    }
    assert_eq!(series.gauge("crosslock_waiting{namespace=m-losses}"), 0.0);
    drop(guard);
}

#[test]
fn function_labels_those_that_it_wants_to() {
    let series = series();
    let observer = MetricsObserver::labelled(|namespace, name| {
        assert_eq!(namespace, "m-labels");
        Some(name.split_once('/')?.0.to_owned())
    });
    let locker = measured("m-labels", observer, |builder| builder);
    for name in ["order/1", "order/2", "other"] {
        drop(locker.lock(name).unwrap());
    }
    let count = |labels| series.count(&format!("crosslock_acquired_total{{{labels}}}"));
    assert_eq!(count("namespace=m-labels,lock=order"), 2);
    assert_eq!(count("namespace=m-labels"), 1);
    assert_eq!(
        series.gauge("crosslock_held{namespace=m-labels,lock=order}"),
        0.0
    );
}

#[cfg(feature = "redis")]
#[test]
fn outages_and_renewals_that_fail_are_counted() {
    let series = series();
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).namespace("m-outages");
    let builder = builder.ttl(10 * SHORT).renew_every(SHORT).io_timeout(SHORT);
    let observer = Arc::new(MetricsObserver::new());
    let locker = builder.observer(observer).build().unwrap();
    let guard = locker.lock("a").unwrap();
    server.stop();
    wait_until("the loss", PATIENCE, || {
        series.count("crosslock_lost_total{namespace=m-outages,reason=expired}") == 1
    });
    server.cont();
    drop(guard);
    assert!(series.count("crosslock_outages_total{namespace=m-outages}") >= 1);
    assert!(series.count("crosslock_renewals_failed_total{namespace=m-outages}") >= 1);
}

/// Those of the table on the page, which is that of the module.
#[test]
fn each_series_is_described_and_on_the_page() {
    let series = series();
    let _ = MetricsObserver::new();
    let described = series.described.lock().unwrap().clone();
    let own: Vec<_> = described
        .iter()
        .filter(|(name, _)| name.starts_with("crosslock_"))
        .collect();
    assert_eq!(own.len(), 15);
    let page = include_str!("../../docs/metrics.md");
    let module = include_str!("../../src/metrics.rs");
    for (name, unit) in own {
        let is_time = name.ends_with("_seconds");
        let expected = if is_time { Unit::Seconds } else { Unit::Count };
        assert_eq!(*unit, Some(expected), "{name}");
        let row = module
            .lines()
            .find(|line| line.contains(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("{name} isn't in the module's table"));
        let row = row.trim_start_matches("//! ");
        assert!(
            page.contains(row),
            "{name} isn't on the page as in the module"
        );
    }
}
