//! Forks, in a process of their own: the other threads of this one may hold anything.

use super::*;
use support::{Child, forked, is_child};

const LEASE: Duration = Duration::from_millis(100);

#[test]
fn guard_that_a_forked_child_inherits_tells_nothing_there() {
    let mut child = Child::spawn("forks::child_forks_with_guards", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_forks_with_guards() {
    if !is_child("forks::child_forks_with_guards") {
        return;
    }
    let (locker, kept) = observed("memory:", |builder| builder.ttl(LEASE).renew(false));
    let names = ["dropped", "unlocked", "downgraded", "kept"];
    let guards = names.map(|name| Some(locker.write(name).unwrap()));
    let mut inherited = Some(guards);
    let pid = forked(|| inherit(&locker, &kept, inherited.take().unwrap()));
    let status = fork::waitpid(pid).unwrap();
    assert!(fork::WIFEXITED(status) && fork::WEXITSTATUS(status) == 0);
    drop(inherited);
    for name in names {
        assert_eq!(kept.of(name).len(), 2, "{name}: {:?}", kept.of(name));
    }
}

/// What a child does with the guards of its parent.
fn inherit(locker: &Locker, kept: &Kept, guards: [Option<crosslock::LockGuard>; 4]) {
    std::thread::sleep(2 * LEASE);
    let names = guards
        .each_ref()
        .map(|guard| guard.as_ref().unwrap().name().to_owned());
    let [dropped, unlocked, downgraded, kept_guard] = guards.map(Option::unwrap);
    drop(dropped);
    assert!(unlocked.unlock().is_err());
    assert!(downgraded.downgrade().is_err());
    assert!(!kept_guard.is_held());
    assert!(kept_guard.verify().is_err());
    for name in names {
        assert_eq!(kept.of(&name).len(), 1, "{name}: {:?}", kept.of(&name));
    }
    drop(locker.lock("own").unwrap());
    assert_eq!(kept.of("own").len(), 2);
}
