//! The ttls that servers give, and nodes that belong to the login that makes them.

use super::*;
use crosslock::Error;
use support::Fault;

#[test]
fn ttl_that_servers_do_not_give_is_told_with_what_they_do() {
    let server = ZooKeeper::start();
    for (ttl, query, least) in [
        (399, "", "400ms"),
        (2_001, "", "400ms"),
        (700, "?tick=200ms", "800ms"),
    ] {
        let opened = Locker::builder(&(server.url() + query))
            .ttl(millis(ttl))
            .build();
        let Err(Error::InvalidOption { option, reason, .. }) = opened else {
            panic!("{ttl}: {opened:?}")
        };
        assert_eq!(option, "ttl");
        assert!(reason.contains(least) && reason.contains("2s"), "{reason}");
    }
    for ttl in [400, 1_234, 2_000] {
        let opened = Locker::builder(&server.url()).ttl(millis(ttl)).build();
        opened.expect("open");
    }
}

const NO_AUTH: i32 = -102;

fn login(server: &ZooKeeper, login: &str) -> String {
    format!("{}?auth=digest:{login}", server.url_at("locks"))
}

#[test]
fn others_have_no_access_to_the_nodes_of_a_login() {
    let server = setup().proxies().start();
    let locker = open(&login(&server, "me:secret"));
    let guard = held(&locker);
    let mut stranger = server.session();
    assert_eq!(stranger.children("/locks"), Err(NO_AUTH));
    stranger.close();
    // Who doesn't have the login is told so, and who has it waits.
    for url in [server.url_at("locks"), login(&server, "me:other")] {
        let opened = builder(&url).build();
        let refused = opened.and_then(|locker| locker.try_lock(NAME));
        match refused {
            Err(error @ Error::Denied { .. }) => {
                assert!(!format!("{error} {error:?}").contains("other"));
            }
            other => panic!("{url}: {other:?}"),
        }
    }
    let other = open(&login(&server, "me:secret"));
    assert!(other.try_lock(NAME).expect("try_lock").is_none());
    // The login is of a connection: the next one has it, too.
    server.proxy().set(Fault::Refuse);
    server.proxy().set(Fault::None);
    guard.verify().expect("verify");
    drop(guard);
    assert_works(&other);
}
