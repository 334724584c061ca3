//! What a lock's file says, as `docs/internals/file.md` has it; and what is made of files of other times.

use crosslock::{Error, LockState, Locker};

use super::files::{HEAD, field, file_that_says, head_of, text_of};
use super::puppet::puppet;
use super::*;

/// What a lock's file says, line by line.
fn lines_of(file: &Path) -> Vec<String> {
    text_of(file).lines().map(String::from).collect()
}

/// The doors of the owners that a lock's file names, in its order.
fn doors_of(directory: &Path, name: &str) -> Vec<PathBuf> {
    let lines = lines_of(&file_of(directory, name));
    let doors = lines.iter().filter_map(|line| field(line, "door"));
    let path = |door| directory.join(format!(".door-{door}"));
    doors.map(path).collect()
}

/// Another boot than that of a file.
fn other_boot(file: &Path) -> String {
    let (boot, ..) = head_of(file);
    boot.replace(|c: char| c.is_ascii_hexdigit(), "0")
}

/// Releases `name` at once, to stay taken for longer than any test runs.
fn keep(lock: &Locker, name: &str) {
    let guard = lock.lock(name).unwrap();
    guard.at_least_for(Duration::from_secs(300));
    guard.unlock().unwrap();
    assert!(lock.try_lock(name).unwrap().is_none());
}

#[test]
fn file_says_who_holds_and_who_waits() {
    let (directory, _) = place();
    let file = file_of(directory.path(), "a");
    let lock = Locker::builder(&url(directory.path()))
        .label("a label")
        .build();
    let lock = lock.unwrap();
    let guard = lock.lock("a").unwrap();
    let mut waiter = puppet(directory.path());
    waiter.lock("a");
    wait_until("a waiter", PATIENCE, || lines_of(&file).len() == 3);
    let lines = lines_of(&file);
    let (counter, token) = (
        lines[0].strip_prefix("counter ").unwrap(),
        guard.fencing_token(),
    );
    assert!(counter.parse::<u64>().unwrap() >= token);
    assert!(lines[1].starts_with(&format!("has exclusive token={token} since=")));
    let whose = format!("/{}", std::process::id());
    assert!(lines[1].contains(&whose) && lines[1].ends_with("/a label"));
    assert!(lines[2].starts_with("waits exclusive since="), "{lines:?}");
    let whose = format!("/{}/", waiter.pid());
    assert!(lines[2].contains(&whose) && lines[2].ends_with("/a puppet"));
    let found = doors_of(directory.path(), "a");
    assert!(found.len() == 2 && found.iter().all(|door| door.exists()));
    guard.unlock().unwrap();
    let holding = waiter.holding();
    let lines = lines_of(&file);
    let has = format!("given exclusive token={} since=", holding.token);
    assert!(lines.len() == 2 && lines[1].starts_with(&has), "{lines:?}");
    waiter.unlock();
    let lines = lines_of(&file);
    assert!(
        lines.len() == 1 && lines[0].starts_with("counter "),
        "{lines:?}"
    );
}

#[test]
fn file_says_in_which_way_a_lock_is_held() {
    let (directory, lock) = place();
    let _read = lock.read("a").unwrap();
    let line = lines_of(&file_of(directory.path(), "a")).remove(1);
    assert!(line.starts_with("has shared token="), "{line}");
    let semaphore = lock.semaphore("b", 3).unwrap();
    let _permits = semaphore.acquire_many(2).unwrap();
    let line = lines_of(&file_of(directory.path(), "b")).remove(1);
    assert!(line.starts_with("has 2/3 token="), "{line}");
    keep(&lock, "c");
    let line = lines_of(&file_of(directory.path(), "c")).remove(2);
    assert!(line.starts_with("kept exclusive since="), "{line}");
    assert!(field(&line, "until").is_some() && field(&line, "door").is_none());
    let ticket = lock.lock("d").unwrap().into_ticket().expect("a ticket");
    let line = lines_of(&file_of(directory.path(), "d")).remove(2);
    assert!(line.starts_with("has exclusive token="), "{line}");
    assert!(field(&line, "until").is_some() && line.contains(" door=- "));
    drop(lock.adopt(&ticket).unwrap());
}

#[test]
fn reboot_frees_a_lock_that_stays_taken_or_whose_file_was_cut_short() {
    let (directory, lock) = place();
    let file = file_of(directory.path(), "a");
    keep(&lock, "a");
    let last = lock.inspect("a").unwrap().last_token;
    let text = text_of(&file);
    let booted = lines_of(&file).remove(1);
    let told: u64 = booted.strip_prefix("booted ").unwrap().parse().unwrap();
    // The same times of a boot that was earlier, or of one whose clock showed more.
    let earlier = text.replace(&booted, &format!("booted {}", told - 60));
    let later = text.replace(" since=", " since=9");
    for text in [later, earlier] {
        fs::write(&file, file_that_says(&other_boot(&file), &text)).unwrap();
        assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    }
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    let guard = lock.try_lock("a").unwrap().expect("it isn't kept any more");
    assert!(!guard.was_abandoned() && Some(guard.fencing_token()) > last);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    // Or what lost power has cut short.
    let whole = file_that_says(&other_boot(&file), &text_of(&file));
    for content in [
        String::new(),
        "\0".repeat(4096),
        whole[..HEAD].to_owned(),
        whole[..HEAD + 10].to_owned(),
        whole[..HEAD].to_owned() + &"\0".repeat(4096 - HEAD),
    ] {
        fs::write(&file, &content).unwrap();
        let guard = lock.try_lock("a").unwrap();
        let guard = guard.unwrap_or_else(|| panic!("{content:?}"));
        assert!(guard.fencing_token() > token);
    }
}

#[test]
fn file_of_this_boot_that_is_not_whole_is_a_conflict_is_not_listed_and_is_left_alone() {
    let (directory, lock) = place();
    let file = file_of(directory.path(), "a");
    drop(lock.lock("a").unwrap());
    let (boot, text) = (head_of(&file).0, text_of(&file));
    let whole = file_that_says(&boot, &text);
    for content in [
        whole[..whole.len() - 2].to_owned(),
        whole.replace("crosslock 2", "crosslock 3"),
        file_that_says(&boot, &(text + "has exclusive since=1.000000000\n")),
        // A counter alone.
        format!("{:020}\n", 7),
        "not a counter\n".to_owned(),
    ] {
        fs::write(&file, &content).unwrap();
        for refused in [
            lock.try_lock("a").map(drop),
            lock.inspect("a").map(drop),
            lock.break_lock("a").map(drop),
        ] {
            assert!(
                matches!(refused, Err(Error::Conflict { .. })),
                "{content:?} {refused:?}"
            );
        }
        assert_eq!(lock.list("").unwrap().count(), 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    fs::write(&file, whole).unwrap();
    assert!(lock.try_lock("a").unwrap().is_some());
}
