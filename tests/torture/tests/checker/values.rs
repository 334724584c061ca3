//! C2.

use super::*;

#[test]
fn register_refuses_what_is_stale_and_loses_nothing() {
    check(
        "two have read",
        "1 1 register 5 read accepted 0; 2 2 register 9 read accepted 0",
        &[
            (
                "3 2 register 9 write accepted 1; 4 1 register 5 write stale 1; \
                 5 3 register 13 read accepted 1",
                "",
            ),
            ("3 1 register 5 write accepted 1", "C2"),
            ("3 2 register 9 write stale 0", "C2"),
            ("3 2 register 9 write accepted 3", "C2"),
            ("3 3 register 9 write accepted 1", "C2"),
        ],
    );
    check(
        "one has written, and others share",
        "1 1 register 5 read accepted 0; 2 1 register 5 write accepted 1",
        &[
            // The one that was there before them comes too late.
            (
                "3 2 register 12 peek accepted 1; 4 3 register 8 peek accepted 1; \
                 5 3 register 8 leave accepted 1; 6 1 register 5 write stale 1; \
                 7 4 register 13 read accepted 1; 8 2 register 12 leave stale 1",
                "",
            ),
            (
                "3 2 register 12 peek accepted 1; 4 1 register 5 write accepted 2",
                "C2",
            ),
            ("3 2 register 4 peek accepted 1", "C2"),
        ],
    );
}

#[test]
fn what_is_read_stays_as_it_is() {
    let history = "11 2 register 12 peek accepted 0; 20 3 register 13 read accepted 0; \
                   21 3 register 13 write accepted 1; 30 2 register 12 leave stale 1";
    // The second was lost before.
    let cases = [
        ("10 2 held 12 400 mode=read", "C2"),
        ("10 2 held 12 29 mode=read", ""),
    ];
    check("somebody writes", history, &cases);
    let flushed = [("10 2 held 12 400 mode=read; 15 fault flushall 16 all", "")];
    check_by(&unsafe_rules(), "the server forgets", history, &flushed);
}

/// How somebody ends who found 1, and what is told of that; a fault, and what may be stored after it.
const ENDS: [(&str, &str, &str, &[u64]); 8] = [
    ("commit", "ok", "", &[2]),
    ("commit", "lost", "5 fault stop_holder 300 all", &[1]),
    // Nobody saw whether it stored.
    (
        "commit",
        "unavailable",
        "5 fault stop_server 6 all",
        &[1, 2],
    ),
    ("drop", "dropped", "5 fault stop_server 6 all", &[1, 2]),
    // Nothing kept this one from it.
    ("drop", "dropped", "", &[2]),
    ("discard", "dropped", "", &[1]),
    ("unchanged", "dropped", "", &[1]),
    ("panic", "dropped", "", &[1]),
];

#[test]
fn value_is_what_was_stored_last() {
    for (how, told, fault, due) in ENDS {
        for value in 0..4 {
            let history = format!(
                "{fault}; 10 1 has 0 commit ok; 20 2 has 1 {how} {told}; \
                 30 3 has {value} unchanged ok; 9000 stored {value}"
            );
            let expected = if due.contains(&value) { "" } else { "C2" };
            assert_eq!(broken(&history, &rules()), expected, "{history}");
        }
    }
}

#[test]
fn one_that_died_may_have_stored_if_it_had_begun_to() {
    check(
        "it died after 21",
        "10 1 has 0 commit ok; 20 2 held 9 320; 20 2 value 1; 21 fault kill_holder 22 2",
        &[
            (
                "21 2 release commit; 500 3 has 1 unchanged ok; 9000 stored 1",
                "",
            ),
            (
                "21 2 release commit; 500 3 has 2 unchanged ok; 9000 stored 2",
                "",
            ),
            ("500 3 has 1 unchanged ok; 9000 stored 1", ""),
            ("500 3 has 2 unchanged ok; 9000 stored 2", "C2"),
        ],
    );
}

#[test]
fn value_is_judged_in_the_order_of_tokens_and_in_the_end() {
    check(
        "one has counted",
        "10 1 has 0 commit ok",
        &[
            ("9000 stored 1", ""),
            ("9000 stored 0", "C2"),
            ("9000 stored 2", "C2"),
            // The third was handed over late, as the one after it had it already.
            (
                "30 2 has 1 commit ok; 25 3 has 2 unchanged ok; 9000 stored 2",
                "C3",
            ),
        ],
    );
}

#[test]
fn server_that_forgets_may_go_back() {
    check_by(
        &unsafe_rules(),
        "it is zero again",
        "10 1 has 0 commit ok; 800 2 has 0 commit ok; 9000 stored 1",
        &[
            ("600 fault flushall 601 all", ""),
            ("600 fault restart_server_without_aof 601 all", ""),
            ("600 fault fail_over_to_a_stale_replica 601 all", ""),
            ("600 fault fail_over 601 all", ""),
            ("600 fault delete_lock 601 all", "C2"),
            ("600 fault evict 601 all", "C2"),
        ],
    );
    // Replicas that have to confirm have it.
    check(
        "it is zero again after a failover",
        "10 1 has 0 commit ok; 100 2 has 0 commit ok; 9000 stored 1",
        &[("50 fault fail_over 90 all", "C2")],
    );
}
