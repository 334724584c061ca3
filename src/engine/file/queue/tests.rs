use std::time::Duration;

use super::super::tests::{Place, deadline, files_of, request};
use super::*;
use crate::base::{Claim, Due, IfExists, Mode, NewTask, Policy};
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
fn look_makes_no_file_and_one_that_holds_something_else_is_a_conflict_and_stays() {
    let place = Place::new();
    let path = place.directory.path().join(queue_name(&claim().key));
    let look = || {
        place
            .files
            .call_tasks(&claim().key, TaskCall::Counts, &deadline())
    };
    assert!(look().is_ok() && !path.exists());
    std::fs::write(&path, "mine\n").unwrap();
    assert!(matches!(look(), Err(Error::Conflict { .. })));
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
