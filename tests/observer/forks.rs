//! Forks, in a process of their own: the other threads of this one may hold anything.

use super::*;
use support::Child;
use support::puppet::{TTL, URL};

#[test]
fn guard_that_a_forked_child_inherits_tells_nothing_there() {
    let args = [(URL, "memory:"), (TTL, "100")];
    let mut child = Child::spawn("forks with an observer", &args);
    assert!(child.wait(PATIENCE).success());
}
