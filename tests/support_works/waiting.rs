//! Waiting for a condition.

use std::panic::catch_unwind;
use std::time::Duration;

use support::{eventually, wait_until};

#[test]
fn condition_that_never_holds_is_named() {
    let waiting = || wait_until("the moon", Duration::from_millis(5), || false);
    let panic = catch_unwind(waiting).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("the moon"));
}

#[test]
fn condition_is_tried_without_any_time() {
    assert!(eventually(Duration::ZERO, || true));
}
