use std::fs;

use super::super::tests::{Place, claim, deadline, files_of, request};
use super::*;
use crate::base::backoff::{Backoff, Waits};
use crate::base::claim::Claim;
use crate::base::owner::Owner;

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

/// Whether the next one, which asks, is told that the lock was abandoned.
fn is_abandoned(place: &Place, claim: &Claim, next: &Owner) -> bool {
    match place.ask(claim, next) {
        Answer::Granted(grant) => grant.token.abandoned,
        Answer::Taken { .. } | Answer::Broken => panic!("it isn't free"),
    }
}

#[test]
fn waiter_that_dies_abandons_the_lock_if_it_has_seen_its_lease() {
    for has_seen in [false, true] {
        let (place, claim, owner, mut wait) = given();
        if has_seen {
            assert!(await_grant(&mut wait, &claim, &owner).is_some());
        }
        drop(wait);
        assert_eq!(is_abandoned(&place, &claim, &Owner::new()), has_seen);
    }
    // Whoever finds it gone may have read the file before.
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
