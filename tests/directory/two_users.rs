//! Users that share a directory. Without the right to become another user there is nothing to try.

use super::puppet::{Puppet, puppet_as};
use super::*;
use support::Stopwatch;

/// Two whom no system has, where this process may become them.
fn users() -> Option<[Option<u32>; 2]> {
    may("become other users").then_some([Some(61_234), Some(61_235)])
}

/// For each kind of a directory that all may write in, with and without the sticky bit, two users.
fn shared(check: impl Fn(&Path, [Puppet; 2])) {
    let Some(users) = users() else { return };
    for mode in [0o777, 0o1777] {
        let directory = temp_dir();
        set_mode(directory.path(), mode);
        let puppets = users.map(|uid| puppet_as(uid, directory.path()));
        check(directory.path(), puppets);
    }
}

#[test]
fn users_exclude_each_other_and_break_each_others_locks() {
    shared(|directory, [mut one, mut two]| {
        let lock = open(directory);
        // Each makes a file that the other uses.
        pass_on(&lock, "a", &mut one, &mut two);
        pass_on(&lock, "b", &mut two, &mut one);
        one.ask("lock a");
        assert_eq!(two.ask("break a"), "broke 1");
        assert!(two.ask("try a").ends_with("true"));
        assert!(one.ask("verify").starts_with("Lost"));
        assert!(one.ask("unlock").starts_with("Lost"));
        assert_eq!(two.ask("verify"), "ok");
    });
}

fn pass_on(lock: &Locker, name: &str, first: &mut Puppet, second: &mut Puppet) {
    assert!(first.ask(&format!("lock {name}")).starts_with("token"));
    assert_eq!(second.ask(&format!("try {name}")), "taken");
    second.tell(&format!("lock {name}"));
    await_a_line(lock, name);
    assert_eq!(first.ask("unlock"), "ok");
    let answer = second.answer();
    assert!(
        answer.starts_with("token") && answer.ends_with("false"),
        "{answer}"
    );
    assert_eq!(second.ask("unlock"), "ok");
}

#[test]
fn death_of_one_user_gives_the_lock_to_the_other_at_once_and_leaves_nothing() {
    shared(|directory, [mut one, mut two]| {
        one.ask("lock a");
        two.tell("lock a");
        await_a_line(&open(directory), "a");
        let stopwatch = Stopwatch::start();
        one.kill();
        assert!(two.answer().ends_with("true"));
        stopwatch.assert_within(SOON);
        assert_eq!(two.ask("unlock"), "ok");
        drop((one, two));
        // The owner of the directory may remove what a dead user left.
        assert_only_files_of(directory, &["a"]);
    });
}
