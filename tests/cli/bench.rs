//! `bench`.

use rustix::process::Signal;
use support::{RedisServer, wait_until};

use crate::PATIENCE;
use crate::holders::json;
use crate::tool::Place;

/// What is there before is there after, and nothing else.
#[test]
fn it_measures_and_leaves_nothing_behind() {
    let server = RedisServer::start();
    let elsewhere = Place::with_locks_at("memory:");
    let (files, redis) = (Place::with_files(), Place::with_locks_at(&server.url()));
    for place in [&elsewhere, &files, &redis] {
        // Long enough for several to have the lock on a busy machine.
        let out = place.tool("--json bench --for 3s").ends(0).out;
        let lines: Vec<_> = out.lines().map(json).collect();
        let measures: Vec<_> = lines.iter().map(|line| &line["measure"]).collect();
        let expected = "machine uncontended uncontended contended contended";
        let expected: Vec<_> = expected.split(' ').collect();
        assert_eq!(measures, expected, "{out}");
        let is_positive = |value: &serde_json::Value| value.as_f64().is_some_and(|it| it > 0.0);
        assert!(is_positive(&lines[2]["ratio"]), "{out}");
        for contended in &lines[3..] {
            assert!(is_positive(&contended["per_second"]), "{contended}");
            assert!(contended["gap_p99_us"].is_number(), "{contended}");
        }
    }
    let table = files.tool("bench --for 300ms").ends(0).out;
    for words in [
        "CPUs",
        "floor: open, flock, unlock",
        "8 threads",
        "fairness",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let left = std::fs::read_dir(files.path("locks")).expect("the directory");
    assert_eq!(left.count(), 0);
    assert!(server.keys().is_empty(), "{:?}", server.keys());
}

#[test]
fn killed_bench_leaves_nothing_behind() {
    let server = RedisServer::start();
    for signal in [Signal::INT, Signal::KILL] {
        let (files, redis) = (Place::with_files(), Place::with_locks_at(&server.url()));
        for place in [&files, &redis] {
            let bench = place.tool("--json bench --for 10s").start();
            wait_until("a measure", PATIENCE, || {
                bench.out().contains("uncontended")
            });
            bench.signal(signal);
        }
        wait_until("nothing to be left", PATIENCE, || {
            let left = std::fs::read_dir(files.path("locks")).expect("the directory");
            left.count() == 0 && server.keys().is_empty()
        });
    }
}
