//! C5 and C6: what the watcher saw of the server.

use super::*;

#[test]
fn what_stays_breaks_c5() {
    check(
        "a key, a thread",
        "",
        &[("1 bare", "C5"), ("1 left threads", "C5")],
    );
}

#[test]
fn lock_goes_to_another_by_a_release_or_by_its_expiry() {
    check(
        "one holds it",
        "10 1 held 5 400; 15 key x 5 410",
        &[
            ("20 1 release; 21 2 held 9 420; 30 key y 9 430", ""),
            ("411 key y 9 800", ""),
            ("30 key y 9 430", "C6"),
            ("30 key crosslock:readers 8 430", "C6"),
            // Its process has handed it over.
            (
                "20 1 release; 22 11 held 6 420 detail=handed_over; 30 key - 9 0",
                "C6",
            ),
        ],
    );
    let given_up = [("15 key x 5 410; 30 key - 9 0", "")];
    check("nobody had it", "", &given_up);
    let readers = "10 1 held 4 400 mode=read; 15 key crosslock:readers 4 410";
    check("readers had it", readers, &[("30 key y 9 430", "")]);
}

/// Where the counter is ahead of the server's clock, the token after 7 is 9.
#[test]
fn lease_after_a_release_is_no_hand_over_though_its_token_follows() {
    check(
        "a process has two leases",
        "10 1 held 7 400; 22 11 held 8 420; 15 key x 7 410; 30 key y 9 430",
        &[("20 1 release", ""), ("", "C1 C6")],
    );
    check(
        "a process hands one over",
        "10 1 held 7 400; 20 1 release; 22 11 held 8 420 detail=handed_over; 15 key x 7 410",
        &[
            ("30 key y 13 430", "C6"),
            ("40 11 release; 30 key y 13 430", "C6"),
            ("40 11 release; 50 key y 13 430", ""),
        ],
    );
}

#[test]
fn line_keeps_its_order() {
    check(
        "three wait",
        "1 line x y z",
        &[
            ("2 line y z; 3 line z; 4 line z x; 5 line", ""),
            ("2 line y x z", "C6"),
            // One that was stopped was dropped, and comes back.
            ("1 fault stop_waiter 100 2; 200 line y z x", ""),
        ],
    );
    check(
        "one stands behind the other",
        "101 line u/host/1/1 v/host/2/2; 112 line v/host/2/2 u/host/1/1",
        &[("", "C6"), ("105 1 answer none", "")],
    );
}

#[test]
fn dead_that_stays_first_in_line_breaks_c6() {
    let goes = "200 key x 5 500; 200 line u/host/7/1 v/host/2/2; 600 key w/host/3/3 9 900";
    check(
        "the lock goes to another",
        goes,
        &[
            ("600 line v/host/2/2; 100 fault kill_waiter 101 7", ""),
            ("600 line u/host/7/1 v/host/2/2", ""),
            (
                "600 line u/host/7/1 v/host/2/2; 180 fault kill_waiter 181 7",
                "",
            ),
            (
                "600 line u/host/7/1 v/host/2/2; 100 fault kill_waiter 101 7",
                "C6",
            ),
        ],
    );
    // An adoption is no turn of the line; one by another process, or of another time, was none of this.
    check(
        "somebody adopts it",
        &format!("{goes}; 600 line u/host/7/1 v/host/2/2; 100 fault kill_waiter 101 7"),
        &[
            (
                "580 3 ask adopt; 590 3 answer unavailable; 580 fault stop_server 590 all",
                "",
            ),
            (
                "580 2 ask adopt; 590 2 answer unavailable; 580 fault stop_server 590 all",
                "C6",
            ),
            (
                "150 3 ask adopt; 160 3 answer unavailable; 150 fault stop_server 160 all",
                "C6",
            ),
            (
                "610 3 ask adopt; 620 3 answer unavailable; 610 fault stop_server 620 all",
                "C6",
            ),
        ],
    );
}

/// Where all stand in one line, one that shares the lock has had it before.
#[test]
fn dead_that_stays_first_may_be_passed_by_a_downgrade_in_a_line() {
    check(
        "it is shared",
        "200 line u/host/7/1 v/host/2/2; 600 line u/host/7/1 v/host/2/2; 200 key x 5 500; \
         600 key crosslock:shared 7 900; 100 fault kill_waiter 101 7",
        &[("", "C6"), ("9000 run etcd", "")],
    );
}

#[test]
fn dead_reader_that_is_renewed_breaks_c6() {
    check(
        "two read",
        "200 sharers 1 u/host/7/1 500 1 v/host/2/2 500",
        &[
            (
                "600 sharers 1 u/host/7/1 500 1 v/host/2/2 900; 100 fault kill_holder 101 7",
                "",
            ),
            ("600 sharers 1 u/host/7/1 600 1 v/host/2/2 900", ""),
            // A request of its was on the way.
            (
                "600 sharers 1 u/host/7/1 600 1 v/host/2/2 900; 180 fault kill_holder 181 7",
                "",
            ),
            (
                "600 sharers 1 u/host/7/1 600 1 v/host/2/2 900; 100 fault kill_holder 101 7",
                "C6",
            ),
        ],
    );
}
