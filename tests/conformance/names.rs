//! What a lock may be called, and what can be set.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, LockerBuilder};

use crate::Place;
use crate::kinds::{SEVERAL, kinds_of};
use crate::release::assert_free;

/// Names that an engine could mangle, mix up, or take for something else, one a word.
const ODD: &str = r#"a/b a//b /a/b a/b/ / // . .. ... ../a a/../b ~ ~root ../../etc/passwd \ a\b a~ a~b a+b
    % %% %2f %2F a%2fb a%2Fb %00 a% { } {} {a} {a}b a}b{ a} {{a}} : :: a:b a::b a:fence {a}:fence a}:fence crosslock:a
    " ' "a" 'a' `a` $a ${a} $(a) * ? [a] a* a;b a|b a&b <a> # @ = , - -- -a _ -1 0 00
    a A é É ß ss SS ı i İ I 名前 имя שם 🔒 🔒🔒 a.lock .lock a.LOCK con nul null nil EVAL aux.txt"#;

/// And with white space, or signs that nobody sees, between bars.
const INVISIBLE: &str = "a | a|a\n|a\0|a\0b|a\r\nb|a\tb|\0|\n| |  |a b|a  b|\u{7f}|return 1|\u{1b}[0m|e\u{301}\
    |👩\u{200d}🔬|\u{feff}a|\u{200b}a|a\u{202e}b|\u{10ffff}|a\r\n*1\r\n$4\r\nPING\r\n|\u{a0}";

