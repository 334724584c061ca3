//! Calls: those that get the lock at once, those that wait, and those that wait in vain.

use std::thread;

use crosslock::{CancelToken, LockGuard, Result};

use super::*;

/// The flags of the acquisitions of a lock: was waiting, handed over, abandoned.
fn flags(kept: &Kept, name: &str) -> Vec<(bool, bool, bool)> {
    let told = kept.of(name).into_iter();
    told.filter_map(|told| match told {
        Told::Acquired {
            was_waiting,
            handed_over,
            abandoned,
            ..
        } => Some((was_waiting, handed_over, abandoned)),
        _ => None,
    })
    .collect()
}

#[test]
fn call_that_waits_for_another_process_tells_when_it_waits_and_when_it_has_the_lock() {
    each_url(|url| {
        let (holder, _) = observed(url, |builder| builder);
        let (locker, kept) = observed(url, |builder| builder);
        let guard = holder.lock("between").unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| locker.lock("between").unwrap());
            kept.wait_for("the waiting", "between", is_waiting);
            thread::sleep(SHORT);
            drop(guard);
            drop(waiter.join().unwrap());
        });
        let told = kept.of("between");
        let [
            Told::Waiting,
            Told::Acquired { waited, .. },
            Told::Released { .. },
        ] = told[..]
        else {
            panic!("{url}: {told:?}")
        };
        assert!(waited >= SHORT, "{url}: {waited:?}");
        assert_eq!(flags(&kept, "between"), [(true, false, false)], "{url}");
    });
}

/// Whoever releases a lock takes its time to tell so.
struct Slow(Arc<Kept>);

impl Observer for Slow {
    fn event(&self, event: &Event<'_>) {
        if let Event::Released { .. } = event {
            thread::sleep(SHORT);
        }
        self.0.event(event);
    }
}

#[test]
fn lease_that_is_handed_over_is_released_before_the_next_thread_has_it() {
    each_url(|url| {
        let kept = Arc::new(Kept::default());
        let builder = Locker::builder(url)
            .namespace(NAMESPACE)
            .hand_over(PATIENCE);
        let locker = builder.observer(Arc::new(Slow(kept.clone()))).build();
        let locker = locker.unwrap();
        let guard = locker.lock("handed-over").unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(locker.lock("handed-over").unwrap()));
            kept.wait_for("the waiting", "handed-over", is_waiting);
            drop(guard);
            waiter.join().unwrap();
        });
        let told = kept.of("handed-over");
        let [
            Told::Acquired { token: first, .. },
            Told::Waiting,
            Told::Released { token: ended, .. },
            Told::Acquired { token: second, .. },
            Told::Released { token: last, .. },
        ] = told[..]
        else {
            panic!("{url}: {told:?}")
        };
        assert_eq!((first, second), (ended, last), "{url}");
        assert!(first < second, "{url}");
        let expected = [(false, false, false), (true, true, false)];
        assert_eq!(flags(&kept, "handed-over"), expected, "{url}");
    });
}

#[test]
fn calls_that_need_not_wait_have_one_event_which_says_whether_the_lock_was_abandoned() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = locker.lock("abandoned").unwrap();
                panic!("on purpose");
            });
            holder.join()
        });
        assert!(panicked.is_err());
        let guard = locker.lock("abandoned").unwrap();
        let told = kept.of("abandoned");
        let [_, Told::Released { .. }, Told::Acquired { token, .. }] = told[..] else {
            panic!("{url}: {told:?}")
        };
        assert_eq!(token, guard.fencing_token());
        let expected = [(false, false, false), (false, false, true)];
        assert_eq!(flags(&kept, "abandoned"), expected, "{url}");
    });
}

/// What a call gives that waits in vain for "vain", which another locker has.
type Vain = fn(&Locker, &Kept) -> Result<Option<LockGuard>>;

/// Calls of a locker that tries three times, or waits until a token or its end ends it.
const VAIN: [(&str, Vain); 4] = [
    ("", |locker, _| locker.try_lock_for("vain", SHORT)),
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
        kept.wait_for("the waiting", "vain", is_waiting);
        stop();
        call.join().unwrap()
    })
}

#[test]
fn call_that_waited_in_vain_gave_up_with_its_error() {
    each_url(|url| {
        let (holder, _) = observed(url, |builder| builder);
        let _guard = holder.lock("vain").unwrap();
        for (expected, call) in VAIN {
            let is_busy = expected.contains("Busy");
            let (locker, kept) = observed(url, |builder| match is_busy {
                true => builder.attempts(3),
                false => builder,
            });
            let outcome = call(&locker, &kept);
            let is_as_told = match &outcome {
                Ok(guard) => guard.is_none() && expected.is_empty(),
                Err(error) => format!("{error:?}").contains(expected) && !expected.is_empty(),
            };
            assert!(is_as_told, "{url}, {expected}: {outcome:?}");
            let told = kept.of("vain");
            let [Told::Waiting, Told::GaveUp { waited, ref error }] = told[..] else {
                panic!("{url}, {expected}: {told:?}")
            };
            let error = error.as_deref().unwrap_or_default();
            assert!(error.contains(expected), "{url}, {expected}: {error}");
            assert_eq!(error.is_empty(), expected.is_empty(), "{url}: {error}");
            assert!(waited >= SHORT || !expected.is_empty(), "{url}: {waited:?}");
        }
    });
}
