//! What a process that ran late is excused of, and what not.

use super::*;

/// From when to when.
type Span = (u64, u64);

/// What took too long, or failed for want of time; the rule that it breaks, and the history. Who explains it by having
/// been late, and when; another time that explains nothing. Whether the driver and the server explain it as well.
type Delay = (
    &'static str,
    &'static str,
    &'static str,
    u32,
    Span,
    Span,
    bool,
);

#[rustfmt::skip]
const DELAYS: [Delay; 16] = [
    ("a timed call is late", "C7", "10 1 ask timed 50; 400 1 answer none", 1, (20, 390), (400, 800), false),
    ("a release is late", "C7", "10 1 held 5 900; 20 1 release; 700 1 released ok", 1, (30, 330), (700, 900), false),
    ("nobody comes", "C7", "10 1 ask lock; 16000 1 held 5 16300", 1, (20, 2_000), (16_001, 18_000), true),
    ("a dead holder's lock is free late", "C7",
        "50 2 ask lock; 10 1 held 5 400; 100 fault kill_holder 101 1; 900 2 held 9 1200",
        2, (660, 890), (901, 1_200), true),
    ("a lock is handed on late", "C7",
        "50 2 ask lock; 10 1 held 5 400; 300 1 release; 301 1 released ok; 500 2 held 9 1000",
        2, (310, 450), (10, 290), true),
    ("an outage ends late", "C7", "100 fault stop_server 200 all; 900 1 held 5 1200", 1, (250, 500), (10, 190), true),
    ("a lease is lost", "C4", "10 1 held 5 400; 410 1 lost expired", 1, (60, 200), (411, 700), true),
    // Most of its time was over when its holder heard of it.
    ("a lease is heard of late", "C4", "310 1 held 5 400; 410 1 lost expired", 1, (60, 200), (411, 700), true),
    ("a lock is abandoned", "C4", "2500 2 ask lock; 3000 1 held 5 3400 detail=abandoned",
        2, (2_500, 2_700), (500, 900), true),
    ("an adoption fails", "C8", "100 1 ask adopt; 425 1 answer unavailable", 1, (200, 275), (426, 900), true),
    ("an attempt fails", "C8", "100 1 ask try; 300 1 answer unavailable", 1, (150, 200), (301, 400), true),
    ("a timed call fails", "C8", "100 1 ask timed 400; 500 1 answer unavailable", 1, (480, 495), (200, 250), true),
    ("a patient call fails", "C8", "100 1 ask lock; 1300 1 answer unavailable", 1, (400, 700), (50, 300), true),
    ("a release fails", "C8", "10 1 held 5 900; 20 1 release unlock 900; 500 1 released unavailable",
        1, (100, 300), (501, 800), true),
    // It ends with its lease.
    ("a short release fails", "C8", "10 1 held 5 400; 300 1 release unlock 400; 400 1 released unavailable",
        1, (310, 340), (200, 290), true),
    ("a line changes", "C6", "1101 line u/host/1/1 v/host/2/2; 1112 line v/host/2/2 u/host/1/1",
        1, (500, 620), (10, 200), true),
];

#[test]
fn delay_is_excused_by_who_was_late_then() {
    for (what, rule, history, process, when, elsewhen, passes_through) in DELAYS {
        let judged = |process: u32, (from, until): Span| {
            broken(
                &format!("{history}; {from} late {until} {process}"),
                &rules(),
            )
        };
        assert_eq!(broken(history, &rules()), rule, "{what}");
        assert_eq!(judged(process, when), "", "{what}");
        assert_eq!(judged(process, elsewhen), rule, "{what} at another time");
        assert_eq!(judged(3, when), rule, "{what} beside another");
        let on_the_way = if passes_through { "" } else { rule };
        for other in [DRIVER, SERVER] {
            assert_eq!(judged(other, when), on_the_way, "{what} beside {other}");
        }
        // Any lateness just before its end explains that a timed call has no answer.
        if what != "a timed call fails" {
            let short = (when.0, when.0 + 5);
            assert_eq!(judged(process, short), rule, "{what} for longer");
        }
    }
}

#[test]
fn lateness_excuses_no_more_than_it_explains() {
    check(
        "a timed call is late by 190 ms",
        "10 1 ask timed 50; 400 1 answer none",
        &[
            // What a process knows itself counts once, what others saw four times.
            ("20 late 220 1 waited", ""),
            ("20 late 200 1 waited", "C7"),
            // At the same time it counts once; a stop is known, though its threads saw it, too.
            ("20 late 60 1; 25 late 60 1", "C7"),
            ("20 fault stop_waiter 220 1; 20 late 220 1", ""),
            ("20 fault stop_waiter 200 1; 20 late 200 1", "C7"),
        ],
    );
}

#[test]
fn whatever_is_unsafe_is_found_although_all_were_late() {
    let all = ["0", "1", "2", "3", "driver", "server"];
    let late = all.map(|process| format!("1 late 4000 {process}"));
    for (history, rule) in [
        ("10 1 held 5 400; 399 2 held 9 800", "C1"),
        ("10 1 held 5 400 mode=read; 300 2 held 9 800", "C1"),
        (
            "10 1 register 5 write accepted 1; 20 2 register 9 write accepted 1",
            "C2",
        ),
        // Both find the same number.
        ("100 1 has 0 commit ok; 200 2 has 0 commit ok", "C2"),
        ("10 1 held 5 400; 20 1 release; 30 2 held 3 400", "C3"),
        ("1 bare; 2 left", "C5"),
        ("10 1 held 5 400; 15 key x 5 410; 30 key y 9 430", "C6"),
        // The first in line is dead.
        (
            "190 key x 5 500; 200 line u/host/7/1 v/host/2/2; 600 key y 9 900; \
             600 line u/host/7/1 v/host/2/2; 100 fault kill_waiter 101 7",
            "C6",
        ),
    ] {
        let history = format!("{history}; {}", late.join(";"));
        assert_eq!(broken(&history, &rules()), rule, "{history}");
    }
}
