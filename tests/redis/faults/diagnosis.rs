//! What is told about a server that may lose locks, or that shows little of itself.

use crosslock::{Finding, Verdict};

use super::rights::{OURS, PASSWORD, server_with, url_of, user};
use super::*;
use support::RedisServer;

fn diagnosed(url: &str) -> Vec<Finding> {
    open(url).diagnose().expect("it can be looked at")
}

/// In one word.
fn verdict(findings: &[Finding], check: &str) -> String {
    found(findings, check).verdict.to_string()
}

#[track_caller]
fn found<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("no {check} in {findings:?}"))
}

#[test]
fn server_that_keeps_everything_is_fine() {
    let server = RedisServer::builder().append_only().start();
    let findings = diagnosed(&server.url());
    assert_eq!(server.keys(), [""; 0], "it leaves nothing behind");
    let channels: Vec<String> = server.query(&["PUBSUB", "CHANNELS"]);
    assert_eq!(channels, [""; 0]);
    let others = findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Fine);
    // A busy machine may be slow.
    let others: Vec<_> = others
        .filter(|finding| finding.check != "latency")
        .collect();
    assert!(others.is_empty(), "{others:?}");
    for check in "version persistence eviction replication rights inbox latency".split(' ') {
        found(&findings, check);
    }
}

#[test]
fn what_is_hidden_is_unknown() {
    let builder = RedisServer::builder()
        .append_only()
        .config("rename-command", "HELLO \"\"");
    let bare = builder.config("rename-command", "CONFIG \"\"").start();
    let limited = server_with(&[user("app", OURS, None)]);
    for (url, hidden, eviction) in [
        (bare.url(), "persistence", "fine"),
        (url_of(&limited, "app"), "replication", "unknown"),
    ] {
        let findings = diagnosed(&url);
        assert_eq!(verdict(&findings, "version"), "fine");
        assert_eq!(verdict(&findings, hidden), "unknown");
        assert_eq!(verdict(&findings, "eviction"), eviction);
        assert!(!format!("{findings:?}").contains(PASSWORD));
    }
    assert!(limited.keys().is_empty());
}

#[test]
fn right_that_is_missing_is_named() {
    const MISSING: [(&str, &str); 7] = [
        ("set", "rights"),
        ("rpush", "rights"),
        ("evalsha", "rights"),
        ("zadd", "rights"),
        ("publish", "inbox"),
        ("subscribe", "inbox"),
        ("pubsub|numsub", "inbox"),
    ];
    let server = server_with(&MISSING.map(|(right, _)| user(right, OURS, Some(right))));
    for (right, check) in MISSING {
        let findings = diagnosed(&url_of(&server, right));
        let finding = found(&findings, check);
        assert_eq!(finding.verdict.to_string(), "weak", "{right}: {finding:?}");
        let name = right.to_uppercase().replace('|', " ");
        assert!(finding.found.contains(&name), "{right}: {finding:?}");
        wait_until("the key to go", PATIENCE, || server.keys().is_empty());
    }
}

#[test]
fn user_of_other_keys_is_told() {
    let other = "~{other:* resetchannels &other:inbox:*";
    let server = server_with(&[user("other", other, None)]);
    let locker = open(&url_of(&server, "other"));
    for (locker, is) in [
        (&locker, "weak"),
        (
            &locker.with_namespace("other").expect("a namespace"),
            "fine",
        ),
    ] {
        let findings = locker.diagnose().expect("findings");
        assert_eq!(verdict(&findings, "rights"), is);
        assert_eq!(verdict(&findings, "inbox"), is);
    }
}
