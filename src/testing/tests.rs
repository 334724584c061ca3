use std::thread;
use std::time::Duration;

use crossbeam_channel::{TryRecvError, bounded};

use super::*;
use crate::base::cancel::CancelToken;
use crate::base::error::Error;
use crate::base::inspection::LockState;
use crate::base::sys::sync::Mutex;
use crate::guard::LockGuard;

mod network;
mod time;

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);

/// A locker whose leases aren't renewed.
fn unrenewed(fake: &Fake) -> Locker {
    let locker = fake.builder().ttl(TTL).renew(false).build();
    locker.expect("they are valid options")
}

#[track_caller]
fn lock(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock("a").expect("it answers");
    guard.expect("it is free")
}

#[track_caller]
fn assert_taken(locker: &Locker) {
    assert!(locker.try_lock("a").expect("it answers").is_none());
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(outcome: &Result<T>) {
    let is_unavailable = matches!(outcome, Err(Error::Unavailable { .. }));
    assert!(is_unavailable, "{outcome:?}");
}

#[track_caller]
fn assert_lost(guard: &LockGuard, reason: LostReason) {
    // The message is there already.
    assert_eq!(guard.lost().try_recv().map(|lost| lost.reason), Ok(reason));
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
}

#[track_caller]
fn assert_held(guard: &LockGuard) {
    assert_eq!(guard.lost().try_recv(), Err(TryRecvError::Empty));
    guard.check().expect("it is held");
}

#[test]
fn fakes_are_apart_and_lockers_of_one_exclude_each_other() {
    let [one, other] = [Fake::new(), Fake::default()];
    let guard = lock(&one.locker());
    assert_taken(&one.clone().locker());
    assert_taken(&one.builder().build().expect("it is valid"));
    let _other = lock(&other.locker());
    let _apart = lock(&one.locker().with_namespace("b").expect("it is valid"));
    drop(guard);
    drop(lock(&one.locker()));
}

#[test]
fn namespace_is_that_of_its_lockers_and_losses() {
    let fake = Fake::new();
    let deploy = fake.with_namespace("deploy").expect("it is valid");
    let guards = [lock(&fake.locker()), lock(&deploy.locker())];
    assert_taken(&deploy.builder().build().expect("it is valid"));
    deploy.lose("a");
    assert_held(&guards[0]);
    assert_lost(&guards[1], LostReason::NotOwner);
    assert!(fake.with_namespace("a b").is_err());
}

#[test]
fn cancelled_and_closed_waits_end_although_the_clock_stands() {
    let fake = Fake::new();
    let _guard = lock(&fake.locker());
    for is_out in [false, true] {
        let (token, closed) = (CancelToken::new(), fake.locker());
        let cancelled = fake.locker().with_cancel(&token);
        let waiters = [cancelled.clone(), cancelled, closed.clone(), closed.clone()]
            .map(|locker| thread::spawn(move || locker.try_lock_for("a", SECOND)));
        fake.await_waiters("a", 4);
        fake.set_outage(is_out);
        token.cancel();
        closed.close();
        for waiter in waiters {
            let ended = waiter.join().expect("no panic");
            assert!(matches!(ended, Err(Error::Cancelled { .. })), "{ended:?}");
        }
        fake.set_outage(false);
        assert_eq!(fake.world.waits.lock().len(), 0);
    }
}

#[test]
fn counted_attempts_end_by_themselves() {
    let fake = Fake::new();
    let _guard = lock(&fake.locker());
    for is_out in [false, true] {
        fake.set_outage(is_out);
        let locker = fake.builder().attempts(3).build().expect("it is valid");
        let ended = locker.lock("a");
        let is_right = match ended {
            Err(Error::Unavailable { .. }) => is_out,
            Err(Error::Busy { attempts: 3, .. }) => !is_out,
            _ => false,
        };
        assert!(is_right, "{ended:?}");
    }
    assert_eq!(fake.elapsed(), Duration::ZERO);
}

#[test]
fn threads_exclude_each_other_whatever_the_clock_does() {
    const ROUNDS: usize = 50;
    let fake = Fake::new();
    let inside = Arc::new(Mutex::new(()));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let locker = if number % 2 == 0 {
                fake.locker()
            } else {
                fake.builder()
                    .hand_over(Duration::ZERO)
                    .build()
                    .expect("it is valid")
            };
            let inside = inside.clone();
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let guard = locker.lock("a").expect("it answers");
                    let alone = inside.try_lock().expect("nobody else is here");
                    thread::yield_now();
                    guard.check().expect("it is renewed");
                    drop(alone);
                }
            })
        })
        .collect();
    while !threads.iter().all(thread::JoinHandle::is_finished) {
        fake.advance(SECOND / 2);
    }
    threads
        .into_iter()
        .for_each(|it| it.join().expect("no panic"));
    assert_eq!(
        fake.locker().inspect("a").map(|it| it.state).ok(),
        Some(LockState::Free)
    );
}
