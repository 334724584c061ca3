//! A lock is granted only when enough replicas have its lease.

use super::*;

#[test]
fn free_lock_without_replicas_is_unavailable_and_left_free() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let locker = open(&set, 1);
    let error = locker.try_lock(NAME).unwrap_err();
    assert_too_few(&error);
    assert!(error.to_string().contains("check its replicas"), "{error}");
    assert_released(&set, 0);
    // The server itself is well.
    drop(held(&open(&set, 0)));
}
