//! What differs where masters are replaced, in etcd and ZooKeeper, and in a directory.

use super::*;

#[test]
fn failover_excuses_a_second_holder_only_where_replicas_may_lack_a_lease() {
    let two = "10 1 held 5 400; 100 2 held 9 480; 50 fault fail_over 90 all";
    check("they have each", two, &[("", "C1")]);
    // For a ttl, one timeout, and what a busy machine takes.
    let cases = [("699 1 look 799", ""), ("701 1 look 801", "C1")];
    check_by(&unsafe_rules(), "they may lack one", two, &cases);
    let smaller = "10 1 held 9 40; 100 2 held 5 480; 50 fault fail_over 90 all";
    check("a token is smaller", smaller, &[("", "C3")]);
}

#[test]
fn looks_at_two_servers_are_not_compared() {
    check(
        "a key is gone",
        "10 1 held 5 400; 15 key x 5 410; 130 key - 5 0",
        &[
            ("50 fault fail_over 90 all", ""),
            ("50 fault slots_moved 90 all", ""),
            ("50 fault stop_server 90 all", "C6"),
        ],
    );
}

#[test]
fn one_that_is_late_while_replicas_are_waited_for_costs_an_attempt() {
    let history = "10 1 held 5 400; 20 1 release commit 400; 180 1 released unavailable";
    let replicated = Rules {
        replica_timeout: Some(Duration::from_millis(75)),
        ..rules()
    };
    let cases = [
        ("100 late 140 1 waited", ""),
        ("100 late 135 1 waited", "C8"),
    ];
    check_by(&replicated, "a value isn't stored again", history, &cases);
    let late = [("100 late 140 1 waited", "C8")];
    check("it is stored again", history, &late);
}

/// The first token of revision 5 is 20481; 4096 later is that of the next.
#[test]
fn holder_in_a_line_is_not_replaced_while_it_believes() {
    check(
        "it was never released",
        "10 1 held 20481 400; 15 key u1/host/1/7 20481 0; 9000 run etcd",
        &[
            ("390 key u2/host/2/7 24577 0", "C6"),
            ("410 key u2/host/2/7 24577 0", ""),
            ("20 1 release; 30 key u2/host/2/7 24577 0", ""),
        ],
    );
    check(
        "it was handed over",
        "10 1 held 20481 400; 20 1 release; 22 11 held 20482 420 detail=handed_over; \
         15 key u1/host/1/7 20481 0; 50 key u2/host/2/7 24577 0; 9000 run etcd",
        &[("", "C6"), ("40 11 release - 420", "")],
    );
    // An adopted lease has another owner. The second adoption wasn't asked for yet.
    check(
        "its own process adopts it",
        "10 1 held 20481 400; 15 key u1/host/1/7 20481 0; 20 1 release pass 400; \
         31 key u2/host/2/7 20481 0; 9000 run zookeeper",
        &[
            ("25 11 adopts 1; 32 11 held 20485 430", ""),
            ("35 11 adopts 1", "C6"),
        ],
    );
}

#[test]
fn broken_lease_is_known_by_its_revision() {
    check(
        "somebody believes in it",
        "120 2 held 28673 520; 200 1 look 500; 100 fault break 110 all name=a; \
         110 broke 20481 1 100; 9000 run etcd",
        &[
            ("10 1 held 20481 400", ""),
            // Passed on in its process since.
            ("10 1 held 20993 400", ""),
            ("10 1 held 24577 400", "C1"),
        ],
    );
}

#[test]
fn lease_of_the_dead_in_a_line_ends_when_its_server_looks() {
    check(
        "a waiter is dead",
        "50 2 ask lock; 10 1 held 20481 400; 200 1 release; 201 1 released ok; \
         600 2 held 36865 900; 100 fault kill_waiter 101 3",
        &[("", "C7"), ("9000 run zookeeper", "")],
    );
    check(
        "a holder is dead",
        "50 2 ask lock; 10 1 held 20481 400; 100 fault kill_holder 101 1",
        &[
            ("1300 2 held 36865 1600; 9000 run etcd", ""),
            ("1450 2 held 36865 1750; 9000 run etcd", "C7"),
            ("950 2 held 36865 1250; 9000 run zookeeper", ""),
            ("1050 2 held 36865 1350; 9000 run zookeeper", "C7"),
        ],
    );
}

