//! What a failover excuses, and slots that move.

use super::server::key;
use super::*;

const FAILOVERS: [&str; 4] = [
    "fail over",
    "master killed",
    "master stopped past failover",
    "master cut off",
];

#[test]
fn failover_excuses_no_second_holder_where_replicas_have_each_lease() {
    for kind in FAILOVERS {
        let holders = [taken(10, 1, 5, 400), taken(100, 2, 9, 480)];
        let history = holders.into_iter().chain(fault(50, 90, kind, ALL));
        assert_eq!(broken(history, &rules()), ["C1"], "{kind}");
    }
}

#[test]
fn failover_elsewhere_excuses_one_for_a_ttl() {
    let history = |seen| {
        let holders = [taken(10, 1, 5, 400), taken(100, 2, 9, 480)];
        let look = with(event(seen, "look", 1), "", "", seen + 100);
        let all = holders.into_iter().chain([look]);
        broken(all.chain(fault(50, 90, "fail over", ALL)), &unsafe_rules())
    };
    // One timeout more, and what a busy machine takes.
    assert_eq!(history(100 + 400 + 150 + 49), [""; 0]);
    assert_eq!(history(100 + 400 + 150 + 51), ["C1"]);
}

#[test]
fn failover_excuses_no_smaller_token() {
    let history = [taken(10, 1, 9, 40), taken(100, 2, 5, 480)];
    let history = history
        .into_iter()
        .chain(fault(50, 90, "master killed", ALL));
    assert_eq!(broken(history, &rules()), ["C3"]);
}

#[test]
fn looks_at_two_servers_are_not_compared() {
    let history = |kind| {
        let keys = [key(15, "x", 5, 410), key(130, "", 5, 0)];
        let all = [taken(10, 1, 5, 400)].into_iter().chain(keys);
        broken(all.chain(fault(50, 90, kind, ALL)), &rules())
    };
    for kind in FAILOVERS.into_iter().chain(["slots moved"]) {
        assert_eq!(history(kind), [""; 0], "{kind}");
    }
    assert_eq!(history("stop server"), ["C6"]);
}

#[test]
fn value_goes_back_by_a_failover_only_where_replicas_may_lack_it() {
    let release = with(event(20, "release", 1), "", "commit", 400);
    let released = with(event(21, "released", 1), "ok", "", 0);
    let value = |at, id, value| Event {
        until: value,
        ..event(at, "value", id)
    };
    let first = [taken(10, 1, 5, 400), value(11, 1, 0), release, released];
    let next = [taken(100, 2, 9, 480), value(101, 2, 0)];
    let history: Vec<_> = first.into_iter().chain(next).collect();
    let history = || {
        let fault = fault(50, 90, "fail over", ALL);
        history.clone().into_iter().chain(fault)
    };
    assert_eq!(broken(history(), &rules()), ["C2"]);
    assert_eq!(broken(history(), &unsafe_rules()), [""; 0]);
}

#[test]
fn one_that_is_late_while_replicas_are_waited_for_costs_an_attempt() {
    let history = |late: u64| {
        let release = with(event(20, "release", 1), "", "commit", 400);
        let released = with(event(180, "released", 1), "unavailable", "", 0);
        let lateness = Event {
            name: String::new(),
            ..with(event(100, "late", 1), "", "waited", 100 + late)
        };
        [taken(10, 1, 5, 400), release, released, lateness]
    };
    let replicated = Rules {
        replica_timeout: Some(Duration::from_millis(75)),
        ..rules()
    };
    assert_eq!(broken(history(40), &replicated), [""; 0]);
    assert_eq!(broken(history(35), &replicated), ["C8"]);
    assert_eq!(broken(history(40), &rules()), ["C8"]);
}

#[test]
fn service_is_back_soon_after_a_failover() {
    let history = |next, ttl| {
        let fault = fault(50, 90, "fail over", ALL);
        let ttl = Duration::from_millis(ttl);
        let all = fault.into_iter().chain([taken(next, 2, 9, 1_200)]);
        broken(all, &Rules { ttl, ..rules() })
    };
    assert_eq!(history(90 + 550, 400), [""; 0]);
    assert_eq!(history(90 + 552, 400), ["C7"]);
    // Leases from before it may last as long.
    assert_eq!(history(90 + 950, 900), [""; 0]);
    assert_eq!(history(90 + 952, 900), ["C7"]);
}
