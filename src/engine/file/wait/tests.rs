use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::tests::{Place, both, claim, deadline, files_of, request};
use super::*;
use crate::base::backoff::{Backoff, Waits};
use crate::base::claim::Claim;
use crate::base::owner::Owner;
use crate::engine::rules::EntryState;
use std::thread;

/// A waiter of the place that has asked, and whether it is told that it has the lock, before it asks again.
fn await_grant(wait: &mut FileWait, claim: &Claim, owner: &Owner) -> Option<Grant> {
    let (mut backoff, until) = (BACKOFF.waits(), deadline());
    wait.wait(request(claim, owner), &mut pace(&mut backoff, &until))
}

const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_millis(10),
    jitter: 0.0,
};

fn pace<'a>(backoff: &'a mut Waits, until: &'a Deadline) -> Pace<'a> {
    Pace {
        backoff,
        counted: false,
        until,
    }
}

fn asked(place: &Arc<Place>, claim: &Claim, owner: &Owner) -> FileWait {
    let mut wait = FileWait::new(files_of(place.directory.path()));
    let (mut backoff, until) = (BACKOFF.waits(), deadline());
    let pace = &mut pace(&mut backoff, &until);
    let answer = wait.ask(request(claim, owner), Some(pace), &until);
    assert!(matches!(answer, Ok(Answer::Taken { .. })));
    wait
}

/// A lock that was held, and released while one waited.
fn given() -> (Arc<Place>, Claim, Owner, FileWait) {
    let (place, claim, owner) = (Arc::new(Place::new()), claim(), Owner::new());
    let holder = place.has(&claim);
    let wait = asked(&place, &claim, &owner);
    place.release(&claim, &holder);
    (place, claim, owner, wait)
}

fn states(place: &Place, claim: &Claim) -> Vec<EntryState> {
    let entries = place.written(claim).name.entries;
    entries.iter().map(|entry| entry.state).collect()
}

/// Whether the next one, which asks, is told that the lock was abandoned.
fn is_abandoned(place: &Place, claim: &Claim, next: &Owner) -> bool {
    match place.ask(claim, next) {
        Answer::Granted(grant) => grant.token.abandoned,
        Answer::Taken { .. } | Answer::Broken => panic!("it isn't free"),
    }
}

#[test]
fn waiter_takes_the_lease_that_a_release_gave_it() {
    let (place, claim, owner, mut wait) = given();
    let [EntryState::Given(token)] = states(&place, &claim)[..] else {
        panic!("it wasn't given");
    };
    let grant = await_grant(&mut wait, &claim, &owner).expect("it has the lock");
    assert_eq!(grant.token, token);
    assert_eq!(states(&place, &claim), [EntryState::Has(token)]);
    // Asked again, it is the same lease.
    let until = deadline();
    let again = wait.ask(request(&claim, &owner), None, &until);
    assert!(matches!(again, Ok(Answer::Granted(again)) if again.token == token));
}

#[test]
fn waiter_that_sleeps_is_woken_for_the_lease_that_was_given_to_it() {
    let (place, claim, owner) = (Arc::new(Place::new()), claim(), Owner::new());
    let holder = place.has(&claim);
    let mut wait = asked(&place, &claim, &owner);
    let file = wait_file(&wait, &claim);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| await_grant(&mut wait, &claim, &owner));
        while file.spin_budget.in_vain() == 0 {
            thread::yield_now();
        }
        place.release(&claim, &holder);
        assert!(waiter.join().unwrap().is_some());
    });
    assert!(matches!(states(&place, &claim)[..], [EntryState::Has(_)]));
}

#[test]
fn waiter_that_dies_before_it_has_seen_its_lease_abandons_nothing() {
    let (place, claim, _, wait) = given();
    drop(wait);
    assert!(!is_abandoned(&place, &claim, &Owner::new()));
}

#[test]
fn waiter_that_dies_after_it_has_seen_its_lease_abandons_the_lock() {
    let (place, claim, owner, mut wait) = given();
    assert!(await_grant(&mut wait, &claim, &owner).is_some());
    drop(wait);
    assert!(is_abandoned(&place, &claim, &Owner::new()));
}

/// Whoever finds it gone may have read the file before.
#[test]
fn waiter_that_has_seen_its_lease_since_another_read_the_file_abandons_the_lock() {
    let (place, claim, owner, mut wait) = given();
    let when = (LockMode::Urgent, &deadline());
    let ended = place.files.change(claim.keys(), when, |names| {
        assert!(await_grant(&mut wait, &claim, &owner).is_some());
        drop(wait);
        names.end_those_gone(&names.table.presences_of(&owner))
    });
    assert!(ended.unwrap());
    assert!(is_abandoned(&place, &claim, &Owner::new()));
}

#[test]
fn abandonment_of_which_a_dead_waiter_never_heard_is_told_to_the_next() {
    let (place, claim) = (Arc::new(Place::new()), claim());
    let holder = place.has(&claim);
    let first = Owner::new();
    let wait = asked(&place, &claim, &first);
    place.files.presences.close(&holder);
    let last = place.waits(&claim);
    // That finds the holder dead, so the lock is the first waiter's.
    assert_eq!(place.breaks(&claim.key), 0);
    let Some(EntryState::Given(token)) = states(&place, &claim).first().copied() else {
        panic!("it wasn't given");
    };
    assert!(token.abandoned);
    drop(wait);
    assert!(is_abandoned(&place, &claim, &last));
}

