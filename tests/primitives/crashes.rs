//! Those that read, write or hold permits or several names, killed and stopped.

use super::*;
use support::RedisServer;
use support::puppet::Puppet;

#[test]
fn what_a_killed_holder_had_comes_back_after_its_ttl() {
    const LEASE: Duration = millis(600);
    let server = RedisServer::start();
    // Whether the next one is told that the one before never released it.
    for (dead, next, is_told) in [
        ("read n", "write n", false),
        ("write n", "read n", true),
        ("write n", "write n", true),
        ("permits 2/2 n", "permits 1/2 n", false),
        ("permits 1/2 n", "permits 2/2 n", false),
        ("all a n", "all n b", true),
        ("all a n", "write n", true),
        ("write n", "all a n", true),
    ] {
        let mut holder = Puppet::start(&server.url(), LEASE);
        let mut waiter = Puppet::start(&server.url(), Duration::from_secs(10));
        holder.tell(dead);
        let token = holder.holding().token;
        holder.kill();
        let watch = Stopwatch::start();
        waiter.tell(next);
        let holding = waiter.holding();
        watch.assert_within(LEASE);
        assert!(holding.token > token, "{dead}, {next}");
        assert_eq!(holding.abandoned, is_told, "{dead}, {next}");
        waiter.unlock();
        assert_nothing_left(&server);
    }
}

/// What the third one wants is free.
#[test]
fn killed_waiter_is_not_in_the_way() {
    for (holding, dead, next) in [
        ("read n", "write n", "read n"),
        ("permits 1/3 n", "permits 3/3 n", "permits 1/3 n"),
    ] {
        let server = RedisServer::start();
        let mut processes = Puppet::start_many(3, &server.url(), Duration::from_secs(10));
        processes[0].tell(holding);
        processes[0].holding();
        processes[1].tell(dead);
        wait_for_queue(&server, 1);
        processes[1].kill();
        let watch = Stopwatch::start();
        processes[2].tell(next);
        processes[2].holding();
        watch.assert_within(Duration::ZERO);
    }
}
