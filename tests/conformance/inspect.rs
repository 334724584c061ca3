//! A look at a lock: who has it, who waits for it; and the list of names in use.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Inspection, LockGuard, LockState, Locker, Party, Result, Wants};

use crate::texts::assert_discreet;
use crate::{PATIENCE, Place};
use support::eventually;

/// Looks until it sees what is expected: an operator's look may come before that.
#[track_caller]
pub(crate) fn look_until(
    lock: &Locker,
    name: &str,
    is_there: impl Fn(&Inspection) -> bool,
) -> Inspection {
    let mut seen = None;
    let is_seen = eventually(PATIENCE, || {
        is_there(seen.insert(lock.inspect(name).unwrap()))
    });
    assert!(is_seen, "in the end {seen:?}");
    seen.expect("it has looked")
}

#[track_caller]
fn assert_free(seen: &Inspection) {
    assert_eq!(seen.state, LockState::Free, "{seen:?}");
    assert!(seen.holders.is_empty(), "{seen:?}");
}

#[track_caller]
pub(crate) fn assert_here(party: Option<&Party>, label: Option<&str>) {
    let party = party.expect("it is a crosslock program");
    assert_eq!(party.pid, std::process::id());
    assert!(!party.host.is_empty() && party.thread > 0, "{party:?}");
    assert_eq!(party.label.as_deref(), label);
}

pub(crate) fn holder_is_seen(place: &Place) {
    let seen = place.inspect("a").unwrap();
    assert_free(&seen);
    assert!(seen.name == "a" && seen.waiters.is_empty(), "{seen:?}");
    let begun = Instant::now();
    for label in ["deploy 4711", "a/b/c", "Ü\u{1F980} \"'%", &"x".repeat(128)] {
        let lock = place.builder().label(label).build().unwrap();
        let guard = lock.lock("a").unwrap();
        let seen = place.inspect("a").unwrap();
        assert_eq!(seen.state, LockState::Exclusive);
        assert_discreet(&format!("{seen:?}"));
        let holder = &seen.holders[0];
        assert_here(holder.party.as_ref(), Some(label));
        assert_eq!((seen.holders.len(), holder.permits), (1, 1));
        assert_eq!(holder.token, Some(guard.fencing_token()));
        // The engine's clock and ours needn't tick alike.
        let held_for = holder.held_for.expect("each engine knows it");
        assert!(held_for < begun.elapsed() + Duration::from_secs(1));
        let leases_end = guard.remaining() < Duration::MAX;
        assert_eq!(holder.remaining.is_some(), leases_end, "{seen:?}");
        assert!(holder.remaining.is_none_or(|left| !left.is_zero()));
        assert!(seen.last_token >= Some(guard.fencing_token()));
        assert_free(&place.inspect("b").unwrap());
        let other = place.with_namespace("other").unwrap();
        assert_free(&other.inspect("a").unwrap());
    }
    assert_free(&place.inspect("a").unwrap());
}

pub(crate) fn kept_lock_is_seen_as_kept_and_listed(place: &Place) {
    let guard = place.lock("a").unwrap();
    guard.at_least_for(Duration::from_secs(60));
    assert_eq!(place.inspect("a").unwrap().state, LockState::Exclusive);
    guard.unlock().unwrap();
    let seen = place.inspect("a").unwrap();
    assert_eq!(listed(place, ""), ["a"]);
    let LockState::Kept { remaining, .. } = seen.state else {
        panic!("{seen:?}")
    };
    // Engines round up to their clock's ticks.
    assert!(remaining.is_none_or(|left| left <= Duration::from_secs(61)));
    assert!(seen.holders.is_empty(), "{seen:?}");
}

pub(crate) fn all_holders_are_seen_and_listed(place: &Place) {
    let semaphore = place.semaphore("permits", 5).unwrap();
    let _guards = [
        place.lock_all(&["one", "other"]).unwrap(),
        place.read("readers").unwrap(),
        place.other().read("readers").unwrap(),
        semaphore.acquire().unwrap(),
        semaphore.acquire_many(2).unwrap(),
    ];
    for (name, permits) in [
        ("one", &[1][..]),
        ("other", &[1]),
        ("readers", &[1, 1]),
        ("permits", &[1, 2]),
    ] {
        let seen = place.inspect(name).unwrap();
        let is_right = match seen.state {
            LockState::Exclusive => permits == [1],
            LockState::Shared => name == "readers",
            LockState::Permits { taken, of, .. } => taken == 3 && of.is_none_or(|of| of == 5),
            _ => false,
        };
        assert!(is_right, "{seen:?}");
        for holder in &seen.holders {
            assert_here(holder.party.as_ref(), None);
        }
        let mut held: Vec<_> = seen.holders.iter().map(|one| one.permits).collect();
        held.sort_unstable();
        assert_eq!(held, permits, "{name}");
    }
    assert_eq!(listed(place, ""), ["one", "other", "permits", "readers"]);
}

