//! What a user needs in a cluster: what the documentation says, and no less.

use std::thread;

use crosslock::{Error, Locker, Verdict};
use support::{Cluster, Setup};

use super::{PATIENCE, held, millis, name_on, slot};

const PAGE: &str = include_str!("../../../docs/cluster.md");

/// The rule of the documentation, without one of its rights.
fn rule(without: &str) -> String {
    let rule = PAGE.split_once("ACL SETUSER ").expect("it is there").1;
    let rule = rule.split_once("```").expect("it ends").0;
    let words = rule.split_whitespace();
    let words: Vec<_> = words.filter(|word| *word != without).collect();
    format!("user {}", words.join(" "))
}

fn start() -> (Cluster, String) {
    let cluster = Setup::new().calm().acl(&[&rule("")]).cluster();
    let url = format!("redis+cluster://app:password@{}", cluster.hosts());
    (cluster, url)
}

/// Gives the user, on every node, what the rule says without one of its rights.
fn take_away(cluster: &Cluster, right: &str) {
    let rule = rule(right);
    let mut words = vec!["ACL", "SETUSER", "app", "reset"];
    words.extend(rule.split_whitespace().skip(2));
    for node in 0..6 {
        cluster.node(node).query::<()>(&words);
    }
}

#[test]
fn documented_rights_are_enough() {
    let (cluster, url) = start();
    let locker = Locker::open(&url).expect("open");
    for node in 0..3 {
        let name = name_on(&cluster, node, 0);
        let guard = held(&locker, &name);
        let waiting = {
            let (other, name) = (Locker::open(&url).expect("open"), name.clone());
            thread::spawn(move || other.try_lock_for(&name, PATIENCE))
        };
        thread::sleep(millis(50));
        let migration = cluster.migration(slot(&name), (node + 1) % 3);
        migration.import();
        migration.migrate();
        migration.move_keys();
        // Behind ASKING.
        guard.verify().expect("it is held");
        migration.finish();
        drop(guard);
        let next = waiting.join().expect("no panic").expect("lock");
        assert!(next.is_some());
        assert_eq!(locker.inspect(&name).expect("inspect").holders.len(), 1);
        assert_eq!(locker.list("").expect("list").count(), 1);
        assert_eq!(locker.break_lock(&name).expect("break").len(), 1);
    }
    let permits = locker.semaphore("permits", 2).expect("a semaphore");
    drop(permits.acquire().expect("acquire"));
    for finding in locker.diagnose().expect("diagnose") {
        if ["rights", "inbox"].contains(&finding.check) {
            assert_eq!(finding.verdict, Verdict::Fine, "{finding:?}");
        }
    }
}

#[test]
fn missing_rights_and_a_wrong_password_are_told() {
    let (cluster, url) = start();
    let wrong = Locker::open(&url.replace("password", "wrong-one"));
    let error = wrong.expect_err("it isn't the password");
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("wrong-one"));
    take_away(&cluster, "+cluster|slots");
    let error = Locker::open(&url).expect_err("it can't find a node");
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    for (right, check, named) in [
        ("+asking", "rights", "ASKING"),
        ("+ssubscribe", "inbox", "SSUBSCRIBE"),
        ("+pubsub|shardnumsub", "inbox", "PUBSUB SHARDNUMSUB"),
    ] {
        take_away(&cluster, right);
        let locker = Locker::open(&url).expect("open");
        let findings = locker.diagnose().expect("diagnose");
        let finding = findings.iter().find(|finding| finding.check == check);
        let finding = finding.expect("it is looked at");
        assert!(finding.found.contains(named), "{finding:?}");
        assert!(format!("{:?}", finding.verdict).contains("docs/cluster.md"));
    }
}
