//! What can be set, and what can't.

use std::time::Duration;

use crosslock::{Error, LockerBuilder};

use crate::Place;

const TICK: Duration = Duration::from_nanos(1);
const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

type Change = fn(LockerBuilder) -> LockerBuilder;

const BAD: &[(&str, &[Change])] = &[
    (
        "namespace",
        &[
            |b| b.namespace("a b"),
            |b| b.namespace("{a}"),
            |b| b.namespace("a:b"),
            |b| b.namespace("é"),
            |b| b.namespace(&"n".repeat(65)),
        ],
    ),
    (
        "ttl",
        &[
            |b| b.ttl(Duration::ZERO),
            |b| b.ttl(100 * MILLI - TICK),
            |b| b.ttl(DAY + TICK),
            |b| b.ttl(Duration::MAX),
        ],
    ),
    (
        "renew_every",
        &[
            |b| b.renew_every(Duration::ZERO),
            |b| b.renew_every(10 * MILLI - TICK),
            |b| b.renew_every(5 * SECOND + TICK),
            |b| b.ttl(SECOND).renew_every(SECOND / 2 + TICK),
            // Also when the two are set the other way around.
            |b| b.renew_every(SECOND).ttl(SECOND),
        ],
    ),
    (
        "max_hold",
        &[|b| b.max_hold(Duration::ZERO), |b| b.max_hold(MILLI - TICK)],
    ),
    (
        "backoff",
        &[
            |b| b.backoff(Duration::ZERO, SECOND, 0.5),
            |b| b.backoff(Duration::from_micros(100) - TICK, SECOND, 0.5),
            |b| b.backoff(SECOND, SECOND - TICK, 0.5),
            |b| b.backoff(MILLI, 60 * SECOND + TICK, 0.5),
            |b| b.backoff(MILLI, SECOND, -0.1),
            |b| b.backoff(MILLI, SECOND, 1.1),
            |b| b.backoff(MILLI, SECOND, f64::NAN),
            |b| b.backoff(MILLI, SECOND, f64::INFINITY),
        ],
    ),
    ("attempts", &[|b| b.attempts(0)]),
    (
        "connect_timeout",
        &[
            |b| b.connect_timeout(Duration::ZERO),
            |b| b.connect_timeout(10 * MILLI - TICK),
            |b| b.connect_timeout(60 * SECOND + TICK),
        ],
    ),
    (
        "io_timeout",
        &[
            |b| b.io_timeout(Duration::ZERO),
            |b| b.io_timeout(10 * MILLI - TICK),
            |b| b.io_timeout(60 * SECOND + TICK),
        ],
    ),
];

const GOOD: &[Change] = &[
    |b| b.ttl(DAY),
    |b| b.renew_every(10 * MILLI),
    |b| b.renew_every(5 * SECOND),
    |b| b.max_hold(MILLI),
    |b| b.max_hold(Duration::MAX),
    |b| b.backoff(Duration::from_micros(100), 60 * SECOND, 0.0),
    |b| b.backoff(SECOND, SECOND, 1.0),
    |b| b.attempts(1),
    |b| b.attempts(u32::MAX),
    |b| b.outage_timeout(Duration::ZERO),
    |b| b.outage_timeout(Duration::MAX),
    |b| b.connect_timeout(60 * SECOND),
    |b| b.io_timeout(60 * SECOND),
];

pub(crate) fn values_out_of_range_are_rejected_by_name(place: &Place) {
    for (name, changes) in BAD {
        for (which, change) in changes.iter().enumerate() {
            let error = change(place.builder()).build().map(drop).unwrap_err();
            let text = error.to_string();
            match error {
                Error::InvalidOption { option, .. } => assert_eq!(option, *name, "value {which}"),
                other => panic!("{name}, value {which}: {other:?}"),
            }
            assert!(text.contains(name), "{text}");
        }
    }
}

pub(crate) fn shortest_ttl_is_that_of_the_engine(place: &Place) {
    let shortest = place.shortest_ttl();
    let brief = place.builder().ttl(shortest).renew_every(shortest / 2);
    brief.build().unwrap().lock("a").unwrap().unlock().unwrap();
    let error = place.builder().ttl(shortest / 2).build().unwrap_err();
    match &error {
        Error::InvalidOption { option, reason, .. } => {
            assert_eq!(*option, "ttl");
            assert!(!reason.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn bounds_themselves_are_accepted(place: &Place) {
    for (which, change) in GOOD.iter().enumerate() {
        let built = change(place.builder()).build();
        let lock = built.unwrap_or_else(|e| panic!("value {which}: {e}"));
        let guard = lock.lock("a").unwrap();
        guard
            .unlock()
            .unwrap_or_else(|e| panic!("value {which}: {e}"));
    }
}
