//! C7.

use super::*;

#[test]
fn call_is_over_in_time() {
    check(
        "calls with a bound of their own, each in time and late",
        "",
        &[
            ("10 1 ask open; 500 1 answer opened", ""),
            ("10 1 ask open; 700 1 answer opened", "C7"),
            ("10 1 ask timed 50; 200 1 answer none", ""),
            ("10 1 ask timed 50; 250 1 answer none", "C7"),
            ("10 1 ask lock; 14000 1 held 5 14300", ""),
            ("10 1 ask lock; 16000 1 held 5 16300", "C7"),
            ("10 1 held 5 400; 20 1 release; 500 1 released ok", ""),
            ("10 1 held 5 400; 20 1 release; 600 1 released ok", "C7"),
            ("10 closes 550", ""),
            ("10 closes 570", "C7"),
        ],
    );
}

#[test]
fn cancelled_call_is_over_within_50_ms() {
    check(
        "a call is cancelled",
        "10 1 ask lock; 100 1 cancel",
        &[
            ("199 1 answer cancelled", ""),
            ("201 1 answer cancelled", "C7"),
            ("150 1 held 5 400", ""),
            ("201 1 held 5 400", "C7"),
            // No fault but one that stops its process is an excuse.
            ("300 1 answer cancelled; 90 fault black_hole 290 1", "C7"),
            ("300 1 answer cancelled; 90 fault stop_waiter 290 1", ""),
            ("300 1 answer cancelled; 90 fault stop_waiter 290 2", "C7"),
        ],
    );
    // It counts from when both have begun.
    let before = [("10 1 cancel; 100 1 ask lock; 199 1 answer cancelled", "")];
    check("it was cancelled before", "", &before);
    check(
        "its locker is closed",
        "10 1 ask lock token=1; 100 closes 200",
        &[
            ("190 1 answer cancelled", ""),
            ("210 1 answer cancelled", "C7"),
        ],
    );
}

#[test]
fn wait_for_a_killed_holder_ends_with_its_ttl() {
    check(
        "a holder is killed",
        "50 2 ask lock; 10 1 held 5 400; 100 fault kill_holder 101 1",
        &[
            ("700 2 held 9 1000", ""),
            ("900 2 held 9 1200", "C7"),
            // Another fault may explain it.
            ("900 2 held 9 1200; 400 fault stop_server 500 all", ""),
        ],
    );
    check(
        "a reader is killed",
        "50 2 ask lock; 10 1 held 4 400 mode=read; 100 fault kill_holder 101 1",
        &[("780 2 held 13 1080", ""), ("820 2 held 13 1120", "C7")],
    );
}

#[test]
fn lock_that_is_released_goes_to_who_waits_at_once() {
    check(
        "a lock is released",
        "50 2 ask lock; 10 1 held 5 400; 300 1 release; 301 1 released ok",
        &[
            ("400 2 held 9 1000", ""),
            ("500 2 held 9 1000", "C7"),
            // One that died long before is no excuse, one that may have been given the lock is.
            ("500 2 held 9 1000; 100 fault kill_waiter 101 3", "C7"),
            ("500 2 held 9 1000; 302 fault kill_waiter 303 3", ""),
            ("500 2 held 9 1000; 100 fault stop_waiter 101 3", ""),
        ],
    );
    // The command never began. What a worker has, it tells itself.
    check(
        "a program has it next",
        "50 2 ask lock; 10 1 held 5 400; 300 1 release; 301 1 released ok; 900 2 held 9 1200",
        &[
            (
                "310 key u/host/77/77 7 710; 850 key u/host/77/77 7 1250",
                "",
            ),
            (
                "310 key u/host/77/77 7 710; 700 key u/host/77/77 7 1100",
                "C7",
            ),
            ("310 key u/host/2/2 7 710; 850 key u/host/2/2 7 1250", "C7"),
        ],
    );
    check(
        "the last reader leaves",
        "10 1 held 4 900 mode=read; 500 1 release; 501 1 released ok; 20 2 held 8 400 mode=read; \
         300 2 release; 301 2 released ok; 50 3 ask lock",
        &[
            ("600 3 held 13 900", ""),
            ("700 3 held 13 1000", "C7"),
            // Another may have had it, and waited for the second of two names.
            ("700 3 held 13 1000; 40 4 ask lock name=a+b", ""),
            (
                "700 3 held 13 1000; 40 4 ask lock name=a+b; 400 4 answer none",
                "C7",
            ),
        ],
    );
}

#[test]
fn locks_are_taken_soon_after_an_outage() {
    for outage in [
        "100 fault stop_server 200 all",
        "100 fault fail_over 200 all",
    ] {
        check(
            "somebody has a lock again",
            outage,
            &[("740 1 held 5 900", ""), ("760 1 held 5 900", "C7")],
        );
        // Leases from before it may last as long.
        let ttl = Duration::from_millis(900);
        check_by(
            &Rules { ttl, ..rules() },
            "somebody has a lock again, where leases last longer",
            outage,
            &[("1140 1 held 5 2000", ""), ("1160 1 held 5 2000", "C7")],
        );
    }
}
