//! What the recorder of the `metrics` crate is told, as Prometheus gets it. Each test has a namespace of its own, by
//! which it knows its series.

use std::sync::LazyLock;
use std::thread;

use crosslock::metrics::MetricsObserver;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::*;

/// All series of this process.
static SERIES: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().unwrap());

/// What a series is now, such as `held{namespace="a"}`.
fn value(series: &str) -> f64 {
    let all = SERIES.render();
    let of = |line: &str| {
        let value = line.strip_prefix("crosslock_")?.strip_prefix(series)?;
        value.trim().parse().ok()
    };
    all.lines().find_map(of).unwrap_or(0.0)
}

fn measured(namespace: &str, set: impl FnOnce(LockerBuilder) -> LockerBuilder) -> Locker {
    // An observer describes its series to the recorder that is there.
    LazyLock::force(&SERIES);
    let builder = Locker::builder("memory:").namespace(namespace);
    let builder = builder.observer(Arc::new(MetricsObserver::new()));
    set(builder).build().unwrap()
}

#[test]
fn waits_and_holds_are_measured_and_counted() {
    let locker = measured("m-holds", |builder| builder);
    let all =
        |names: [&str; 2]| names.map(|name| value(&format!("{name}{{namespace=\"m-holds\"}}")));
    let gauges = || all(["held", "waiting"]);
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
    assert_eq!(all(["acquired_total", "abandoned_total"]), [2.0, 0.0]);
    assert_eq!(all(["wait_seconds_count", "hold_seconds_count"]), [2.0; 2]);
    let times = all(["wait_seconds_sum", "hold_seconds_sum"]);
    let long = SHORT.as_secs_f64()..PATIENCE.as_secs_f64();
    assert!(times.iter().all(|time| long.contains(time)), "{times:?}");
    for name in ["held", "waiting", "acquired_total", "wait_seconds"] {
        let described = format!("# HELP crosslock_{name} ");
        assert!(SERIES.render().contains(&described), "{name}");
    }
}

#[test]
fn losses_and_vain_waits_are_counted_by_their_reasons() {
    let value = |name: &str, more: &str| value(&format!("{name}{{namespace=\"m-losses\"{more}}}"));
    let locker = measured("m-losses", |builder| builder.ttl(2 * SHORT).renew(false));
    let guard = locker.lock("a").unwrap();
    guard.lost().recv().unwrap();
    wait_until("the count", PATIENCE, || {
        value("lost_total", ",reason=\"expired\"") == 1.0
    });
    drop(guard);
    assert_eq!(value("held", ""), 0.0);
    let abandoned = locker.lock("a").unwrap().was_abandoned();
    assert_eq!(value("abandoned_total", ""), f64::from(abandoned));
    let counted = measured("m-losses", |builder| builder.attempts(2));
    let guard = counted.lock("b").unwrap();
    assert!(locker.try_lock_for("b", SHORT).unwrap().is_none());
    assert!(counted.lock("b").is_err());
    for why in ["timeout", "attempts"] {
        let more = format!(",why=\"{why}\"");
        assert_eq!(value("gave_up_total", &more), 1.0, "{why}");
    }
    assert_eq!(value("waiting", ""), 0.0);
    drop(guard);
}

/// A counter that appears with its first count has never increased, as Prometheus sees it.
#[test]
fn counters_begin_at_zero() {
    const OF_LOCKS: &str = "abandoned_total renewals_failed_total outages_total broken_total \
        lost_total:reason=expired lost_total:reason=not_owner lost_total:reason=broken lost_total:reason=closed \
        gave_up_total:why=timeout gave_up_total:why=attempts gave_up_total:why=cancelled \
        gave_up_total:why=unavailable gave_up_total:why=error";
    #[cfg(feature = "delay")]
    const OF_QUEUES: &str = "tasks_taken_total tasks_ended_total:how=done tasks_ended_total:how=retried \
        tasks_ended_total:how=buried";
    let locker = measured("m-zero", |builder| builder);
    let is_zero = |counter: &str| {
        let (name, label) = counter.split_once(':').unwrap_or((counter, ""));
        let label = label.split_once('=');
        let label = label.map(|(key, value)| format!(",{key}=\"{value}\""));
        let labels = format!("namespace=\"m-zero\"{}", label.unwrap_or_default());
        let series = format!("crosslock_{name}{{{labels}}} 0");
        SERIES.render().lines().any(|line| line == series)
    };
    assert!(!OF_LOCKS.split(' ').any(is_zero));
    drop(locker.lock("a").unwrap());
    for counter in OF_LOCKS.split(' ') {
        assert!(is_zero(counter), "{counter}");
    }
    #[cfg(feature = "delay")]
    {
        assert!(!OF_QUEUES.split(' ').any(is_zero));
        let queue: crosslock::DelayQueue<u8> = locker.delay_queue("b").unwrap();
        queue.insert(&1, Duration::ZERO).unwrap();
        for counter in OF_QUEUES.split(' ') {
            assert!(is_zero(counter), "{counter}");
        }
    }
}

#[test]
fn function_labels_those_that_it_wants_to() {
    LazyLock::force(&SERIES);
    let observer = MetricsObserver::labelled(|namespace, name| {
        assert_eq!(namespace, "m-labels");
        Some(name.split_once('/')?.0.to_owned())
    });
    let builder = Locker::builder("memory:").namespace("m-labels");
    let locker = builder.observer(Arc::new(observer)).build().unwrap();
    for name in ["order/1", "order/2", "other"] {
        drop(locker.lock(name).unwrap());
    }
    let order = "{namespace=\"m-labels\",lock=\"order\"}";
    assert_eq!(value(&format!("acquired_total{order}")), 2.0);
    assert_eq!(value("acquired_total{namespace=\"m-labels\"}"), 1.0);
    assert_eq!(value(&format!("held{order}")), 0.0);
}

#[test]
fn each_series_is_in_the_table_of_the_module_which_is_on_the_page() {
    let page = include_str!("../../docs/metrics.md");
    let module = include_str!("../../src/metrics.rs");
    let names = module.split("&str = \"crosslock_").skip(1);
    let names: Vec<_> = names.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(names.len(), 15);
    for name in names {
        let is_it = |line: &&str| line.contains(&format!("| `crosslock_{name}` |"));
        let row = module.lines().find(is_it).expect(name);
        assert!(page.contains(row.trim_start_matches("//! ")), "{name}");
    }
}
