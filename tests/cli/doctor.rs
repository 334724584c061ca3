//! `doctor`.

use crate::holders::{json, shape};
use crate::tool::{Place, on_terminal};

#[track_caller]
fn assert_has(printed: &str, parts: &[&str]) {
    for part in parts {
        assert!(printed.contains(part), "{part:?} isn't in {printed}");
    }
}

#[test]
fn weak_server_is_told_with_status_1() {
    let (_server, place) = Place::with_server();
    let done = place.tool("doctor").ends(1);
    assert_eq!(done.err, "");
    let parts = [
        "weak\tpersistence\tno persistence\ta restart of the server loses delayed tasks and frees locks ",
        "fencing tokens still increase, because they follow the server's clock\tset appendonly yes ",
        "\nfine\teviction\tnoeviction, and no memory limit\t-\t-\n",
        "\nfine\treplication\ta primary without replicas, so no failover can lose locks\t-\t-\n",
        "\nfine\trights\tthis user is allowed everything that locks need\t-\t-\n",
        "\nfine\tinbox\tthis user can notify waiters and be notified\t-\t-\n",
    ];
    assert_has(&done.out, &parts);
    let done = on_terminal(&place, "$X doctor", "");
    assert_eq!(done.code(), 1);
    let shown = done.out.replace("\x1b[1m", "").replace("\x1b[0m", "");
    let parts = [
        "weak persistence no persistence\nSo: a restart of the server loses delayed tasks and frees\nlocks whose ",
        "\nTry: set appendonly yes and appendfsync always, or let\nstorage check the fencing token\n",
    ];
    assert_has(&shape(&shown, &[]), &parts);
}

#[test]
fn directory_is_looked_at_also_where_it_is_an_argument() {
    let (place, other) = (Place::with_files(), Place::with_files());
    let done = other.tool_with(&["doctor", place.url()]).ends(0);
    let parts = [
        "\tdirectory\t",
        "\tfile system\t",
        "\tlocking\t",
        "\tspace\t",
    ];
    assert_has(&done.out, &parts);
    assert_has(&done.out, &[&place.dir().display().to_string()]);
    assert_eq!(done.err, "");
    assert!(!other.path("locks").exists());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("locks"), mode).expect("change the mode");
    let done = place.tool("doctor").ends(1);
    assert_has(&done.out, &["weak\tdirectory\t"]);
    let objects = place.tool("--json doctor").ends(1).out;
    let found: Vec<_> = objects.lines().map(json).collect();
    let weak = found.iter().find(|it| it["verdict"] == "weak");
    assert_eq!(weak.expect("one is")["check"], "directory");
}

#[test]
fn locks_of_one_user_are_told_to_be_that() {
    let done = Place::with_locks_at("file:").tool("doctor").done();
    assert_has(
        &done.err,
        &["only commands of this user", "file:///var/lock/crosslock"],
    );
}
