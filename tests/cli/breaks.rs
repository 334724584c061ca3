//! `break`.

use support::RedisServer;

use crate::holders::{end, holder, json, pid};
use crate::tool::{Place, on_terminal};

#[test]
fn nobody_to_ask_is_a_wrong_usage_and_with_yes_the_holder_is_named() {
    let (_server, place) = Place::with_server();
    let old = holder(&place, "--label old deploy", "never");
    let done = place.tool("break deploy").input(b"y\n").ends(64);
    assert!(done.err.contains("--yes"), "{}", done.err);
    place.tool("test deploy").ends(1);

    let out = place.tool("break --yes deploy").ends(0).out;
    let whom = format!("/{} \"old\" for ", pid(&old));
    assert!(out.starts_with("broke deploy, held by "), "{out}");
    assert!(out.contains(&whom), "{out}");
    // It learns of it by its next renewal at the latest.
    old.ends(76);
    place.tool("test deploy").ends(0);

    let old = holder(&place, "deploy", "end");
    let told = json(&place.tool("--json break --yes deploy").done().out);
    assert_eq!(told["broken"][0]["party"]["pid"], pid(&old));
    end(&place, "end");
}

#[test]
fn free_lock_is_no_failure() {
    let place = Place::with_files();
    let done = place.tool("break --yes deploy").ends(0);
    assert_eq!(done.out, "deploy is already free\n");
    let told = json(&place.tool("--json break --yes deploy").done().out);
    let expected = serde_json::json!({"name": "deploy", "broken": []});
    assert_eq!(told, expected);
    let done = on_terminal(&place, "$X break deploy", "");
    assert_eq!(done.code(), 0);
    assert!(!done.out.contains("[y/N]"), "{}", done.out);
}

#[test]
fn lock_that_is_kept_without_a_holder_is_said_to_have_been_so() {
    let server = RedisServer::start();
    for place in [Place::with_locks_at(&server.url()), Place::with_files()] {
        let start = "broke deploy, without a holder, but kept for ";
        place.tool("run deploy --at-least 1h -- true").ends(0);
        let done = place.tool("break --yes deploy").done();
        assert!(done.out.starts_with(start), "{}", done.out);
        place.tool("run deploy --at-least 1h -- true").ends(0);
        let done = on_terminal(&place, "$X break deploy", "y\n");
        assert!(done.out.contains(start), "{}", done.out);
        place.tool("test deploy").ends(0);
    }
}

#[test]
fn person_is_asked() {
    let (_server, place) = Place::with_server();
    let old = holder(&place, "--label old deploy", "never");
    for answer in ["n\n", "\n", "what\n"] {
        let done = on_terminal(&place, "$X break deploy", answer);
        assert_eq!(done.code(), 75, "{answer:?}: {}", done.out);
        let question = format!("/{} \"old\" for ", pid(&old));
        assert!(done.out.contains(&question), "{}", done.out);
        assert!(done.out.contains("? [y/N] "), "{}", done.out);
        place.tool("test deploy").ends(1);
    }
    let done = on_terminal(&place, "$X break deploy", "y\n");
    assert_eq!(done.code(), 0, "{}", done.out);
    assert!(done.out.contains("broke deploy, held by "), "{}", done.out);
    old.ends(76);
}
