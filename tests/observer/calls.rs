//! Calls: those that get the lock at once, those that wait, and those that wait in vain.

use std::thread;

use crosslock::{CancelToken, LockGuard, Result};

use super::*;

/// Of each acquisition of a lock whether it was waiting, was handed over, and was abandoned.
fn flags(kept: &Kept, name: &str) -> Vec<[bool; 3]> {
    let told = kept.of(name).into_iter();
    let told = told.filter(|told| told.starts_with("Acquired"));
    let flags = ["was_waiting", "handed_over", "abandoned"];
    told.map(|told| flags.map(|flag| field(&told, flag) == "true"))
        .collect()
}

/// The engines differ in how they wait, so each is asked.
#[test]
fn call_tells_whether_it_waits_and_how_it_got_the_lock() {
    each_url(|url| {
        let (holder, _) = observed(url, |builder| builder);
        let (locker, kept) = observed(url, |builder| builder.hand_over(PATIENCE));
        let guard = holder.lock("a").unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| locker.lock("a").unwrap());
            kept.wait_for("a", "Waiting");
            drop(guard);
            let guard = first.join().unwrap();
            let second = scope.spawn(|| locker.lock("a").unwrap());
            wait_until("the second to wait", PATIENCE, || {
                kept.kinds("a").ends_with("Waiting")
            });
            drop(guard);
            let panics = move || {
                let _guard = second.join().unwrap();
                panic!("on purpose");
            };
            assert!(scope.spawn(panics).join().is_err());
        });
        drop(locker.lock("a").unwrap());
        let kinds = "Waiting Acquired Waiting Released Acquired Released Acquired Released";
        assert_eq!(kept.kinds("a"), kinds, "{url}");
        let ways = [
            [true, false, false],
            [true, true, false],
            [false, false, true],
        ];
        assert_eq!(flags(&kept, "a"), ways, "{url}");
        let tokens = kept.tokens("a");
        let pairs: Vec<_> = tokens.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        assert!(pairs.iter().all(|(begun, ended)| begun == ended), "{url}");
        assert!(pairs.is_sorted_by(|one, next| one.0 < next.0), "{url}");
    });
}

/// What a call gives that waits in vain for "vain", which another locker has.
type Vain = fn(&Locker, &Kept) -> Result<Option<LockGuard>>;

/// Calls of a locker that tries three times, or waits until its time, a token or its end ends it.
const VAIN: [(&str, Vain); 4] = [
    ("error: None", |locker, _| {
        locker.try_lock_for("vain", SHORT)
    }),
    ("(Busy {", |locker, _| locker.lock("vain").map(Some)),
    ("(Cancelled {", |locker, kept| {
        let token = CancelToken::new();
        stopped(&locker.with_cancel(&token), kept, || token.cancel())
    }),
    ("(Cancelled {", |locker, kept| {
        stopped(locker, kept, || locker.close())
    }),
];

/// The same of a call that waits until `stop` ends it.
fn stopped(locker: &Locker, kept: &Kept, stop: impl FnOnce()) -> Result<Option<LockGuard>> {
    thread::scope(|scope| {
        let call = scope.spawn(|| locker.try_lock_for("vain", PATIENCE));
        kept.wait_for("vain", "Waiting");
        stop();
        call.join().unwrap()
    })
}

#[test]
fn call_that_waited_in_vain_gave_up_with_its_error() {
    let (holder, _) = observed("memory:", |builder| builder);
    let _guard = holder.lock("vain").unwrap();
    for (expected, call) in VAIN {
        let (locker, kept) = observed("memory:", |builder| match expected {
            "(Busy {" => builder.attempts(3),
            _ => builder,
        });
        let has_error = call(&locker, &kept).map(|guard| assert!(guard.is_none()));
        assert_eq!(has_error.is_err(), expected != "error: None", "{expected}");
        assert_eq!(kept.kinds("vain"), "Waiting GaveUp", "{expected}");
        let told = &kept.of("vain")[1];
        assert!(told.contains(expected), "{told}");
    }
}
