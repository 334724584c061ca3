//! Holds: each has one beginning and one end.

use std::thread;

use super::*;

/// The tokens that were acquired, and those of which an end was told.
fn tokens(kept: &Kept, name: &str) -> (Vec<u64>, Vec<u64>) {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for told in kept.of(name) {
        match told {
            Told::Acquired { token, .. } => begun.push(token),
            Told::Released { token, .. } | Told::Lost { token, .. } => ended.push(token),
            _ => {}
        }
    }
    (begun, ended)
}

#[track_caller]
fn assert_held_and_released(kept: &Kept, name: &str, times: usize, url: &str) {
    let (begun, ended) = tokens(kept, name);
    assert_eq!(begun, ended, "{url}, {name}");
    assert_eq!(begun.len(), times, "{url}, {name}");
    assert_eq!(kept.of(name).len(), 2 * times, "{url}, {name}");
}

#[test]
fn each_kind_of_guard_is_acquired_and_released_once_and_tells_how_long_it_was_held() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let guard = locker.lock("dropped").unwrap();
        thread::sleep(SHORT);
        drop(guard);
        let told = kept.of("dropped");
        let [Told::Acquired { .. }, Told::Released { held, .. }] = told[..] else {
            panic!("{url}: {told:?}")
        };
        assert!(held >= SHORT, "{url}: {held:?}");
        locker.lock("unlocked").unwrap().unlock().unwrap();
        drop(locker.lock_all(&["one", "other"]).unwrap());
        let refused = locker.lock_all(&["first", "second"]).unwrap().downgrade();
        assert!(refused.is_err());
        for (name, times) in [
            ("dropped", 1),
            ("unlocked", 1),
            ("one, other", 1),
            ("first, second", 1),
        ] {
            assert_held_and_released(&kept, name, times, url);
        }
        let Ok(reading) = locker.read("shared") else {
            return;
        };
        drop((locker.read("shared").unwrap(), reading));
        drop(locker.write("shared").unwrap());
        drop(locker.semaphore("permits", 3).unwrap().acquire_many(2));
        assert_eq!(kept.of("shared").len(), 6, "{url}");
        assert_held_and_released(&kept, "permits", 1, url);
    });
}

#[test]
fn downgraded_guard_is_released_and_reads_with_a_token_of_its_own() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let Ok(writing) = locker.write("downgraded") else {
            return;
        };
        let written = writing.fencing_token();
        let reading = writing.downgrade().unwrap();
        let read = reading.fencing_token();
        drop(reading);
        assert_eq!(tokens(&kept, "downgraded").0, [written, read], "{url}");
        assert_held_and_released(&kept, "downgraded", 2, url);
    });
}

#[test]
fn guard_that_is_passed_on_is_released_and_acquired_by_who_adopts_it() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let (other, theirs) = observed(url, |builder| builder);
        let ticket = locker
            .lock("passed-on")
            .unwrap()
            .into_ticket()
            .expect("a ticket");
        let Ok(guard) = other.adopt(ticket) else {
            return;
        };
        let told = kept.of("passed-on");
        assert!(
            matches!(told[..], [Told::Acquired { .. }, Told::Released { .. }]),
            "{url}: {told:?}"
        );
        let token = guard.fencing_token();
        drop(guard);
        assert_eq!(tokens(&theirs, "passed-on"), (vec![token], vec![token]));
    });
}

#[test]
fn lock_that_is_broken_tells_of_how_many_leases() {
    each_url(|url| {
        let (holder, theirs) = observed(url, |builder| builder);
        let (operator, kept) = observed(url, |builder| builder);
        let guard = holder.lock("broken").unwrap();
        if operator.break_lock("broken").is_err() {
            return;
        }
        assert_eq!(kept.of("broken"), [Told::Broken { holders: 1 }], "{url}");
        assert!(operator.break_lock("free").unwrap().is_empty());
        assert_eq!(kept.of("free"), []);
        assert!(guard.verify().is_err());
        drop(guard);
        assert_lost(&theirs.of("broken"), LostReason::Broken, url);
    });
}
