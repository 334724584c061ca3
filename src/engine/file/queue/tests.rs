use std::time::Duration;

use super::super::tests::{Place, deadline, files_of, request};
use super::*;
use crate::base::{Claim, Due, IfExists, Mode, NewTask, Policy, TaskCounts};
use crate::engine::Engine;

fn claim() -> Claim {
    Claim {
        mode: Mode::Task,
        has_value: true,
        ..Claim::exclusive("x", "q")
    }
}

fn insert(files: &Files, id: &str) {
    let task = NewTask {
        id,
        payload: b"1",
        due: Due::After(Duration::ZERO),
        policy: Policy {
            tries: 0,
            base: Duration::ZERO,
            cap: Duration::ZERO,
            remember: Duration::ZERO,
        },
        if_exists: IfExists::Keep,
    };
    let tasks = &[task];
    let call = TaskCall::Insert { tasks, nonce: None };
    let inserted = files.call_tasks(&claim().key, call, &deadline());
    assert_eq!(inserted.unwrap(), TaskAnswer::Changed(vec![true]));
}

fn counts(files: &Files) -> TaskCounts {
    match files.call_tasks(&claim().key, TaskCall::Counts, &deadline()) {
        Ok(TaskAnswer::Counts(counts)) => counts,
        other => panic!("{other:?}"),
    }
}

/// Asks for a task; gives its token, or whom the owner watches.
fn ask(files: &Files, owner: &Owner, waits: bool) -> Result<u64, Ahead> {
    let claim = claim();
    let asked = files.ask_for_task(request(&claim, owner), waits, &deadline());
    match asked.unwrap() {
        (Answer::Granted(grant), _) => Ok(grant.token.number),
        (_, ahead) => Err(ahead),
    }
}

#[test]
fn task_of_a_worker_that_is_gone_is_the_next_ones() {
    let place = Place::new();
    let (gone, next) = (Owner::new(), Owner::new());
    insert(&place.files, "a");
    let token = ask(&place.files, &gone, false).unwrap();
    let other = files_of(place.directory.path());
    let ahead = ask(&other, &next, true).expect_err("another has it");
    assert_eq!(
        ahead.presences,
        [place.files.presences.of(&gone).unwrap().id()].into()
    );
    place.engine().abandon(&gone);
    let again = ask(&other, &next, true).unwrap();
    // The second bit says that the last worker vanished.
    assert!(again > token && again % 4 == 3);
    let claim = claim();
    let done = other.change_task(request(&claim, &gone), Change::Renew, &deadline());
    assert_eq!(done.unwrap(), Outcome::NOT_OWNER);
}

#[test]
fn waiters_that_are_gone_are_in_nobodys_way() {
    let place = Place::new();
    let dead = [(); 3].map(|()| Owner::new());
    for (at, owner) in (0..).zip(&dead) {
        let ahead = ask(&place.files, owner, true).unwrap_err();
        assert_eq!(
            (ahead.place, ahead.presences.len()),
            (at, at.min(1) as usize)
        );
    }
    insert(&place.files, "a");
    let other = files_of(place.directory.path());
    let late = Owner::new();
    assert!(
        ask(&other, &late, false).is_err(),
        "it is the first waiter's"
    );
    for owner in &dead {
        place.engine().abandon(owner);
    }
    ask(&other, &late, false).unwrap();
}

#[test]
fn waiter_is_told_when_the_one_ahead_of_it_leaves() {
    let place = Place::new();
    let owners = [(); 3].map(|()| Owner::new());
    for owner in &owners {
        assert!(ask(&place.files, owner, true).is_err());
        place.was_told(owner);
    }
    assert!(ask(&place.files, &owners[1], false).is_err());
    assert!(place.was_told(&owners[2]) && !place.was_told(&owners[0]));
    let ahead = ask(&place.files, &owners[2], true).unwrap_err();
    assert_eq!(
        ahead.presences,
        [place.files.presences.of(&owners[0]).unwrap().id()].into()
    );
    // An insert calls the first one alone.
    insert(&place.files, "a");
    assert!(place.was_told(&owners[0]) && !place.was_told(&owners[2]));
}

#[test]
fn look_makes_no_file_and_a_long_journal_is_replaced() {
    let place = Place::new();
    assert_eq!(counts(&place.files), TaskCounts::default());
    let path = place.directory.path().join(queue_name(&claim().key));
    assert!(!path.exists());
    insert(&place.files, "a");
    let other = files_of(place.directory.path());
    assert_eq!(counts(&other).ready, 1);
    let (owner, claim) = (Owner::new(), claim());
    let mut most = 0;
    for _ in 0..2_000 {
        ask(&place.files, &owner, false).unwrap();
        let back = Change::Release(Release::UNKNOWN);
        let done = place
            .files
            .change_task(request(&claim, &owner), back, &deadline());
        assert_eq!(done.unwrap(), Outcome::DONE);
        most = most.max(path.metadata().unwrap().len());
    }
    assert!((100_000..400_000).contains(&most), "{most}");
    assert!(path.metadata().unwrap().len() < most);
    assert_eq!(counts(&other).ready, 1);
}

#[test]
fn file_that_holds_something_else_is_a_conflict_and_stays() {
    let place = Place::new();
    let path = place.directory.path().join(queue_name(&claim().key));
    std::fs::write(&path, "mine\n").unwrap();
    let refused = place
        .files
        .call_tasks(&claim().key, TaskCall::Counts, &deadline());
    assert!(
        matches!(refused, Err(Error::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    let refused = place
        .files
        .call_tasks(&claim().key, TaskCall::Remove("a"), &deadline());
    assert!(
        matches!(refused, Err(Error::Conflict { .. })),
        "{refused:?}"
    );
    assert!(!place.directory.path().join("elsewhere").exists());
}
