//! Resources.

use super::*;
use support::Child;

#[test]
fn resources_are_counted() {
    // Alone in a process, because other tests open things as well.
    let mut child = Child::spawn("counts resources", &[]);
    assert!(child.wait(PATIENCE).success());
}
