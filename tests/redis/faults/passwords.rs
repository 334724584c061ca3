//! Passwords.

use crosslock::Locker;

use super::rights::{PASSWORD, assert_denied};
use super::*;
use support::RedisServer;

#[test]
fn wrong_or_missing_password_is_denied_and_not_shown() {
    let server = RedisServer::builder().password("another").start();
    let place = server.addr().to_string();
    let with = |credentials: &str| server.url_as(credentials);
    for url in [
        with(&format!(":{PASSWORD}")),
        with(&format!("default:{PASSWORD}")),
        with(&format!("nobody:{PASSWORD}")),
        server.url(),
    ] {
        let error = within(millis(100), || Locker::open(&url)).unwrap_err();
        assert_denied(&error, &place);
    }
    Locker::open(&with(":another")).unwrap();
    assert_no_clients(&server);
}

#[test]
fn password_to_a_server_without_one_is_denied_and_not_shown() {
    let server = RedisServer::start();
    let error = Locker::open(&server.url_as(&format!(":{PASSWORD}"))).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
    assert_no_clients(&server);
}

#[test]
fn password_with_special_characters_is_decoded() {
    let server = RedisServer::builder().password("p@ss:w/rd?#%").start();
    let locker = Locker::open(&server.url_as(":p%40ss%3Aw%2Frd%3F%23%25")).unwrap();
    assert_works(&locker);
}

#[test]
fn password_is_in_no_debug_output() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let url = server.url_as(&format!(":{PASSWORD}"));
    let builder = Locker::builder(&url);
    assert!(!format!("{builder:?}").contains(PASSWORD));
    let locker = builder.build().unwrap();
    assert!(!format!("{locker:?}").contains(PASSWORD));
    let guard = held(&locker);
    assert!(!format!("{guard:?}").contains(PASSWORD));
}

#[test]
fn password_that_is_changed_meanwhile_is_denied_to_new_connections() {
    let server = RedisServer::builder().password("old").start();
    let locker = Locker::open(&server.url_as(":old")).unwrap();
    assert_works(&locker);
    server.query::<()>(&["CONFIG", "SET", "requirepass", "new"]);
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = within(millis(100), || locker.lock(NAME)).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
}