#[test]
fn waiter_for_several_names_asks_for_all_of_them() {
    let (place, both) = (Arc::new(Place::new()), both());
    let holder = place.has(&both);
    let owner = Owner::new();
    let mut wait = asked(&place, &both, &owner);
    place.release(&both, &holder);
    for key in both.names.iter() {
        let one = Claim::exclusive("x", key.name());
        assert_eq!(states(&place, &one), [EntryState::Granted]);
    }
    assert!(await_grant(&mut wait, &both, &owner).is_none());
    let answer = wait.ask(request(&both, &owner), None, &deadline());
    assert!(matches!(answer, Ok(Answer::Granted(_))));
}

/// Of two names, one of which it has for itself: that change may be undone in part.
#[test]
fn lease_is_not_given_by_a_change_of_several_names() {
    let (place, both) = (Arc::new(Place::new()), both());
    let holder = place.has(&both);
    let one = Claim::exclusive("x", both.names[0].name());
    let owner = Owner::new();
    let mut wait = asked(&place, &one, &owner);
    place.release(&both, &holder);
    assert_eq!(states(&place, &one), [EntryState::Granted]);
    assert!(await_grant(&mut wait, &one, &owner).is_none());
    assert!(wait.is_told && !wait.looks);
}

#[test]
fn waiter_asks_if_its_presence_or_the_file_was_removed_while_it_slept() {
    for removed in ["presence", "file"] {
        let (place, claim, owner, mut wait) = given();
        // As if it had no time to stay awake.
        while wait_file(&wait, &claim).spin_budget.pays() {
            wait_file(&wait, &claim).spin_budget.sleeps();
        }
        let path = match removed {
            "file" => place.path(&claim.key),
            _ => presence_path(&place, &wait, &owner),
        };
        fs::remove_file(path).unwrap();
        assert!(
            await_grant(&mut wait, &claim, &owner).is_none(),
            "{removed}"
        );
    }
}

fn wait_file(wait: &FileWait, claim: &Claim) -> Arc<NameFile> {
    wait.files.name(&claim.key).unwrap()
}

fn presence_path(place: &Place, wait: &FileWait, owner: &Owner) -> std::path::PathBuf {
    let presence = wait.files.presences.of(owner).unwrap();
    let name = format!(".door-{}", presence.id());
    place.directory.path().join(name)
}

/// As a writer is, while readers come and go ahead of it.
#[test]
fn waiter_that_is_told_again_and_again_makes_its_attempts() {
    let (place, claim, owner) = (Arc::new(Place::new()), claim(), Owner::new());
    place.has(&claim);
    let mut wait = asked(&place, &claim, &owner);
    let presence = wait.files.presences.of(&owner).unwrap();
    let pause = Duration::from_millis(200);
    let slow = Backoff {
        base: pause,
        cap: pause,
        ..BACKOFF
    };
    let (mut backoff, until) = (slow.waits(), Deadline::after(10 * pause));
    let mut counted = Pace {
        counted: true,
        ..pace(&mut backoff, &until)
    };
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                presence.notify_own().unwrap();
                thread::yield_now();
            }
        });
        let granted = wait.wait(request(&claim, &owner), &mut counted);
        has_ended.store(true, Ordering::Relaxed);
        assert_eq!(granted, None);
    });
    assert!(!until.is_over());
}

#[test]
fn waiter_whose_lease_was_broken_before_it_has_seen_it_is_told() {
    let (place, claim, owner, mut wait) = given();
    assert_eq!(place.breaks(&claim.key), 1);
    assert!(await_grant(&mut wait, &claim, &owner).is_none());
    let answer = wait.ask(request(&claim, &owner), None, &deadline());
    assert!(matches!(answer, Ok(Answer::Broken)));
}

#[test]
fn waiter_without_a_presence_asks() {
    let (place, claim, owner) = (Arc::new(Place::new()), claim(), Owner::new());
    place.has(&claim);
    let mut wait = asked(&place, &claim, &owner);
    wait.files.presences.close(&owner);
    assert!(await_grant(&mut wait, &claim, &owner).is_none());
    assert!(wait.looks);
}

#[test]
fn readers_are_given_their_leases_and_note_nothing() {
    let (place, claim) = (Arc::new(Place::new()), claim());
    let reads = claim.shared();
    let holder = place.has(&claim);
    let owners = [(); 2].map(|()| Owner::new());
    let mut waits = [0, 1].map(|at| asked(&place, &reads, &owners[at]));
    place.release(&claim, &holder);
    for (wait, owner) in waits.iter_mut().zip(&owners) {
        assert!(await_grant(wait, &reads, owner).is_some());
    }
    assert!(matches!(
        states(&place, &reads)[..],
        [EntryState::Given(one), EntryState::Given(other)] if one != other
    ));
    for owner in &owners {
        place.release(&reads, owner);
    }
}

#[test]
fn thousand_waiters_look_less_than_ten_times_a_second_together() {
    let a_second: f64 = (0..1_000)
        .map(|place| look_every(place).as_secs_f64().recip())
        .sum();
    assert!(a_second < 10.0, "{a_second}");
}

/// As where another program has the file locked for longer than the question takes.
#[test]
fn waiter_asks_again_after_a_pause_when_its_question_has_no_answer() {
    let (place, claim, owner) = (Arc::new(Place::new()), claim(), Owner::new());
    place.has(&claim);
    let mut wait = asked(&place, &claim, &owner);
    let other = fs::File::open(place.path(&claim.key)).unwrap();
    other.try_lock().unwrap();
    let now = Deadline::after(Duration::ZERO);
    assert!(wait.ask(request(&claim, &owner), None, &now).is_err());
    drop(other);
    let begun = time::now();
    assert!(await_grant(&mut wait, &claim, &owner).is_none());
    assert!(time::since(begun) < LOOK / 2);
}
