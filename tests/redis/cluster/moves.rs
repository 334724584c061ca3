//! Slots that move while locks in them are held, waited for and renewed.

use crosslock::Error;
use support::slot_of;

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
    assert!(told.contains("from one to the other"), "{told}");
    // Other slots of the same nodes are as before.
    drop(held(&locker, &name_on(&cluster, 0, 1)));
    drop(held(&locker, &name_on(&cluster, 1, 0)));
}

#[test]
fn key_that_is_there_already_is_asked_for_there_this_once() {
    let cluster = start();
    let locker = open(&cluster).with_namespace("").expect("a namespace");
    let name = (0..).map(|number| format!("name-{number}"));
    let mut here = name.filter(|name| cluster.slots(0).contains(&slot_of(name)));
    let name = here.next().expect("there is one");
    let guard = held(&locker, &name);
    let migration = cluster.migration(slot_of(&name), 1);
    migration.import();
    migration.migrate();
    migration.move_key(&name);
    // Its counter is at the old node still, so neither may be able to say whether its token is the last.
    let may_be_held = || matches!(guard.verify(), Ok(()) | Err(Error::Unavailable { .. }));
    assert!(may_be_held());
    // A script of one key, which the new node doesn't know: its answer to that uses ASKING up.
    cluster.node(1).query::<()>(&["SCRIPT", "FLUSH"]);
    let listed: Vec<_> = locker.list("").expect("list").collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].as_ref().expect("a name"), &name);
    // The slot is still the old node's: other names of it are asked for there.
    let before = cluster.node(1).rejected_calls("evalsha");
    assert!(may_be_held());
    assert_eq!(cluster.node(1).rejected_calls("evalsha"), before);
    migration.move_keys();
    migration.finish();
    guard.unlock().expect("it was held");
}
