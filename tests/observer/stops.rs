//! Calls that are cancelled, and lockers that are closed.

use std::thread;

use crosslock::CancelToken;

use super::*;

/// Has a call wait in vain until `stop` ends it, and returns what was told of it.
fn told_of_a_stopped_call(
    url: &str,
    name: &str,
    stop: impl FnOnce(&Locker, &CancelToken),
) -> Vec<Told> {
    let (holder, _) = observed(url, |builder| builder);
    let (locker, kept) = observed(url, |builder| builder);
    let token = CancelToken::new();
    let guard = holder.lock(name).unwrap();
    thread::scope(|scope| {
        let call = scope.spawn(|| locker.with_cancel(&token).lock(name).map(drop));
        kept.wait_for("the waiting", name, is_waiting);
        stop(&locker, &token);
        assert!(call.join().unwrap().is_err());
    });
    drop(guard);
    kept.of(name)
}

#[track_caller]
fn assert_gave_up_as_cancelled(told: &[Told], url: &str) {
    let [
        Told::Waiting,
        Told::GaveUp {
            error: Some(error), ..
        },
    ] = told
    else {
        panic!("{url}: {told:?}")
    };
    assert!(error.contains("(Cancelled {"), "{url}: {error}");
}

#[test]
fn cancelled_call_gave_up() {
    each_url(|url| {
        let told = told_of_a_stopped_call(url, "cancelled", |_, token| token.cancel());
        assert_gave_up_as_cancelled(&told, url);
    });
}

#[test]
fn call_whose_locker_is_closed_gave_up() {
    each_url(|url| {
        let told = told_of_a_stopped_call(url, "closed-call", |locker, _| locker.close());
        assert_gave_up_as_cancelled(&told, url);
    });
}

#[test]
fn guard_whose_locker_is_closed_is_lost_once() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let guard = locker.lock("closed").unwrap();
        thread::sleep(SHORT);
        locker.close();
        assert!(guard.unlock().is_err());
        assert!(locker.lock("closed").is_err());
        let held = assert_lost(&kept.of("closed"), LostReason::Closed, url);
        assert!(held >= SHORT, "{url}: {held:?}");
    });
}

/// Some are closed between the grant and the guard.
#[test]
fn what_began_has_ended_when_the_locker_is_closed() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| while locker.lock("closed-storm").map(drop).is_ok() {});
            }
            wait_until("a few turns, and a wait", PATIENCE, || {
                let told = kept.of("closed-storm");
                told.len() > 100 && told.contains(&Told::Waiting)
            });
            locker.close();
        });
        storms::assert_balanced(&kept.of("closed-storm"), url);
    });
}
