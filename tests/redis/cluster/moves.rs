//! Nodes that are at odds over who has a slot.

use super::{cause, held, name_on, open, slot, start};

#[test]
fn nodes_that_send_to_each_other_end_a_call() {
    let cluster = start();
    let locker = open(&cluster);
    let name = name_on(&cluster, 0, 0);
    let slot = slot(&name).to_string();
    // Neither has it: each believes the other.
    for (node, other) in [(0, 1), (1, 0), (2, 1)] {
        let id = cluster.id(other);
        cluster
            .node(node)
            .query::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }
    let failed = locker.try_lock(&name);
    let told = cause(&failed.expect_err("nobody has it"));
    assert!(told.contains("to each other"), "{told}");
    // Other slots of the same nodes are as before.
    drop(held(&locker, &name_on(&cluster, 0, 1)));
    drop(held(&locker, &name_on(&cluster, 1, 0)));
}
