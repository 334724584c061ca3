use std::thread;
use std::time::Duration;

use crossbeam_channel::{TryRecvError, bounded, unbounded};

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
fn lost_lock_is_free_for_the_next_who_does_not_find_it_abandoned() {
    let fake = Fake::new();
    let guards = [fake.locker().read("a"), fake.locker().read("a")];
    let guards = guards.map(|guard| guard.expect("readers read together"));
    fake.lose("a");
    for guard in &guards {
        assert_lost(guard, LostReason::NotOwner);
    }
    let next = lock(&fake.locker());
    assert!(!next.was_abandoned());
    drop(guards);
    assert_held(&next);
    next.verify().expect("a late release takes nothing");
    fake.lose("b");
    fake.lose("");
}

#[test]
fn abandoned_lock_is_told_to_the_next_exclusive_holder_once() {
    let fake = Fake::new();
    let guard = lock(&fake.locker());
    fake.abandon("a");
    assert_lost(&guard, LostReason::Expired);
    assert!(lock(&fake.locker()).was_abandoned());
    assert!(!lock(&fake.locker()).was_abandoned());
    fake.abandon("a");
    assert!(lock(&fake.locker()).was_abandoned());
    let semaphore = fake.locker().semaphore("a", 2).expect("it is valid");
    let permit = semaphore.acquire().expect("it is free");
    fake.abandon("a");
    assert_lost(&permit, LostReason::Expired);
}

#[test]
fn several_names_are_lost_with_one_of_them() {
    let fake = Fake::new();
    let guard = fake.locker().lock_all(&["a", "b"]).expect("they are free");
    fake.lose("b");
    assert_lost(&guard, LostReason::NotOwner);
    assert_taken(&fake.locker());
    drop(guard);
    drop(lock(&fake.locker()));
}

#[test]
fn waiter_has_a_lost_lock_when_that_returns() {
    for is_abandoned in [false, true] {
        let fake = Fake::new();
        let _guard = lock(&fake.locker());
        let other = fake.locker();
        let (tell, told) = bounded(1);
        let waiter = thread::spawn(move || tell.send(other.lock("a")).is_ok());
        fake.await_waiters("a", 1);
        if is_abandoned {
            fake.abandon("a");
        } else {
            fake.lose("a");
        }
        assert_eq!(
            fake.locker().inspect("a").map(|it| it.waiters.len()).ok(),
            Some(0)
        );
        let guard = told.recv().expect("it comes").expect("it has the lock");
        assert_eq!(guard.was_abandoned(), is_abandoned);
        assert!(waiter.join().expect("no panic"));
    }
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
