//! What a break excuses, and what it doesn't. From 100 ms to 110 ms somebody breaks the lock, whose lease has token 5
//! and is held by process 1; 100001 is the token of another lease.

use super::*;

const BROKEN: &str = "100 fault break 110 all name=a; 110 broke 5 1 100";

/// The same where it is broken in all cases.
#[track_caller]
fn check_broken(what: &str, history: &str, cases: &[Case]) {
    check(what, &format!("{history}; {BROKEN}"), cases);
}

#[test]
fn broken_holder_may_believe_until_its_next_renewal() {
    // A third of the ttl, the answer's timeout, and 50 ms.
    let history = "10 1 held 5 400; 120 2 held 100001 520";
    let cases = [("400 1 look 700", ""), ("460 1 look 760", "C1 C4")];
    check_broken("it isn't told yet", history, &cases);
    check("it wasn't broken", history, &[("400 1 look 700", "C1")]);
    check_broken(
        "it could not hear, until its lease was over",
        "10 1 held 5 400; 90 fault black_hole 300 1; 120 2 held 100001 420; 400 2 look 700; \
         600 2 release",
        &[("500 1 look 800", ""), ("520 1 look 820", "C1 C4")],
    );
}

#[test]
fn break_excuses_nobody_whose_lease_it_did_not_end() {
    check_broken(
        "others hold it",
        "",
        &[
            // The lease after it, another's, and one of another name.
            ("120 2 held 100001 520; 130 3 held 200002 530", "C1"),
            ("10 2 held 7 400; 120 3 held 100001 520", "C1"),
            ("10 1 held 5 400 name=b; 120 2 held 100001 520 name=b", "C1"),
        ],
    );
}

#[test]
fn broken_lease_may_be_handed_over_or_on_its_way() {
    check_broken(
        "it is handed over",
        "10 1 held 5 400; 120 2 held 100001 520; 129 1 release",
        &[
            ("130 11 held 7 400", ""),
            ("300 2 look 600; 500 11 held 7 600", "C1 C3"),
        ],
    );
    let next = "120 2 held 100001 520; 125 2 release";
    let cases = [("130 1 held 5 530", ""), ("500 1 held 5 530", "C3")];
    check_broken("its grant is heard of late", next, &cases);
    check("it wasn't broken", next, &[("130 1 held 5 530", "C3")]);
}

#[test]
fn loss_by_a_break_needs_one_of_that_lease() {
    check(
        "nobody has broken it",
        "10 1 held 5 400; 200 1 lost broken",
        &[("", "C4"), ("90 fault black_hole 95 1", "C4")],
    );
    check_broken(
        "somebody has",
        "",
        &[
            ("10 1 held 5 400; 200 1 lost broken", ""),
            // One of two names; too early; and another lease.
            ("10 1 held 5 400 name=b+a; 200 1 lost broken name=b+a", ""),
            ("10 1 held 5 400; 50 1 lost broken", "C4"),
            ("10 2 held 9 400; 200 2 lost broken", "C4"),
            // It is told why, if it can hear.
            ("10 1 held 5 400; 200 1 lost expired", "C4"),
            (
                "10 1 held 5 400; 200 1 lost expired; 90 fault black_hole 300 1",
                "",
            ),
        ],
    );
    let again = "10 1 held 5 400; 200 1 lost held_again";
    let hole = [("90 fault black_hole 300 1", "C4")];
    check("what is lost is lost for good", again, &hole);
}

#[test]
fn broken_holder_whose_process_hears_is_told_at_once() {
    check_broken(
        "it believes in its lease",
        "10 1 held 5 400",
        &[
            ("220 1 look 520; 90 line u/host/1/2", ""),
            ("230 1 look 530; 90 line u/host/1/2", "C4"),
            ("300 1 look 600", ""),
            ("450 1 look 750", "C4"),
            // Another process, one that left the line, and one whose connection may be gone or that was stopped.
            ("300 1 look 600; 90 line u/host/2/2", ""),
            ("300 1 look 600; 90 line u/host/1/2; 105 line", ""),
            (
                "300 1 look 600; 90 line u/host/1/2; 60 fault client_kill_pubsub 62 all",
                "",
            ),
            (
                "300 1 look 600; 90 line u/host/1/2; 60 fault stop_holder 200 1",
                "",
            ),
        ],
    );
}

#[test]
fn lock_that_is_broken_goes_to_another() {
    let history = "10 1 held 5 400; 90 key x 5 400; 120 key y 100001 520";
    check("it goes to another", history, &[("", "C6"), (BROKEN, "")]);
    check_broken(
        "before it was broken; and another lease than the one that was",
        "",
        &[
            ("10 1 held 5 400; 20 key x 5 400; 50 key y 100001 520", "C6"),
            (
                "10 2 held 9 400; 90 key x 9 400; 120 key y 100001 520",
                "C6",
            ),
        ],
    );
}

#[test]
fn lock_that_is_broken_goes_to_the_first_in_line() {
    check_broken(
        "two wait",
        "95 key x 5 500; 95 line u/host/2/1 v/host/3/1",
        &[
            ("115 key u/host/2/1 100001 900; 115 line v/host/3/1", ""),
            ("115 key v/host/3/1 100001 900; 115 line u/host/2/1", "C6"),
            (
                "115 key v/host/3/1 100001 900; 115 line u/host/2/1; 50 fault client_kill_pubsub 60 all",
                "",
            ),
        ],
    );
    let turned = [("95 line x y z; 115 line y x z", "C6")];
    check_broken("the line keeps its order", "", &turned);
}

#[test]
fn owner_whose_lease_was_broken_does_not_have_it_again() {
    check(
        "the server names it",
        "115 key u/host/1/1 5 400",
        &[
            ("115 broken 90 90:u", "C6"),
            ("115 broken 90 90:v", ""),
            ("115 broken", ""),
        ],
    );
    check(
        "some share it",
        "115 key crosslock:readers 8 400; 115 sharers 0 u/host/1/1 -8 1 u/host/1/1 90",
        &[
            ("115 broken 90 80:v 90:u", "C6"),
            ("115 broken 90 80:v", ""),
        ],
    );
}

#[test]
fn lock_that_is_broken_is_given_on_soon() {
    check_broken(
        "another waits",
        "10 1 held 5 400; 50 2 ask lock",
        &[
            ("250 2 held 100001 650", ""),
            ("300 2 held 100001 700", "C7"),
            (
                "300 2 held 100001 700; 105 fault client_kill_pubsub 107 all",
                "",
            ),
            // Another break is no excuse.
            ("300 2 held 100001 700; 115 broke 5 1 105", "C7"),
        ],
    );
}

#[test]
fn break_abandons() {
    check_broken(
        "the next finds it abandoned",
        "",
        &[
            ("120 2 held 100001 520 detail=abandoned", ""),
            ("120 2 held 100001 520 name=b detail=abandoned", "C4"),
            // One that had both left the other, too.
            (
                "1 3 ask lock name=a+b; 120 2 held 100001 520 name=b detail=abandoned",
                "",
            ),
        ],
    );
}

#[test]
fn register_refuses_a_reader_whose_lease_was_broken() {
    check(
        "somebody writes while it reads",
        "10 1 held 8 400 mode=read; 20 1 register 8 peek accepted 0; 110 broke 8 1 100; \
         120 2 held 100001 520; 130 2 register 100001 read accepted 0; \
         140 2 register 100001 write accepted 1",
        &[
            ("150 1 register 8 leave stale 1", ""),
            ("150 1 register 8 leave accepted 1", "C2"),
        ],
    );
}
