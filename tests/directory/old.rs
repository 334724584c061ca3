//! Directories of version 0.1, and of those between it and this one.

use std::fs;

use super::*;

/// What a file held: the counter, odd while the lock was held, and of later versions a line more.
fn write(directory: &Path, counter: u64, more: &str) {
    let content = format!("{counter:020}\n{more}");
    fs::write(file_of(directory, "a"), content).unwrap();
}

fn filled(line: &str) -> String {
    format!("{line:<319}\n")
}

#[test]
fn counter_of_an_old_file_goes_on_and_an_odd_one_is_of_an_abandoned_lock() {
    let held = filled("held 17.25 0f1e2d3c host/12/main");
    let kept = filled("17.250 0f1e2d3c");
    let unfinished = filled("unfinished");
    let broken = held.clone() + "broken\n";
    let counters = [0, 1, 6, 7, 1_700_000_000_000_000, 1_700_000_000_000_001];
    for more in ["", "17.250 0f1e2d3c\n", &held, &kept, &unfinished, &broken] {
        for counter in counters {
            let directory = temp_dir();
            write(directory.path(), counter, more);
            let lock = open(directory.path());
            let guard = lock.try_lock("a").unwrap().expect("nobody has it");
            assert!(guard.fencing_token() > counter, "{counter} {more:?}");
            assert_eq!(guard.abandoned(), counter % 2 == 1, "{counter} {more:?}");
            let first = guard.fencing_token();
            guard.unlock().unwrap();
            let guard = lock.try_lock("a").unwrap().expect("nobody has it");
            assert!(guard.fencing_token() > first);
            assert!(!guard.abandoned());
        }
    }
}

#[test]
fn old_file_is_understood_by_inspect_and_left_as_it_is() {
    let directory = temp_dir();
    write(directory.path(), 41, "");
    let before = fs::read(file_of(directory.path(), "a")).unwrap();
    let inspected = open(directory.path()).inspect("a").unwrap();
    assert_eq!(inspected.state, crosslock::LockState::Free);
    assert_eq!(inspected.last_token, Some(41));
    let after = fs::read(file_of(directory.path(), "a")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn what_an_old_version_left_beside_its_files_hinders_nobody() {
    let directory = temp_dir();
    write(directory.path(), 41, "");
    fs::write(directory.path().join(".breaking"), "").unwrap();
    fs::write(directory.path().join("crosslock+a.broken"), "").unwrap();
    let lock = open(directory.path());
    assert!(lock.try_lock("a").unwrap().is_some());
    assert_eq!(lock.break_lock("a").unwrap().len(), 0);
    assert!(lock.try_lock("a").unwrap().is_some());
}
