//! A look at a lock: who has it, who waits for it; and the list of names in use.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, Holder, Inspection, LockState, Locker, Party, Result, Wants};

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

pub(crate) fn free_lock_is_seen_as_free(place: &Place) {
    let seen = place.inspect("a").unwrap();
    assert_free(&seen);
    assert_eq!(seen.name, "a");
    assert!(seen.waiters.is_empty(), "{seen:?}");
    drop(place.lock("a").unwrap());
    assert_free(&place.inspect("a").unwrap());
}

pub(crate) fn holder_is_seen(place: &Place) {
    let begun = Instant::now();
    let guard = place.lock("a").unwrap();
    let other = place.other();
    for lock in [place as &Locker, &other] {
        let seen = lock.inspect("a").unwrap();
        assert_eq!(seen.state, LockState::Exclusive);
        let [holder] = &seen.holders[..] else {
            panic!("{seen:?}")
        };
        assert_here(holder.party.as_ref(), None);
        assert_discreet(&format!("{seen:?}"));
        assert_eq!(holder.permits, 1);
        assert_eq!(holder.token, Some(guard.fencing_token()));
        // The engine's clock and ours needn't tick alike.
        let held_for = holder.held_for.expect("each engine knows it");
        assert!(
            held_for < begun.elapsed() + Duration::from_secs(1),
            "{held_for:?}"
        );
        let leases_end = guard.remaining() < Duration::MAX;
        assert_eq!(holder.remaining.is_some(), leases_end, "{seen:?}");
        assert!(holder.remaining.is_none_or(|left| !left.is_zero()));
        assert!(seen.last_token >= Some(guard.fencing_token()));
        assert!(seen.waiters.is_empty(), "{seen:?}");
    }
}

pub(crate) fn label_is_seen(place: &Place) {
    for label in ["deploy 4711", "a/b/c", "Ü\u{1F980} \"'%", &"x".repeat(128)] {
        let lock = place.builder().label(label).build().unwrap();
        let _guard = lock.lock("a").unwrap();
        let seen = place.inspect("a").unwrap();
        assert_here(seen.holders[0].party.as_ref(), Some(label));
    }
}

pub(crate) fn look_takes_nothing(place: &Place) {
    let (is_over, other) = (AtomicBool::new(false), place.other());
    thread::scope(|scope| {
        for lock in [place as &Locker, &other] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    lock.inspect("a").unwrap();
                }
            });
        }
        let taken: Vec<_> = (0..100).map(|_| place.try_lock("a").unwrap()).collect();
        let taken: Vec<_> = taken.iter().map(Option::is_some).collect();
        is_over.store(true, SeqCst);
        // The first has it: the others find that.
        assert!(taken[0] && taken[1..].iter().all(|one| !one));
    });
    let (is_over, mut refused) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                other.inspect("b").unwrap();
            }
        });
        for _ in 0..100 {
            refused += usize::from(place.try_lock("b").unwrap().is_none());
        }
        is_over.store(true, SeqCst);
    });
    assert_eq!(refused, 0, "a look kept the lock from a caller");
}

pub(crate) fn tokens_go_on_from_the_last_that_is_seen(place: &Place) {
    let token = place.lock("a").unwrap().fencing_token();
    let last = place.inspect("a").unwrap().last_token;
    let last = last.expect("it was locked");
    assert!(token <= last);
    assert!(place.lock("a").unwrap().fencing_token() > last);
}

pub(crate) fn lease_that_ran_out_is_not_seen(place: &Place) {
    let guard = place.careless().lock("a").unwrap();
    let seen = place.inspect("a").unwrap();
    // A busy machine looks too late.
    assert!(seen.state == LockState::Exclusive || !guard.is_held());
    std::mem::forget(guard);
    assert_free(&look_until(place, "a", |seen| seen.holders.is_empty()));
    assert!(place.lock("a").unwrap().was_abandoned());
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

pub(crate) fn each_of_several_names_is_seen_and_listed(place: &Place) {
    let guard = place.lock_all(&["a", "b"]).unwrap();
    for name in ["a", "b"] {
        let seen = place.inspect(name).unwrap();
        assert_eq!(seen.state, LockState::Exclusive);
        let [holder] = &seen.holders[..] else {
            panic!("{seen:?}")
        };
        assert_here(holder.party.as_ref(), None);
        assert!(
            holder
                .token
                .is_none_or(|token| token <= guard.fencing_token())
        );
    }
    assert_free(&place.inspect("c").unwrap());
    assert_eq!(listed(place, ""), ["a", "b"]);
    guard.unlock().unwrap();
    assert_eq!(listed(place, ""), [""; 0]);
}

pub(crate) fn names_and_namespaces_are_told_apart(place: &Place) {
    let _guard = place.lock("a").unwrap();
    let other = place.with_namespace("other").unwrap();
    assert_free(&other.inspect("a").unwrap());
    for name in ["A", "a ", "a/", "{a}"] {
        assert_free(&place.inspect(name).unwrap());
    }
    for name in ["", &"x".repeat(513)] {
        let seen = place.inspect(name);
        assert!(matches!(seen, Err(Error::InvalidName { .. })), "{seen:?}");
    }
}

pub(crate) fn readers_are_seen(place: &Place) {
    let other = place.builder().label("other").build().unwrap();
    let guards = [place.read("a").unwrap(), other.read("a").unwrap()];
    let seen = place.inspect("a").unwrap();
    assert_eq!(seen.state, LockState::Shared);
    let mut labels: Vec<_> = seen.holders.iter().map(label_of).collect();
    labels.sort();
    assert_eq!(labels, ["", "other"]);
    for holder in &seen.holders {
        let mut tokens = guards.iter().map(|guard| Some(guard.fencing_token()));
        assert!(holder.token.is_none() || tokens.any(|token| token == holder.token));
        let leases_end = guards[0].remaining() < Duration::MAX;
        assert_eq!(holder.remaining.is_some(), leases_end, "{seen:?}");
        assert_eq!(holder.permits, 1);
    }
}

fn label_of(holder: &Holder) -> String {
    let party = holder.party.as_ref().expect("it is a crosslock program");
    party.label.clone().unwrap_or_default()
}

pub(crate) fn permits_are_seen(place: &Place) {
    let semaphore = place.semaphore("a", 5).unwrap();
    let _one = semaphore.acquire().unwrap();
    let two = semaphore.acquire_many(2).unwrap();
    let seen = place.inspect("a").unwrap();
    let LockState::Permits { taken: 3, of, .. } = seen.state else {
        panic!("{seen:?}")
    };
    assert!(of.is_none_or(|of| of == 5), "{seen:?}");
    let mut permits: Vec<_> = seen.holders.iter().map(|one| one.permits).collect();
    permits.sort_unstable();
    assert_eq!(permits, [1, 2]);
    drop(two);
    let seen = place.inspect("a").unwrap();
    support::assert_like!(seen.state, LockState::Permits { taken: 1, .. }, "{seen:?}");
}

/// What a thread that waits is called, and how it takes the lock.
type Way<'a> = (&'a str, fn(&Locker));

