//! What operators are told of a cluster.

use crosslock::{Finding, Locker, Verdict};
use support::Cluster;

use super::{name_on, open, slot};

fn finding(locker: &Locker, check: &str) -> Finding {
    let findings = locker.diagnose().expect("diagnose");
    let found = findings.into_iter().find(|finding| finding.check == check);
    found.expect("it is looked at")
}

#[track_caller]
fn assert_weak(finding: &Finding) {
    assert!(
        matches!(finding.verdict, Verdict::Weak { .. }),
        "{finding:?}"
    );
}

#[test]
fn doctor_names_slots_on_their_way_and_nodes_that_are_down() {
    // Its failovers are short enough.
    let cluster = Cluster::start();
    let locker = open(&cluster);
    for check in ["rights", "inbox", "slots", "failover", "version", "servers"] {
        let finding = finding(&locker, check);
        assert_eq!(finding.verdict, Verdict::Fine, "{finding:?}");
    }
    let name = name_on(&cluster, 0, 0);
    let migration = cluster.migration(slot(&name), 1);
    migration.import();
    migration.migrate();
    let slots = finding(&locker, "slots");
    assert_weak(&slots);
    assert_eq!(slots.found, format!("1 migrating: {}", slot(&name)));
    migration.finish();
    // It leaves nothing behind.
    for node in 0..3 {
        assert_eq!(cluster.node(node).keys(), [""; 0]);
    }
    cluster.node(1).kill();
    let dead = cluster.node(1).public_addr().to_string();
    let servers = finding(&locker, "servers");
    assert_weak(&servers);
    assert!(servers.found.contains(&format!("{dead}: ")), "{servers:?}");
    // A list that would lack some locks is an error, which names the node.
    let listed = locker
        .list("")
        .and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let error = format!("{:?}", listed.expect_err("a node is down"));
    assert!(error.contains(&dead), "{error}");
}