/// These, and some that are long.
fn odd_names() -> Vec<String> {
    let odd = ODD.split_whitespace().chain(INVISIBLE.split('|'));
    let mut names: Vec<_> = odd.map(String::from).collect();
    // About the length at which a file system's or an encoding's limits begin.
    for length in [199, 200, 201, 250, 255, 256, 400, 511, 512] {
        names.push("x".repeat(length));
        names.push("X".repeat(length));
        names.push("\0".repeat(length));
        names.push("/".repeat(length));
        names.push("é".repeat(length / 2));
        names.push("🔒".repeat(length / 4));
    }
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

pub(crate) fn odd_names_are_all_different_locks(place: &Place) {
    let names = odd_names();
    let other = place.other();
    let guards: Vec<LockGuard> = names
        .iter()
        .map(|name| {
            let guard = place.try_lock(name).unwrap();
            guard.unwrap_or_else(|| panic!("{name:?} is taken by another name"))
        })
        .collect();
    for (name, guard) in names.iter().zip(&guards) {
        assert_eq!(guard.name(), name);
        guard.verify().unwrap_or_else(|e| panic!("{name:?}: {e}"));
        assert!(other.try_lock(name).unwrap().is_none(), "{name:?} is free");
    }
    for guard in guards {
        guard.unlock().unwrap();
    }
    names.iter().for_each(|name| assert_free(place, name));
}

pub(crate) fn names_out_of_bounds_are_rejected_by_every_call(place: &Place) {
    let timeout = Duration::from_millis(1);
    for name in [String::new(), "n".repeat(513), "é".repeat(257)] {
        let (lock, mut outcomes): (&Locker, _) = (place, Vec::new());
        for kind in kinds_of(place).iter().filter(|kind| kind.name != SEVERAL) {
            outcomes.extend([
                (kind.take)(lock, &name).map(drop),
                (kind.try_once)(lock, &name).map(drop),
                (kind.take_for)(lock, &name, timeout).map(drop),
                (kind.take_until)(lock, &name, Instant::now()).map(drop),
            ]);
        }
        #[cfg(feature = "value")]
        outcomes.extend([
            lock.mutex(&name, 0).map(drop),
            lock.rwlock(&name, 0).map(drop),
        ]);
        for outcome in outcomes {
            let Err(Error::InvalidName { reason, .. }) = outcome else {
                panic!("{name:?}: {outcome:?}")
            };
            assert!(reason.contains(&name.len().to_string()), "{reason}");
        }
    }
}

pub(crate) fn bad_namespaces_are_rejected(lock: &Locker) {
    for bad in [" ", "a b", "a:b", "{a}", "a/b", "ä", "a\0", &"n".repeat(65)] {
        match lock.with_namespace(bad) {
            Err(Error::InvalidOption { option, .. }) => assert_eq!(option, "namespace"),
            other => panic!("{bad:?}: {other:?}"),
        }
    }
    for good in ["A-z_0.9", &"n".repeat(64)] {
        let lock = lock.with_namespace(good).unwrap();
        lock.lock("a").unwrap().unlock().unwrap();
    }
}

const TICK: Duration = Duration::from_nanos(1);
const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

type Change = fn(LockerBuilder) -> LockerBuilder;

const BAD: &[(&str, &[Change])] = &[
    (
        "namespace",
        &[|b| b.namespace("a b"), |b| b.namespace("{a}")],
    ),
    (
        "ttl",
        &[
            |b| b.ttl(Duration::ZERO),
            |b| b.ttl(100 * MILLI - TICK),
            |b| b.ttl(DAY + TICK),
        ],
    ),
    (
        "renew_every",
        &[
            |b| b.renew_every(10 * MILLI - TICK),
            |b| b.renew_every(5 * SECOND + TICK),
            |b| b.ttl(SECOND).renew_every(SECOND / 2 + TICK),
            // Also when the two are set the other way around.
            |b| b.renew_every(SECOND).ttl(SECOND),
        ],
    ),
    ("max_hold", &[|b| b.max_hold(MILLI - TICK)]),
    (
        "backoff",
        &[
            |b| b.backoff(Duration::from_micros(100) - TICK, SECOND, 0.5),
            |b| b.backoff(SECOND, SECOND - TICK, 0.5),
            |b| b.backoff(MILLI, 60 * SECOND + TICK, 0.5),
            |b| b.backoff(MILLI, SECOND, -0.1),
            |b| b.backoff(MILLI, SECOND, 1.1),
            |b| b.backoff(MILLI, SECOND, f64::NAN),
        ],
    ),
    ("attempts", &[|b| b.attempts(0)]),
    (
        "connect_timeout",
        &[
            |b| b.connect_timeout(10 * MILLI - TICK),
            |b| b.connect_timeout(60 * SECOND + TICK),
        ],
    ),
    (
        "io_timeout",
        &[
            |b| b.io_timeout(10 * MILLI - TICK),
            |b| b.io_timeout(60 * SECOND + TICK),
        ],
    ),
];

const GOOD: [Change; 8] = [
    |b| b.ttl(DAY).renew_every(5 * SECOND).attempts(u32::MAX),
    |b| b.renew_every(10 * MILLI).attempts(1),
    |b| b.max_hold(MILLI),
    |b| b.max_hold(Duration::MAX),
    |b| b.backoff(Duration::from_micros(100), 60 * SECOND, 0.0),
    |b| b.backoff(SECOND, SECOND, 1.0),
    |b| b.outage_timeout(Duration::ZERO),
    |b| {
        let b = b.outage_timeout(Duration::MAX);
        b.connect_timeout(60 * SECOND).io_timeout(60 * SECOND)
    },
];

pub(crate) fn values_out_of_range_are_rejected_by_name(place: &Place) {
    for (name, changes) in BAD {
        for (which, change) in changes.iter().enumerate() {
            let error = change(place.builder()).build().map(drop).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            let named = matches!(error, Error::InvalidOption { option, .. } if option == *name);
            assert!(named, "{name}, value {which}: {error}");
        }
    }
}

pub(crate) fn shortest_ttl_is_that_of_the_engine(place: &Place) {
    let shortest = place.leases.shortest;
    let brief = place.builder().ttl(shortest).renew_every(shortest / 2);
    brief.build().unwrap().lock("a").unwrap().unlock().unwrap();
    let built = place.builder().ttl(shortest / 2).build();
    let Err(Error::InvalidOption { option, .. }) = built else {
        panic!("{built:?}")
    };
    assert_eq!(option, "ttl");
}

pub(crate) fn bounds_themselves_are_accepted(place: &Place) {
    for (which, change) in GOOD.iter().enumerate() {
        let built = change(place.builder()).build();
        let lock = built.unwrap_or_else(|e| panic!("value {which}: {e}"));
        lock.lock("a").unwrap().unlock().unwrap();
    }
}
