//! C1, C3 and C10: one at a time, in the order of tokens.

use super::*;

#[test]
fn two_holders_at_a_time_break_c1() {
    check(
        "one holds it, and then another",
        "10 1 held 5 400",
        &[
            ("20 1 release; 21 2 held 9 400; 400 3 held 13 800", ""),
            ("399 2 held 9 800", "C1"),
            ("300 1 look 700; 650 2 held 9 900", "C1"),
            ("399 2 held 9 800 name=b", ""),
        ],
    );
    check(
        "one call holds two",
        "10 1 held 5 400 name=a+b",
        &[
            ("20 2 held 9 400 name=c", ""),
            ("20 2 held 9 400 name=a", "C1"),
            ("20 2 held 9 400 name=b", "C1"),
            ("15 1 release; 20 2 held 9 400 name=b", ""),
        ],
    );
}

#[test]
fn writer_beside_readers_breaks_c1() {
    check(
        "readers and a writer",
        "",
        &[
            // Readers have their tokens in no order.
            (
                "10 1 held 8 400 mode=read; 20 2 held 4 400 mode=read; 400 3 held 13 800",
                "",
            ),
            ("10 1 held 4 400 mode=read; 399 2 held 9 800", "C1"),
            ("10 1 held 5 400; 399 2 held 8 800 mode=read", "C1"),
            // The first to come is not the last to go.
            (
                "10 1 held 4 700 mode=read; 20 2 held 8 300 mode=read; 500 3 held 13 800",
                "C1",
            ),
        ],
    );
    let reads_on = "10 1 held 5 400; 20 1 release downgrade 390; 22 1 released ok";
    let beside = [("22 2 held 8 420 mode=read; 23 3 held 12 420 mode=read", "")];
    check("a writer reads on", reads_on, &beside);
}

#[test]
fn more_permits_than_there_are_break_c1() {
    check(
        "three permits",
        "10 1 held 4 400 mode=2; 20 2 held 8 400 mode=1",
        &[
            ("", ""),
            ("399 3 held 12 799 mode=1", "C1"),
            ("400 3 held 12 800 mode=1", ""),
            ("30 2 release; 31 3 held 12 431 mode=1", ""),
        ],
    );
    let alone = [("20 2 held 9 400", "C1")];
    check("all beside one", "10 1 held 4 400 mode=1", &alone);
}

#[test]
fn overlap_after_an_unsafe_fault_ends_with_the_next_renewal() {
    for history in [
        "10 1 held 5 400; 120 2 held 9 500; 900 2 look 1200",
        // It may be told in either order.
        "120 2 held 9 500; 121 1 held 5 500; 900 2 look 1200",
    ] {
        check_by(
            &unsafe_rules(),
            "the server forgets",
            history,
            &[
                ("250 1 look 550; 100 fault flushall 101 all", ""),
                ("600 1 look 900; 100 fault flushall 101 all", "C1"),
                ("250 1 look 550", "C1"),
            ],
        );
    }
}

#[test]
fn tokens_that_repeat_or_decrease_break_c3() {
    check(
        "one after the other",
        "10 1 held 5 400; 20 1 release",
        &[
            ("30 2 held 5 400", "C3"),
            ("30 2 held 3 400", "C3"),
            // It isn't valid when it comes.
            ("30 2 held 3 0", ""),
            ("30 2 held 8 400 mode=read", ""),
            ("30 2 held 4 400 mode=read", "C3"),
            ("30 2 held 5 400 mode=read", "C3"),
        ],
    );
    check(
        "a writer behind readers",
        "10 1 held 12 100 mode=read; 20 2 held 8 100 mode=read",
        &[
            ("200 3 held 13 400", ""),
            // Not only behind the one just before.
            ("200 3 held 9 400", "C3"),
        ],
    );
    check_by(
        &unsafe_rules(),
        "a server that forgets excuses it no longer than a holder may believe in its lease",
        "100 fault flushall 101 all; 10 1 held 5 400; 300 1 release",
        &[("700 2 held 9 900", ""), ("700 2 held 3 900", "C3")],
    );
}

#[test]
fn command_that_lives_while_another_has_its_lock_breaks_c10() {
    check(
        "a command that writes from 10 to 400",
        "10 7 held 5 10 process=program; 400 7 look 400 process=program",
        &[
            ("401 2 held 9 800", ""),
            ("200 2 held 9 800 name=b", ""),
            // They had it before, and one still has it.
            ("1 3 held 1 300; 5 3 release", ""),
            ("5 2 held 1 800", "C1"),
            ("5 2 held 9 800", "C10"),
            ("399 2 held 9 800", "C10"),
            // No fault excuses it.
            ("399 2 held 9 800; 20 fault stop_program 700 program", "C10"),
            ("399 2 held 9 800; 20 fault stop_server 700 all", "C10"),
        ],
    );
    check(
        "a command that writes until 410",
        "10 7 held 5 10 process=program; 410 7 look 410 process=program; 399 2 held 9 800",
        &[
            ("350 late 380 program waited", ""),
            ("350 late 360 driver tried", ""),
            ("350 late 360 program waited", "C10"),
            // Before it was to be killed; another process; after it was dead.
            ("150 late 290 program waited", "C10"),
            ("300 late 400 3 waited", "C10"),
            ("410 late 500 program waited", "C10"),
        ],
    );
    check(
        "a command whose lock is broken",
        "10 7 held 5 10 process=program; 100 fault break 103 all; 102 broke 5 7 100; \
         103 2 held 4009 400; 390 2 release",
        &[
            ("400 7 look 400 process=program", ""),
            ("480 7 look 480 process=program", "C4 C10"),
        ],
    );
}