pub(crate) fn waiters_are_seen_in_their_order_with_what_they_want(place: &Place) {
    type Wait = fn(&Locker) -> Result<LockGuard>;
    let ways: [(&str, Wait); 3] = [
        ("locks", |lock| lock.lock("a")),
        ("takes two permits", |lock| {
            lock.semaphore("a", 3)?.acquire_many(2)
        }),
        ("reads", |lock| lock.read("a")),
    ];
    let begun = Instant::now();
    let guard = place.lock("a").unwrap();
    let seen = thread::scope(|scope| {
        for (at, (label, wait)) in ways.iter().enumerate() {
            let lock = place.builder().label(label).build().unwrap();
            scope.spawn(move || drop(wait(&lock).unwrap()));
            look_until(place, "a", |seen| seen.waiters.len() == at + 1);
        }
        let seen = place.inspect("a").unwrap();
        drop(guard);
        seen
    });
    let mut order = Vec::new();
    for waiter in &seen.waiters {
        let label = waiter.party.as_ref().unwrap().label.clone().unwrap();
        assert_here(waiter.party.as_ref(), Some(&label));
        let is_right = match waiter.wants {
            Wants::Exclusive => label == "locks",
            Wants::Shared => label == "reads",
            Wants::Permits { count, .. } => count == 2 && label.contains("two"),
            _ => false,
        };
        assert!(is_right, "{seen:?}");
        let most = begun.elapsed() + Duration::from_secs(1);
        assert!(waiter.waited_for.is_none_or(|waited| waited <= most));
        // Readers may stand in a line of their own.
        order.extend((label != "reads").then_some(label));
    }
    assert_eq!(order, ["locks", "takes two permits"]);
    look_until(place, "a", |seen| seen.waiters.is_empty());
}

/// Sorted: they come in no order.
#[track_caller]
pub(crate) fn listed(lock: &Locker, prefix: &str) -> Vec<String> {
    let names: Result<Vec<_>> = lock.list(prefix).unwrap().collect();
    let mut names = names.unwrap();
    names.sort();
    names
}

pub(crate) fn names_in_use_are_listed(place: &Place) {
    let guards = ["b", "a-1", "a-2"].map(|name| place.lock(name).unwrap());
    let [own, longer] = ["list", "list-more"].map(|one| place.with_namespace(one).unwrap());
    let _guards = [own.lock("a").unwrap(), longer.lock("b").unwrap()];
    assert_eq!(
        (listed(&own, ""), listed(&longer, "")),
        (vec!["a".into()], vec!["b".into()])
    );
    assert_eq!(listed(place, ""), ["a-1", "a-2", "b"]);
    assert_eq!(listed(place, "a-"), ["a-1", "a-2"]);
    assert_eq!(listed(place, "a-22"), [""; 0]);
    drop(guards);
    assert_eq!(listed(place, ""), [""; 0]);
}

pub(crate) fn prefix_has_no_special_characters(place: &Place) {
    const ODD: [&str; 12] = [
        "*", "?", "[", "[a-z]", "\\", "{", "}", "{x}", "/", "..", "\n", "Ü%41",
    ];
    let names = ODD
        .iter()
        .flat_map(|odd| [format!("{odd}1"), odd.repeat(2)]);
    let names: Vec<_> = names.chain(["abc".into(), "a*c".into()]).collect();
    let _guards: Vec<_> = names.iter().map(|name| place.lock(name).unwrap()).collect();
    for prefix in ODD.iter().chain(&["a", "a*", "ab", "a?c", ""]) {
        let mut expected: Vec<_> = names.iter().filter(|one| one.starts_with(prefix)).collect();
        expected.sort();
        assert_eq!(listed(place, prefix).iter().collect::<Vec<_>>(), expected);
    }
}

pub(crate) fn each_of_many_names_is_listed_once(place: &Place) {
    let mut names: Vec<_> = (0..300).map(|number| format!("many-{number}")).collect();
    let _guards: Vec<_> = names.iter().map(|name| place.lock(name).unwrap()).collect();
    names.sort();
    assert_eq!(listed(place, "many-"), names);
}
