//! What operators see of a cluster: its locks, and what it is like.

use std::collections::BTreeSet;

use crosslock::{Finding, Locker, Verdict};
use support::Cluster;

use super::{name_on, open, slot, start};

fn finding(locker: &Locker, check: &str) -> Finding {
    let findings = locker.diagnose().expect("diagnose");
    let found = findings.into_iter().find(|finding| finding.check == check);
    found.expect("it is looked at")
}

#[test]
fn doctor_names_slots_on_their_way() {
    // Its failovers are short enough.
    let cluster = Cluster::start();
    let locker = open(&cluster);
    let findings = locker.diagnose().expect("diagnose");
    let checks: BTreeSet<_> = findings.iter().map(|finding| finding.check).collect();
    assert_eq!(checks.len(), findings.len(), "{findings:?}");
    for check in ["rights", "inbox", "slots", "failover", "version"] {
        let finding = finding(&locker, check);
        assert_eq!(finding.verdict, Verdict::Fine, "{finding:?}");
    }
    let name = name_on(&cluster, 0, 0);
    let migration = cluster.migration(slot(&name), 1);
    migration.import();
    migration.migrate();
    let slots = finding(&locker, "slots");
    assert!(matches!(slots.verdict, Verdict::Weak { .. }), "{slots:?}");
    let words = format!("1 on their way: {}", slot(&name));
    assert_eq!(slots.found, words);
    migration.finish();
    // It leaves nothing behind.
    for node in 0..3 {
        assert_eq!(cluster.node(node).keys(), Vec::<String>::new());
    }
}

#[test]
fn doctor_goes_on_where_nodes_are_down_and_names_them() {
    let cluster = start();
    let locker = open(&cluster);
    let finding_of_all = finding(&locker, "servers");
    assert_eq!(finding_of_all.verdict, Verdict::Fine, "{finding_of_all:?}");
    cluster.node(1).kill();
    let dead = cluster.node(1).public_addr().to_string();
    let findings = locker.diagnose().expect("the other nodes are looked at");
    let of = |check| {
        let one = findings.iter().find(|one| one.check == check);
        one.expect("it is looked at")
    };
    let servers = of("servers");
    assert!(
        matches!(servers.verdict, Verdict::Weak { .. }),
        "{servers:?}"
    );
    assert!(servers.found.contains(&format!("{dead}: ")), "{servers:?}");
    // A list that would lack some locks is an error, which names the node.
    let listed: Result<Vec<_>, _> = locker.list("").and_then(Iterator::collect);
    let error = format!("{:?}", listed.expect_err("a node is down"));
    assert!(error.contains(&dead), "{error}");
    for node in [0, 2] {
        cluster.node(node).kill();
    }
    locker.diagnose().expect_err("nobody answers");
}
