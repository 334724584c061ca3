//! A token ends calls for locks with values.

use std::thread;

use crosslock::CancelToken;

use crate::Place;
use crate::cancel::assert_cancelled;
use crate::waiters::Waiters;

pub(crate) fn lock_with_a_value_ends(place: &Place) {
    let token = CancelToken::new();
    let (lock, waiters) = Waiters::of(place);
    let mutex = lock.with_cancel(&token).mutex("a", 1_u64).unwrap();
    let guard = lock.mutex("a", 1_u64).unwrap();
    let guard = guard.lock().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.lock().map(drop));
        waiters.wait_for(1);
        token.cancel();
        assert_cancelled(waiter.join().expect("no panic"));
    });
    assert_cancelled(mutex.peek());
    assert_cancelled(mutex.remove());
    drop(guard);
}
