//! C4 and C8, and which calls end because they are cancelled: what goes wrong has a cause.

use super::*;

#[test]
fn loss_needs_a_fault() {
    check(
        "a lease is lost",
        "10 1 held 5 400; 300 1 lost expired",
        &[
            ("", "C4"),
            ("100 fault black_hole 200 1", ""),
            // Another process's, and one that loses nothing.
            ("100 fault black_hole 200 2", "C4"),
            ("100 fault script_flush 200 all", "C4"),
        ],
    );
}

#[test]
fn abandoned_lock_needs_a_fault() {
    check(
        "a lock is found abandoned",
        "3000 1 held 50 3400 detail=abandoned",
        &[
            ("", "C4"),
            ("2500 fault kill_holder 2501 3", ""),
            ("2500 fault lose_reply_to_acquire 2501 3", "C4"),
            // What happened before another had it isn't the cause.
            ("500 fault kill_holder 501 3; 2000 2 held 3 2100", "C4"),
            ("2500 2 held 5 2900; 2600 2 release panic 2900", ""),
            ("2500 2 held 5 2900; 2600 2 release drop 2900", "C4"),
            // A reader's, and that of one that was passed on.
            (
                "2500 2 held 5 2900 mode=read; 2600 2 release panic 2900 mode=read",
                "C4",
            ),
            (
                "2500 2 held 5 2900; 2600 2 release pass 2900; 2601 2 released passed",
                "",
            ),
        ],
    );
}

#[test]
fn readers_tell_what_a_writer_left_long_ago() {
    let readers = "100 1 held 5 500; 1000 2 held 15 1300 mode=read; \
                   5000 3 held 23 5300 mode=read detail=abandoned";
    let killed = "300 fault kill_holder 301 9";
    check("readers", readers, &[(killed, ""), ("", "C4")]);
    // The next need not come soon, either, and permits have no such word.
    let writers = "100 1 held 5 500; 5000 3 held 23 5300 detail=abandoned";
    check("writers", writers, &[(killed, "")]);
    let permits = "5000 3 held 23 5300 mode=1 detail=abandoned";
    check("permits", permits, &[("", "")]);
}

#[test]
fn error_needs_a_fault_that_allows_it() {
    check(
        "a call fails",
        "200 1 answer denied",
        &[
            ("", "C8"),
            ("100 fault acl_revoked 150 all", ""),
            ("100 fault stop_server 150 all", "C8"),
        ],
    );
    check(
        "a release fails",
        "200 1 released unavailable",
        &[("", "C8"), ("100 fault stop_server 150 all", "")],
    );
}

#[test]
fn call_is_cancelled_by_a_token_or_by_closing_its_locker_only() {
    check(
        "a call is cancelled",
        "10 1 ask lock token=1; 20 1 answer cancelled",
        &[
            ("", "C8"),
            ("15 1 cancel", ""),
            ("21 1 cancel", "C8"),
            ("15 2 cancel", "C8"),
            ("15 closes 30", ""),
            ("25 closes 30", "C8"),
        ],
    );
    check(
        "another locker is closed",
        "15 closes 30",
        &[
            ("10 1 ask lock token=2; 20 1 answer cancelled", "C8"),
            ("10 2 ask lock token=1; 20 2 answer cancelled", "C8"),
        ],
    );
}

#[test]
fn loss_by_a_close_needs_one_of_its_locker() {
    check(
        "a guard is closed",
        "10 1 held 5 400; 130 1 lost closed",
        &[
            ("9 1 ask lock token=1; 100 closes 200", ""),
            ("9 1 ask lock token=1", "C4"),
            ("9 1 ask lock token=1; 90 fault black_hole 95 1", "C4"),
            ("9 1 ask lock token=2; 100 closes 200", "C4"),
        ],
    );
    check(
        "a guard is closed, and another has the lock",
        "9 1 ask lock token=1; 10 1 held 5 400; 130 1 lost closed; 100 closes 200",
        &[
            ("120 2 held 9 500", ""),
            // It was still found valid then, or not yet closed.
            ("120 2 held 9 500; 125 1 look 500", "C1"),
            ("99 2 held 9 500", "C1"),
        ],
    );
    check(
        "the lock goes to another",
        "9 1 ask lock token=1; 10 1 held 5 400; 15 key x 5 410; 130 key y 9 530",
        &[("100 closes 200", ""), ("", "C6"), ("140 closes 200", "C6")],
    );
}
