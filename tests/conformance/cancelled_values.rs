//! A token ends calls for locks with values.

use std::thread;
use std::time::Duration;

use crosslock::CancelToken;

use crate::Place;
use crate::cancel::assert_cancelled;

pub(crate) fn lock_with_a_value_ends(place: &Place) {
    let token = CancelToken::new();
    let mutex = place.cancelled_by(&token).mutex("a", 1_u64).unwrap();
    let guard = place.mutex("a", 1_u64).unwrap();
    let guard = guard.lock().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.lock().map(drop));
        thread::sleep(Duration::from_millis(100));
        token.cancel();
        assert_cancelled(waiter.join().expect("no panic"));
    });
    assert_cancelled(mutex.get());
    assert_cancelled(mutex.remove());
    drop(guard);
}
