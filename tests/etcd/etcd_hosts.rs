//! Hosts of a URL that don't answer, or can't serve.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::*;
use crosslock::LeaseTicket;
use support::{BlackHole, ClosedPort, Etcd, EtcdCluster, Stopwatch, within};

/// How long the first host that swallows connections may delay the call that finds it.
const FIRST_DELAY: Duration = millis(250);

#[test]
fn hosts_that_do_not_answer_are_passed_over() {
    let (server, hole, closed) = (Etcd::start(), BlackHole::start(), ClosedPort::reserve());
    let url = format!(
        "etcd://{},{},{}/",
        hole.addr(),
        closed.addr(),
        server.addr()
    );
    // Any of the three may be its first.
    for _ in 0..10 {
        // Its share of the time would be seconds.
        let builder = Locker::builder(&url).connect_timeout(millis(20_000));
        let locker = within(FIRST_DELAY + millis(200), || builder.build().unwrap());
        // The one that has answered is asked first.
        within(millis(200), || assert_works(&locker));
    }
}

#[test]
fn call_ends_in_time_where_no_host_answers() {
    let (holes, closed) = ([(); 2].map(|()| BlackHole::start()), ClosedPort::reserve());
    let hosts = [holes[0].addr(), holes[1].addr(), closed.addr()].map(|addr| addr.to_string());
    let url = format!("etcd://{}/", hosts.join(","));
    let builder = Locker::builder(&url).connect_timeout(millis(300));
    let builder = builder.io_timeout(millis(300));
    let error = within(millis(600), || builder.build()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    // It names each, and what is wrong with it.
    let cause = std::error::Error::source(&error).expect("a cause");
    let cause = cause.to_string();
    for host in hosts {
        assert!(cause.contains(&format!("{host}: ")), "{cause}");
    }
}

#[test]
fn calls_without_a_timeout_end_where_no_host_answers() {
    type Call = fn(&Locker, &LeaseTicket) -> Result<(), Error>;
    let server = Etcd::start();
    let builder = Locker::builder(&server.url()).connect_timeout(millis(300));
    let locker = builder.io_timeout(millis(300)).build().expect("open");
    let guard = held(&locker);
    let ticket = locker
        .lock("passed on")
        .expect("lock")
        .into_ticket()
        .expect("a ticket");
    server.kill();
    let calls: [Call; 5] = [
        |locker, _| locker.inspect(NAME).map(drop),
        |locker, _| locker.break_lock(NAME).map(drop),
        |locker, _| locker.list("")?.try_for_each(|name| name.map(drop)),
        |locker, _| {
            locker
                .semaphore("permits", 2)?
                .available_permits()
                .map(drop)
        },
        |locker, ticket| locker.adopt(ticket).map(drop),
    ];
    for call in calls {
        let (locker, ticket) = (locker.clone(), ticket.to_secret().parse());
        let ticket: LeaseTicket = ticket.expect("a ticket");
        // Not scoped: one that never ends would keep the test from failing.
        let asks = thread::spawn(move || call(&locker, &ticket));
        wait_until("an answer", PATIENCE, || asks.is_finished());
        let answer = asks.join().expect("no panic");
        support::assert_like!(answer, Err(Error::Unavailable { .. }));
    }
    drop(guard);
}

#[test]
fn call_ends_in_time_where_all_members_hang() {
    let cluster = EtcdCluster::of(3);
    let locker = Locker::builder(&cluster.url()).io_timeout(LONG / 20);
    let locker = locker.outage_timeout(Duration::ZERO).build().unwrap();
    assert_works(&locker);
    (0..3).for_each(|member| cluster.stop(member));
    let timeout = millis(300);
    let tried = within(timeout, || locker.try_lock_for(NAME, timeout));
    assert!(matches!(tried, Err(Error::Unavailable { .. })), "{tried:?}");
    (0..3).for_each(|member| cluster.go_on(member));
    cluster.leader();
    let locker = open(&cluster.url());
    wait_until("the lock", PATIENCE, || {
        matches!(locker.try_lock(NAME), Ok(Some(_)))
    });
}

/// A locker that asks that member first.
fn asks_first(cluster: &EtcdCluster, member: usize) -> Locker {
    let url = cluster.url();
    let builder = Locker::builder(&url).ttl(millis(9_000));
    let builder = builder.renew_every(millis(500));
    let proxy = cluster.member(member).proxy();
    proxy.asked_first_by(|| builder.clone().build().unwrap())
}

#[test]
fn guard_outlives_a_leader_that_hangs() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let leader = cluster.leader();
    let locker = asks_first(&cluster, leader);
    let guard = held(&locker);
    wait_for_renewal(&guard);
    cluster.stop(leader);
    (0..3).for_each(|_| wait_for_renewal(&guard));
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
    cluster.go_on(leader);
}

#[test]
fn member_that_was_killed_is_left_for_another() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let locker = asks_first(&cluster, 0);
    assert_works(&locker);
    let guard = held(&locker);
    cluster.kill(0);
    cluster.leader();
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
    assert_works(&locker);
}

#[test]
fn member_without_a_leader_is_left_for_another() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let locker = asks_first(&cluster, 0);
    let guard = held(&locker);
    // It answers all that it can.
    cluster.isolate(0);
    (0..3).for_each(|_| wait_for_renewal(&guard));
    let watch = Stopwatch::start();
    let other = locker.lock("other").expect("lock");
    watch.assert_within(millis(1_000));
    drop(other);
    let watch = Stopwatch::start();
    if let Err(error) = guard.unlock() {
        // Its servers write to the disk before they answer.
        return watch.assert_late(millis(200), millis(400), error);
    }
    cluster.take_back(0);
    assert_works(&locker);
}

#[test]
fn port_of_something_else_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    for answer in [
        "HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret",
        "-ERR secret\r\n",
    ] {
        let peer = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 1 << 12]).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let url = format!("etcd://{addr}/");
            within(millis(1_000), || Locker::open(&url)).unwrap_err()
        });
        assert!(matches!(peer, Error::Engine { .. }), "{peer}");
        assert!(!shown(&peer).contains("secret"), "{}", shown(&peer));
    }
}
