//! `doctor`.

use std::time::Duration;

use support::{RedisServer, Setup};

use crate::golden::assert_golden;
use crate::holders::json;
use crate::tool::{Place, on_terminal};

/// Without what differs from server to server, and from machine to machine.
fn stable(printed: &str) -> String {
    const VARYING: [&str; 3] = ["version", "latency", "clients"];
    let mut is_kept = true;
    let lines = printed.lines().filter(|line| {
        // A finding begins at the left margin, and may go on in the lines below.
        if !line.starts_with(' ') {
            let mut words = line
                .split(['\t', ' '])
                .filter(|word| word.starts_with(char::is_alphabetic));
            is_kept = words.nth(1).is_none_or(|check| !VARYING.contains(&check));
        }
        is_kept
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn weak_server_is_told_with_status_1() {
    let (_server, place) = Place::with_server();
    let done = place.tool("doctor").done();
    assert_eq!((done.code(), &*done.err), (1, ""));
    assert_golden("doctor.pipe", &stable(&done.out), &[]);
    let done = on_terminal(&place, "$X doctor", "");
    assert_eq!(done.code(), 1);
    assert_golden(
        "doctor.terminal",
        &stable(
            &done
                .out
                .replace("\r\n", "\n")
                .replace("\x1b[1m", "")
                .replace("\x1b[0m", ""),
        ),
        &[],
    );
}

#[test]
fn cluster_is_told_as_one_place() {
    let cluster = Setup::new().node_timeout(Duration::from_secs(30)).cluster();
    let place = Place::with_locks_at(&cluster.url());
    let done = place.tool("doctor").done();
    assert_eq!((done.code(), &*done.err), (1, ""));
    let mut printed = stable(&done.out);
    for node in 0..6 {
        let address = cluster.node(node).public_addr().to_string();
        printed = printed.replace(&address, &format!("NODE-{node}"));
    }
    // It isn't so many seconds.
    printed = printed.replace("16384 slots", "ALL slots");
    // It names one node if their replicas are behind by different times.
    for node in 0..6 {
        printed = printed.replace(&format!("NODE-{node}: a primary"), "a primary");
    }
    assert_golden("doctor.cluster", &printed, &[]);
}

#[test]
fn server_that_keeps_everything_is_told_with_status_0() {
    let server = RedisServer::builder().append_only().start();
    let place = Place::with_locks_at(&server.url());
    let done = place.tool("--json doctor").done();
    let findings: Vec<_> = done.out.lines().map(json).collect();
    let not_fine: Vec<_> = findings
        .iter()
        .filter(|it| it["verdict"] != "fine")
        .collect();
    // A machine that is busy enough answers slowly.
    if not_fine.iter().all(|finding| finding["check"] != "latency") {
        assert!(not_fine.is_empty(), "{not_fine:?}");
        assert_eq!(done.code(), 0);
    }
    assert!(findings.iter().any(|it| it["check"] == "persistence"));
}

#[test]
fn directory_is_looked_at() {
    let place = Place::with_files();
    let done = place.tool("doctor").done();
    for check in ["directory", "file system", "locking", "space"] {
        assert!(done.out.contains(&format!("\t{check}\t")), "{}", done.out);
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("locks"), mode).expect("change the mode");
    let done = place.tool("doctor").ends(1);
    assert!(done.out.contains("weak\tdirectory\t"), "{}", done.out);
}

#[test]
fn place_may_be_an_argument() {
    let (place, other) = (Place::with_files(), Place::with_files());
    let done = place.tool_with(&["doctor", other.url()]).ends(0);
    let named = other.dir().display().to_string();
    assert!(done.out.contains(&named), "{}", done.out);
    assert!(!place.path("locks").exists());
}

#[test]
fn locks_of_one_user_are_told_to_be_that() {
    let done = Place::with_locks_at("file:").tool("doctor").done();
    assert!(done.err.contains("this user alone"), "{}", done.err);
    assert!(
        done.err.contains("file:///var/lock/crosslock"),
        "{}",
        done.err
    );
    let done = Place::with_files().tool("doctor").done();
    assert_eq!(done.err, "");
}
