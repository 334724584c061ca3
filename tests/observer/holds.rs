//! Holds: each has one beginning and one end.

use super::*;

/// That it was held so often, one hold after the other ended, each with a token of its own.
#[track_caller]
fn assert_held_and_released(kept: &Kept, name: &str, times: usize) {
    let kinds = vec!["Acquired Released"; times].join(" ");
    assert_eq!(kept.kinds(name), kinds, "{name}");
    let tokens = kept.tokens(name);
    assert!(tokens.chunks(2).all(|pair| pair[0] == pair[1]), "{name}");
    assert!(tokens.is_sorted(), "{name}");
}

#[test]
fn each_kind_of_guard_is_acquired_and_released_once() {
    let (locker, kept) = observed("memory:", |builder| builder);
    drop(locker.lock("dropped").unwrap());
    locker.lock("unlocked").unwrap().unlock().unwrap();
    drop(locker.lock_all(&["one", "other"]).unwrap());
    let refused = locker.lock_all(&["first", "second"]).unwrap().downgrade();
    assert!(refused.is_err());
    drop(locker.write("shared").unwrap());
    drop(locker.semaphore("permits", 3).unwrap().acquire_many(2));
    for name in [
        "dropped",
        "unlocked",
        "one, other",
        "first, second",
        "shared",
        "permits",
    ] {
        assert_held_and_released(&kept, name, 1);
    }
    let both = [(); 2].map(|()| locker.read("readers").unwrap());
    drop(both);
    assert_eq!(kept.of("readers").len(), 4);
    let writing = locker.write("downgraded").unwrap();
    let written = writing.fencing_token();
    let reading = writing.downgrade().unwrap();
    let read = reading.fencing_token();
    drop(reading);
    assert_eq!(kept.tokens("downgraded"), [written, written, read, read]);
    assert_held_and_released(&kept, "downgraded", 2);
}

#[test]
fn guard_that_is_passed_on_is_released_and_acquired_by_who_adopts_it() {
    each_url(|url| {
        let [(locker, kept), (other, theirs)] = [(); 2].map(|()| observed(url, |builder| builder));
        let ticket = locker.lock("passed-on").unwrap().into_ticket();
        let Ok(guard) = other.adopt(ticket.expect("a ticket")) else {
            return;
        };
        assert_held_and_released(&kept, "passed-on", 1);
        drop(guard);
        assert_held_and_released(&theirs, "passed-on", 1);
    });
}
