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
        let done = place.tool("--json bench --for 3s").ends(0);
        let lines: Vec<_> = done.out.lines().map(json).collect();
        let measures: Vec<_> = lines
            .iter()
            .map(|line| line["measure"].as_str().unwrap())
            .collect();
        let expected = [
            "machine",
            "uncontended",
            "uncontended",
            "contended",
            "contended",
        ];
        assert_eq!(measures, expected, "{}", done.out);
        assert!(lines[2]["ratio"].as_f64().unwrap() > 0.0, "{}", done.out);
        for contended in &lines[3..] {
            assert!(
                contended["per_second"].as_f64().unwrap() > 0.0,
                "{contended}"
            );
            assert!(contended["gap_p99_us"].as_f64().is_some(), "{contended}");
        }
    }
    let left = std::fs::read_dir(files.path("locks")).expect("the directory");
    assert_eq!(left.count(), 0);
    assert!(server.keys().is_empty(), "{:?}", server.keys());
}

#[test]
fn people_get_a_table_and_a_bound() {
    let place = Place::with_files();
    let done = place.tool("bench --for 300ms").done();
    for words in [
        "CPUs",
        "floor: open, flock, unlock",
        "lock, unlock",
        "2 want it",
        "8 want it",
        "fairness",
    ] {
        assert!(done.out.contains(words), "{words}: {}", done.out);
    }
    place.tool("bench --for 11s").ends(64);
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
            drop(bench);
        }
        wait_until("the directory to be empty", PATIENCE, || {
            let left = std::fs::read_dir(files.path("locks")).expect("the directory");
            left.count() == 0
        });
        wait_until("no key to be left", PATIENCE, || server.keys().is_empty());
    }
}
