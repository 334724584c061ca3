//! Leases that are passed on to another process.

use super::*;

/// Call 1 has the lock, and passes it on.
const PASSED: &str = "10 1 held 5 400; 100 1 release pass 400; 101 1 released passed";

#[test]
fn lease_is_adopted_once_with_a_larger_token() {
    check(
        "one adopts it",
        PASSED,
        &[
            ("120 2 adopts 1; 130 2 held 9 530", ""),
            ("120 2 adopts 1; 130 2 held 5 530", "C3"),
            ("120 2 adopts 1; 130 2 held 3 530", "C3"),
        ],
    );
    check(
        "one that shares adopts it",
        "10 1 held 5 400 mode=read; 100 1 release pass 400; 101 1 released passed",
        &[("120 2 adopts 1; 130 2 held 3 530 mode=read", "C3")],
    );
    check(
        "another tries it, too",
        &format!("{PASSED}; 120 2 adopts 1; 130 2 held 9 200; 125 3 adopts 1"),
        &[
            ("140 2 release; 150 3 held 13 550", "C6"),
            ("150 3 answer lost", ""),
        ],
    );
}

#[test]
fn lease_that_was_passed_on_is_nobody_elses() {
    check(
        "another has the lock",
        PASSED,
        &[("390 3 held 9 790", "C1"), ("400 3 held 9 800", "")],
    );
    check(
        "the server gives it to another",
        &format!("{PASSED}; 90 key x 5 400; 150 key y 9 550"),
        &[
            ("", "C6"),
            ("120 2 adopts 1", ""),
            ("160 2 adopts 1", "C6"),
            // It was no more its locker's.
            ("120 closes 125", "C6"),
        ],
    );
    check(
        "its locker may have been closed before",
        &format!("{PASSED}; 15 key x 5 400; 90 key y 9 490"),
        &[("80 closes 85", ""), ("95 closes 99", "C6")],
    );
}

#[test]
fn adoption_is_refused_for_a_cause() {
    check(
        "one is refused",
        PASSED,
        &[
            ("290 2 adopts 1; 300 2 answer lost", "C4"),
            // It was over, it was broken, or another may have adopted it.
            ("395 2 adopts 1; 405 2 answer lost", ""),
            ("290 2 adopts 1; 300 2 answer lost; 115 broke 5 1 110", ""),
            ("290 2 adopts 1; 300 2 answer lost; 200 3 adopts 1", ""),
            ("290 2 adopts 1; 300 2 answer lost; 310 3 adopts 1", "C4"),
        ],
    );
    check(
        "it had been lost before",
        "10 1 held 5 400; 100 1 release pass",
        &[("120 2 adopts 1; 130 2 answer lost", "")],
    );
}

#[test]
fn lease_that_nobody_adopts_is_free_after_its_ttl() {
    check(
        "another waits",
        &format!("{PASSED}; 50 3 ask lock"),
        &[
            ("800 3 held 9 1200", ""),
            ("810 3 held 9 1210", "C7"),
            // Somebody adopted it, and died.
            (
                "810 3 held 9 1210; 115 2 adopts 1; 120 fault kill_holder 130 2",
                "",
            ),
        ],
    );
}

/// The server may have its lease still, by a renewal that came late, and releases that.
#[test]
fn lost_guard_passes_nothing_on() {
    check(
        "its lease is over",
        "10 1 held 5 80; 100 1 release pass; 90 key x 5 400; 150 key y 9 550; 30 fault drop 90 1",
        &[("101 1 released lost", ""), ("101 1 released passed", "C6")],
    );
}