#[test]
fn nobody_is_let_in_while_most_members_are_down() {
    check(
        "somebody gets a lock",
        "100 down 300; 9000 run etcd",
        &[
            ("110 1 ask lock; 200 1 held 20481 900", "C6"),
            // Its answer was on the way, or they were up again, or it was handed over.
            ("90 1 ask lock; 200 1 held 20481 900", ""),
            ("110 1 ask lock; 310 1 held 20481 900", ""),
            (
                "110 1 ask lock; 200 1 held 20481 900 detail=handed_over",
                "",
            ),
        ],
    );
}

#[test]
fn attempt_fails_with_a_connection_that_was_slow_before() {
    check(
        "an attempt fails",
        "1150 1 ask try; 1153 1 answer unavailable",
        &[
            ("1000 late 1080 1 waited; 9000 run zookeeper", ""),
            ("1000 late 1070 1 waited; 9000 run zookeeper", "C8"),
            ("1000 late 1080 1 waited; 9000 run etcd", "C8"),
        ],
    );
}

#[test]
fn lease_in_a_directory_lasts_until_its_process_ends() {
    check(
        "another has it",
        "10 1 held 1 ever; 5000 2 held 5 ever; 9000 run file",
        &[
            ("", "C1"),
            ("4990 fault kill_holder 4991 1", ""),
            ("5010 fault kill_holder 5011 1", "C1"),
        ],
    );
    check(
        "a child has copies of its files",
        "10 1 held 1 ever; 390 kept 1 29; 30 fault kill_but_for_a_child 400 1; 9000 run file",
        &[("395 2 held 5 ever", ""), ("300 2 held 5 ever", "C1")],
    );
    check(
        "it is passed on, and lasts for a ttl",
        "10 1 held 1 ever; 20 1 release pass ever; 21 1 released passed; 9000 run file",
        &[("430 2 held 5 ever", ""), ("400 2 held 5 ever", "C1")],
    );
    check(
        "the file names another",
        "10 1 held 1 ever; 15 key u1/host/1/7 1 ever; 600 key u2/host/2/7 5 ever; 9000 run file",
        &[
            ("", "C6"),
            ("500 fault kill_holder 501 1", ""),
            ("500 1 release", ""),
        ],
    );
    check(
        "another waits for it",
        "10 1 held 1 ever; 20 2 ask lock; 30 fault kill_holder 31 1; 9000 run file",
        &[("300 2 held 5 ever", ""), ("500 2 held 5 ever", "C7")],
    );
}

#[test]
fn pause_in_a_directory_loses_and_abandons_nothing() {
    check(
        "a lease is lost",
        "10 1 held 1 ever; 900 1 lost not_the_owner; 9000 run file",
        &[
            ("20 fault stop_holder_past_ttl 890 1", "C4"),
            ("20 fault open_files_exhausted 890 1", "C4"),
        ],
    );
    check(
        "a lock is found abandoned",
        "40 2 held 3 ever detail=abandoned; 9000 run file",
        &[
            ("20 fault stop_holder 30 3", "C4"),
            ("20 fault kill_holder 30 3", ""),
        ],
    );
    // One that is stopped may have the file of the name locked.
    check(
        "a call fails",
        "30 2 ask try; 50 2 answer unavailable; 9000 run file",
        &[
            ("20 fault stop_waiter 40 1", ""),
            ("20 fault kill_waiter 40 1", "C8"),
            ("20 fault open_files_exhausted 40 1", "C8"),
        ],
    );
}
