//! What a test asks a server about.

use super::*;
use support::wait_until;

#[test]
fn calls_are_counted_by_their_outcome() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for value in ["1", "2", "3"] {
        server.query::<()>(&["SET", "key", value]);
    }
    let missing = "0123456789012345678901234567890123456789";
    for fails in [["LPUSH", "key", "value"], ["EVALSHA", missing, "0"]] {
        let outcome = cmd(fails[0]).arg(&fails[1..]).exec(&mut connection);
        outcome.unwrap_err();
        assert_eq!(server.command_calls(fails[0]), 0, "{fails:?}");
        assert_eq!(server.failed_calls(fails[0]), 1, "{fails:?}");
    }
    assert_eq!(server.command_calls("set"), 3);
    server.reset_stats();
    assert_eq!(server.command_calls("set"), 0);
}

#[test]
fn clients_are_counted_but_for_the_tests_own() {
    let (server, proxy) = server_with_proxy();
    let _admin = server.connection();
    assert_eq!(server.connected_clients(), 0);
    let wire = Wire::open(&proxy);
    assert_eq!((server.connected_clients(), proxy.connections()), (1, 1));
    drop(wire);
    wait_until("the client to go", PATIENCE, || {
        server.connected_clients() == 0 && proxy.connections() == 0
    });
}
