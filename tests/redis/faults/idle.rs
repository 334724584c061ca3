//! What becomes of connections that stop working while they are idle.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use crosslock::{Error, Locker, LockerBuilder};

use super::*;
use support::{Child, Fault, Proxy, RedisServer, Stopwatch, wait_until};

/// A relay like a router that forgets its connections: those open then fall silent, and new ones work.
struct Router {
    addr: SocketAddr,
    /// How often it has forgotten.
    era: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    upstream: Arc<Mutex<SocketAddr>>,
}

impl Router {
    fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let router = Router {
            addr,
            era: Arc::default(),
            accepted: Arc::default(),
            upstream: Arc::new(Mutex::new(upstream)),
        };
        let (era, accepted) = (router.era.clone(), router.accepted.clone());
        let upstream = router.upstream.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::SeqCst);
                let upstream = *upstream.lock().expect("no panic");
                let server = TcpStream::connect(upstream).expect("a server");
                relay(&client, &server, &era);
                relay(&server, &client, &era);
            }
        });
        router
    }

    fn forget(&self) {
        self.era.fetch_add(1, Ordering::SeqCst);
    }

    /// New connections lead to another server.
    fn lead_to(&self, upstream: SocketAddr) {
        *self.upstream.lock().expect("no panic") = upstream;
    }

    fn builder(&self) -> LockerBuilder {
        Locker::builder(&format!("redis://{}/", self.addr))
    }

    /// Makes `count` connections, all of them idle afterwards.
    fn fill(&self, lock: &Locker, count: usize) {
        while self.accepted.load(Ordering::SeqCst) < count {
            let together = Barrier::new(count);
            thread::scope(|scope| {
                for n in 0..count {
                    let together = &together;
                    scope.spawn(move || {
                        let guard = lock.lock(&format!("fill-{n}")).expect("a free lock");
                        together.wait();
                        guard.verify().expect("a held lock");
                    });
                }
            });
        }
    }
}

fn relay(from: &TcpStream, to: &TcpStream, era: &Arc<AtomicUsize>) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
    let (mut from, mut to) = (clone(from), clone(to));
    to.set_nodelay(true).expect("an open socket");
    let (era, born) = (era.clone(), era.load(Ordering::SeqCst));
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let forgotten = era.load(Ordering::SeqCst) != born;
            if !forgotten && to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        if era.load(Ordering::SeqCst) == born {
            let _ = to.shutdown(Shutdown::Both);
        }
    });
}

#[test]
fn many_calls_at_a_time_leave_few_idle_connections() {
    const MOST: usize = 32;
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let lock = router.builder().build().unwrap();
    router.fill(&lock, 3 * MOST);
    wait_until("the others to be closed", PATIENCE, || {
        server.connected_clients() <= MOST
    });
    // Those that are left are used.
    let accepted = router.accepted.load(Ordering::SeqCst);
    for n in 0..3 * MOST {
        lock.lock(&n.to_string()).unwrap().unlock().unwrap();
    }
    assert_eq!(router.accepted.load(Ordering::SeqCst), accepted);
}

/// A locker with so many connections that have fallen silent, and that of a guard among them.
fn silent(router: &Router, builder: LockerBuilder, count: usize) -> (Locker, LockGuard) {
    let locker = builder.build().unwrap();
    router.fill(&locker, count);
    let guard = held(&locker);
    router.forget();
    (locker, guard)
}

#[test]
fn connections_that_fell_silent_cost_a_held_lock_one_timeout_and_not_its_lease() {
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let ttl = millis(3_000);
    let builder = router.builder().ttl(ttl).io_timeout(millis(500));
    let (_locker, guard) = silent(&router, builder, 8);
    let mut least = guard.remaining();
    wait_until("it is renewed all the same", ttl, || {
        let left = guard.remaining();
        least = least.min(left);
        left > least + millis(500)
    });
    assert!(guard.is_held());
    guard.unlock().unwrap();
}

#[test]
fn connections_that_fell_silent_do_not_keep_a_lock_from_being_released() {
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let (_locker, guard) = silent(&router, router.builder(), 6);
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), None);
}

#[test]
fn connections_that_fell_silent_cost_one_timeout_and_are_given_up_together() {
    const COUNT: usize = 6;
    const TIMEOUT: Duration = millis(1_500);
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let builder = router.builder().io_timeout(TIMEOUT);
    let (locker, _guard) = silent(&router, builder, COUNT);
    // Six timeouts would take 9 s.
    within(TIMEOUT, || drop(locker.lock("a").unwrap()));
    // While the server pauses nobody can have the connection of another.
    server.query::<()>(&["CLIENT", "PAUSE", "100"]);
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        for n in 0..COUNT {
            let locker = &locker;
            scope.spawn(move || drop(locker.lock(&n.to_string()).unwrap()));
        }
    });
    // No timeout at all.
    watch.assert_within(millis(100));
}

#[test]
fn attempt_that_had_no_time_left_takes_nothing_in_the_end() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = open(&proxy.url());
    drop(held(&locker));
    // A round trip takes longer than a timed call may overrun.
    proxy.set(Fault::Delay(millis(60)));
    for _ in 0..3 {
        let error = locker.try_lock_for(NAME, millis(1)).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        let free = || server.get(LOCK).is_none();
        wait_until("what was taken is given back", PATIENCE, free);
    }
}

#[test]
fn answers_that_take_as_long_as_the_ttl_are_an_outage() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(millis(100));
    let locker = builder.outage_timeout(millis(500)).build().unwrap();
    proxy.set(Fault::Delay(millis(80)));
    let error = locker.lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    wait_until("it is given back", PATIENCE, || server.get(LOCK).is_none());
}

#[test]
fn unlock_of_a_lease_that_ran_out_says_lost_also_when_the_server_is_away() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(200));
    let guard = held(&builder.build().unwrap());
    server.kill();
    wait_until("its lease is over", PATIENCE, || !guard.is_held());
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
}

#[test]
fn calls_that_ran_out_of_time_share_one_thread_and_one_connection() {
    let mut child = Child::spawn("lets calls run out of time", &[]);
    assert!(child.wait(2 * PATIENCE).success());
}

#[test]
fn release_that_failed_is_made_when_the_server_can_be_reached_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(millis(60_000));
    let locker = builder.build().unwrap();
    let guard = held(&locker);
    proxy.set(Fault::BlackHole);
    assert!(matches!(guard.unlock(), Err(Error::Unavailable { .. })));
    assert!(server.get(LOCK).is_some());
    proxy.set(Fault::None);
    wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
    assert!(!held(&open(&server.url())).was_abandoned());
}

#[test]
fn connections_to_a_server_that_became_a_replica_cost_nothing_behind_a_moving_address() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let router = Router::start(old.addr());
    let locker = router.builder().build().unwrap();
    router.fill(&locker, 6);
    old.query::<()>(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
    router.lead_to(new.addr());
    assert_works(&locker);
}
