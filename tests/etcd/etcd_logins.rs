//! Users, passwords and the tokens that stand for them.

use std::thread;

use serde_json::json;

use super::*;
use support::Etcd;

/// The user's password, which nothing may show.
const PASSWORD: &str = "swordfish-7c1d";

#[track_caller]
fn assert_denied(url: &str, words: &str) {
    let opened = Locker::open(url);
    let error = match opened.and_then(|locker| locker.try_lock(NAME).map(drop)) {
        Err(error) => error,
        Ok(()) => panic!("{url} was let in"),
    };
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(&error);
    assert!(text.contains(words), "{text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

#[test]
fn user_has_to_be_known() {
    let server = Etcd::setup().login().start();
    assert_works(&open(&server.url()));
    let wrong = server.url().replace(PASSWORD, "wrong");
    assert_denied(&wrong, "authentication failed");
    let login = format!("locker:{PASSWORD}@");
    assert_denied(&server.url().replace(&login, ""), "put user and password");
    let open_to_all = Etcd::start();
    let with_login = format!("etcd://{login}{}/", open_to_all.addr());
    assert_denied(&with_login, "remove user and password");
}

#[test]
fn user_needs_rights_to_the_root() {
    let server = Etcd::setup().login().start();
    let all = json!({ "role": "locker", "key": "AA==", "range_end": "AA==" });
    server.call("/v3/auth/role/revoke", &all);
    // All that begins with `root/`.
    let perm = json!({ "permType": 2, "key": "cm9vdC8=", "range_end": "cm9vdDA=" });
    let grant = json!({ "name": "locker", "perm": perm });
    server.call("/v3/auth/role/grant", &grant);
    assert_works(&open(&server.url_at("root")));
    assert_denied(&server.url_at("other"), "permission denied");
}

#[test]
fn token_that_has_ended_is_replaced() {
    let server = Etcd::setup().proxies().token_ttl(1).start();
    let locker = open(&server.url());
    let holder = open(&server.url());
    for _ in 0..2 {
        server
            .proxy()
            .lose_next_reply("/v3/auth/authenticate", true);
        let lost = server.proxy().lost_replies();
        wait_until("a login", PATIENCE, || {
            // A token that is used goes on.
            thread::sleep(millis(2_500));
            assert_works(&locker);
            server.proxy().lost_replies() > lost
        });
        // The same where the first thing is a watch, or a release.
        assert_served(&holder, &locker, |guard| {
            thread::sleep(millis(2_500));
            guard.unlock().expect("unlock");
        });
    }
}
