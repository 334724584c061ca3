//! What the recorder of the `metrics` crate is told. Each test has a namespace of its own, by which it knows its
//! series.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Once};
use std::thread;

use ::metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use crosslock::metrics::MetricsObserver;

use super::*;

type ByKey<T> = Mutex<BTreeMap<String, T>>;

/// Keeps all series of this process, by their names and labels, such as `held{namespace=a}`.
#[derive(Default)]
struct Series {
    numbers: ByKey<Arc<AtomicU64>>,
    histograms: ByKey<Arc<Values>>,
    described: ByKey<Option<Unit>>,
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
    static SERIES: LazyLock<Series> = LazyLock::new(Series::default);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| ::metrics::set_global_recorder(&*SERIES).unwrap());
    &SERIES
}

fn get<T: Default + Clone>(series: &ByKey<T>, key: &str) -> T {
    let mut series = series.lock().unwrap();
    series.entry(key.into()).or_default().clone()
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
        get(&self.numbers, key).load(Ordering::SeqCst)
    }

    fn gauge(&self, key: &str) -> f64 {
        f64::from_bits(self.count(key))
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
        Counter::from_arc(get(&self.numbers, &shown(key)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(get(&self.numbers, &shown(key)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(get(&self.histograms, &shown(key)))
    }
}

fn measured(namespace: &str, set: impl FnOnce(LockerBuilder) -> LockerBuilder) -> Locker {
    let builder = Locker::builder("memory:").namespace(namespace);
    let builder = builder.observer(Arc::new(MetricsObserver::new()));
    set(builder).build().unwrap()
}

#[test]
fn waits_and_holds_are_measured_and_counted() {
    let series = series();
    let locker = measured("m-holds", |builder| builder);
    let key = |name| format!("crosslock_{name}{{namespace=m-holds}}");
    let gauges = || ["held", "waiting"].map(|name| series.gauge(&key(name)));
    let guard = locker.lock("a").unwrap();
    assert_eq!(gauges(), [1.0, 0.0]);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock("a").unwrap());
        wait_until("the waiter", PATIENCE, || gauges() == [1.0, 1.0]);
        thread::sleep(SHORT);
        drop(guard);
        drop(waiter.join().unwrap());
    });
    assert_eq!(gauges(), [0.0, 0.0]);
    assert_eq!(series.count(&key("acquired_total")), 2);
    let times = ["wait_seconds", "hold_seconds"].map(|name| series.values(&key(name)));
    assert_eq!((times[0].len(), times[1].len()), (2, 2));
    let long = SHORT.as_secs_f64()..PATIENCE.as_secs_f64();
    let is_long = long.contains(&times[0][1]) && long.contains(&times[1][0]);
    assert!(is_long, "{times:?}");
}

#[test]
fn losses_and_vain_waits_are_counted_by_their_reasons() {
    let series = series();
    let count = |name: &str, more: &str| {
        series.count(&format!("crosslock_{name}{{namespace=m-losses{more}}}"))
    };
    let locker = measured("m-losses", |builder| builder.ttl(2 * SHORT).renew(false));
    let guard = locker.lock("a").unwrap();
    guard.lost().recv().unwrap();
    wait_until("the count", PATIENCE, || {
        count("lost_total", ",reason=expired") == 1
    });
    drop(guard);
    assert_eq!(count("held", ""), 0);
    let abandoned = locker.lock("a").unwrap().was_abandoned();
    assert_eq!(count("abandoned_total", ""), u64::from(abandoned));
    let counted = measured("m-losses", |builder| builder.attempts(2));
    let guard = counted.lock("b").unwrap();
    assert!(locker.try_lock_for("b", SHORT).unwrap().is_none());
    assert!(counted.lock("b").is_err());
    for why in [",why=timeout", ",why=attempts"] {
        assert_eq!(count("gave_up_total", why), 1, "{why}");
    }
    assert_eq!(count("waiting", ""), 0);
    drop(guard);
}

#[test]
fn function_labels_those_that_it_wants_to() {
    let series = series();
    let observer = MetricsObserver::labelled(|namespace, name| {
        assert_eq!(namespace, "m-labels");
        Some(name.split_once('/')?.0.to_owned())
    });
    let builder = Locker::builder("memory:").namespace("m-labels");
    let locker = builder.observer(Arc::new(observer)).build().unwrap();
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
