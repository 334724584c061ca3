//! Processes that may write files up to a length, or open a number of files; and files of names that nobody uses.

use super::files::{IDLE, use_last_at};
use super::puppet::{limit_file_size, puppet};
use super::*;
use support::Child;

#[test]
fn process_that_may_write_no_long_files_leaves_a_lock_whole_and_lives() {
    let directory = temp_dir();
    let mut other = puppet(directory.path());
    assert!(other.ask("lock a").starts_with("token"));
    assert_eq!(other.ask("unlock"), "ok");
    let mut limited = puppet(directory.path());
    for most in [1, 70, 100, 200, 4095] {
        limit_file_size(&limited, Some(most));
        for name in ["a", "b"] {
            for order in ["try", "lock", "read"] {
                assert_eq!(limited.ask(&format!("{order} {name}")), "Engine", "{most}");
            }
            assert!(
                other.ask(&format!("try {name}")).starts_with("token"),
                "{most}"
            );
            // That changes nothing.
            assert_eq!(limited.ask(&format!("try {name}")), "taken", "{most}");
            assert_eq!(other.ask("unlock"), "ok");
        }
    }
    assert!(
        limited.ask("why a").contains("ulimit -f"),
        "{}",
        limited.ask("why a")
    );
    limit_file_size(&limited, Some(5000));
    assert_eq!(limited.ask("store-10 a"), "ok");
    // The value before one that is too long stays.
    assert_eq!(limited.ask("store-10000 a"), "Engine");
    limit_file_size(&limited, None);
    assert_eq!(limited.ask("length a"), "10");
    assert_eq!(limited.ask("store-10000 a"), "ok");
}

#[test]
fn file_of_a_name_that_nobody_used_for_days_is_removed_and_those_that_matter_stay() {
    let directory = temp_dir();
    let lock = open(directory.path());
    let token = |name: &str| lock.lock(name).unwrap().fencing_token();
    let names = ["idle", "new", "abandoned", "held", "other"];
    let tokens = names.map(token);
    let guard = lock.lock("held").unwrap();
    let file = |name: &str| file_of(directory.path(), name);
    use_last_at(&file("idle"), tokens[0] - IDLE, "");
    use_last_at(&file("abandoned"), tokens[2] - IDLE, "abandoned\n");
    fs::write(file("other"), "not ours").unwrap();
    // Nor is one whose name is an id.
    let foreign = ".550e8400-e29b-41d4-a716-446655440000";
    let foreign = directory.path().join(foreign);
    fs::write(&foreign, "precious").unwrap();
    age(&foreign).unwrap();
    drop(open(directory.path()));
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "precious");
    assert_eq!(
        names_in(directory.path())
            .into_iter()
            .filter(|name| name.ends_with(".lock"))
            .collect::<Vec<_>>(),
        ["abandoned", "held", "new", "other"].map(|name| format!("crosslock+{name}.lock"))
    );
    guard.verify().unwrap();
    // One that has it open finds that out.
    let next = lock.lock("idle").unwrap();
    assert!(next.fencing_token() > tokens[0] && file("idle").exists());
}

#[test]
fn removal_of_idle_files_gives_nobody_a_lock_or_a_token_twice() {
    const USERS: usize = 2;
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    let (url, place) = (url(directory.path()), elsewhere.path().to_str().unwrap());
    let start = |role| Child::spawn(role, &[(URL, &url), ("TEST_PLACE", place)]);
    let _opener = start("opens again and again");
    let mut users = [(); USERS].map(|()| start("uses idle names"));
    for user in &mut users {
        user.wait_for("done", 4 * PATIENCE);
    }
}