/// Has a thread wait in each of these ways, one after the other, each as another process would, and gives what is seen.
fn seen_with_waiters(place: &Place, ways: &[Way<'_>]) -> Inspection {
    let guard = place.lock("a").unwrap();
    thread::scope(|scope| {
        for (at, (label, wait)) in ways.iter().enumerate() {
            let lock = place.builder().label(label).build().unwrap();
            scope.spawn(move || wait(&lock));
            look_until(place, "a", |seen| seen.waiters.len() == at + 1);
        }
        let seen = place.inspect("a").unwrap();
        drop(guard);
        seen
    })
}

pub(crate) fn waiters_are_seen_in_their_order(place: &Place) {
    fn lock(lock: &Locker) {
        drop(lock.lock("a").unwrap());
    }
    let begun = Instant::now();
    let ways = ["first", "second", "third"].map(|label| (label, lock as fn(&Locker)));
    let seen = seen_with_waiters(place, &ways);
    assert_eq!(seen.state, LockState::Exclusive);
    for (waiter, (label, _)) in seen.waiters.iter().zip(ways) {
        assert_here(waiter.party.as_ref(), Some(label));
        assert_eq!(waiter.wants, Wants::Exclusive);
        let most = begun.elapsed() + Duration::from_secs(1);
        assert!(waiter.waited_for.is_none_or(|waited| waited <= most));
    }
    look_until(place, "a", |seen| seen.waiters.is_empty());
}

pub(crate) fn what_waiters_want_is_seen(place: &Place) {
    fn read(lock: &Locker) {
        drop(lock.read("a").unwrap());
    }
    fn permits(lock: &Locker) {
        let semaphore = lock.semaphore("a", 3).unwrap();
        drop(semaphore.acquire_many(2).unwrap());
    }
    let seen = seen_with_waiters(place, &[("reads", read), ("permits", permits)]);
    for waiter in &seen.waiters {
        let party = waiter.party.as_ref().unwrap();
        let is_right = match (party.label.as_deref(), waiter.wants) {
            (Some("reads"), wants) => wants == Wants::Shared,
            (_, wants) => matches!(wants, Wants::Permits { count: 2, .. }),
        };
        assert!(is_right, "{seen:?}");
    }
}

pub(crate) fn waiter_that_gave_up_is_not_seen(place: &Place) {
    let _guard = place.lock("a").unwrap();
    thread::scope(|scope| {
        let other = place.other();
        let waits = scope.spawn(move || other.try_lock_for("a", Duration::from_millis(300)));
        assert!(waits.join().unwrap().unwrap().is_none());
    });
    // On a machine that was late a thread of its locker takes it out of the queue, a moment later.
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
    assert_eq!(listed(place, ""), [""; 0]);
    let guards = ["b", "a-1", "a-2"].map(|name| place.lock(name).unwrap());
    let other = place.other();
    for lock in [place as &Locker, &other] {
        assert_eq!(listed(lock, ""), ["a-1", "a-2", "b"]);
        assert_eq!(listed(lock, "a-"), ["a-1", "a-2"]);
        assert_eq!(listed(lock, "a-2"), ["a-2"]);
        assert_eq!(listed(lock, "a-22"), [""; 0]);
    }
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

pub(crate) fn namespaces_are_listed_apart(place: &Place) {
    let [own, longer] = ["list", "list-more"].map(|one| place.with_namespace(one).unwrap());
    let _guards = [own.lock("a").unwrap(), longer.lock("b").unwrap()];
    assert_eq!(listed(&own, ""), ["a"]);
    assert_eq!(listed(&longer, ""), ["b"]);
    assert_eq!(listed(place, ""), [""; 0]);
}

pub(crate) fn each_of_many_names_is_listed_once(place: &Place) {
    let mut names: Vec<_> = (0..300).map(|number| format!("many-{number}")).collect();
    let _guards: Vec<_> = names.iter().map(|name| place.lock(name).unwrap()).collect();
    names.sort();
    assert_eq!(listed(place, "many-"), names);
}
