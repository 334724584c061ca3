//! What becomes of connections that stop working while they are idle.
#![cfg(feature = "redis")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker, LockerBuilder};
use support::{Child, Fault, Proxy, RedisServer, Stopwatch, wait_until};

const LONG: Duration = Duration::from_secs(20);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

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

/// Makes `count` connections, all of them idle afterwards.
fn fill(lock: &Locker, router: &Router, count: usize) {
    while router.accepted.load(Ordering::SeqCst) < count {
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

#[test]
fn many_calls_at_a_time_leave_few_idle_connections() {
    const MOST: usize = 32;
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let lock = router.builder().build().unwrap();
    fill(&lock, &router, 3 * MOST);
    wait_until("the others to be closed", LONG, || {
        server.connected_clients() <= MOST
    });
    // Those that are left are used.
    let accepted = router.accepted.load(Ordering::SeqCst);
    for n in 0..3 * MOST {
        lock.lock(&n.to_string()).unwrap().unlock().unwrap();
    }
    assert_eq!(router.accepted.load(Ordering::SeqCst), accepted);
}

#[test]
fn connections_that_fell_silent_cost_a_held_lock_one_timeout_and_not_its_lease() {
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let ttl = millis(3_000);
    let lock = router
        .builder()
        .ttl(ttl)
        .io_timeout(millis(500))
        .build()
        .unwrap();
    fill(&lock, &router, 8);
    let guard = lock.lock("a").unwrap();
    router.forget();
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
    let lock = router.builder().build().unwrap();
    fill(&lock, &router, 6);
    let guard = lock.lock("a").unwrap();
    router.forget();
    guard.unlock().unwrap();
    assert_eq!(server.get("{crosslock:a}"), None);
}

#[test]
fn connections_that_fell_silent_cost_a_caller_one_timeout() {
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let lock = router.builder().io_timeout(millis(1_000)).build().unwrap();
    fill(&lock, &router, 6);
    router.forget();
    let watch = Stopwatch::start();
    let guard = lock.lock("a").unwrap();
    // Six timeouts would take 6 s.
    watch.assert_within(millis(1_000));
    drop(guard);
}

#[test]
fn connections_that_fell_silent_are_given_up_together() {
    const COUNT: usize = 6;
    let server = RedisServer::start();
    let router = Router::start(server.addr());
    let lock = router.builder().io_timeout(millis(1_500)).build().unwrap();
    fill(&lock, &router, COUNT);
    router.forget();
    drop(lock.lock("a").unwrap());
    // While the server pauses nobody can have the connection of another.
    server.query::<()>(&["CLIENT", "PAUSE", "100"]);
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        for n in 0..COUNT {
            let lock = &lock;
            scope.spawn(move || drop(lock.lock(&n.to_string()).unwrap()));
        }
    });
    // No timeout at all, of 1.5 s.
    watch.assert_within(millis(100));
}

#[test]
fn lock_that_a_restart_forgot_is_lost_also_when_another_has_it() {
    let server = RedisServer::start();
    let ours = Locker::open(&server.url()).unwrap();
    let guard = ours.lock("a").unwrap();
    server.restart();
    let theirs = Locker::open(&server.url()).unwrap();
    let other = theirs.lock("a").unwrap();
    assert!(other.fencing_token() > guard.fencing_token());
    // Its connection was closed by the restart, which mustn't be taken for an answer that was lost.
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    other.verify().unwrap();
}

#[test]
fn attempt_that_had_no_time_left_takes_nothing_in_the_end() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    drop(lock.lock("a").unwrap());
    // A round trip takes longer than a timed call may overrun.
    proxy.set(Fault::Delay(millis(60)));
    for _ in 0..3 {
        let outcome = lock.try_lock_for("a", millis(1));
        assert!(
            matches!(outcome, Err(Error::Unavailable { .. })),
            "{outcome:?}"
        );
        let free = || server.get("{crosslock:a}").is_none();
        wait_until("what was taken is given back", LONG, free);
    }
}

#[test]
fn attempt_that_is_taken_back_leaves_abandonment_to_the_next() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let crashed = Locker::builder(&server.url())
        .ttl(millis(100))
        .renew(false)
        .build()
        .unwrap();
    std::mem::forget(crashed.lock("a").unwrap());
    wait_until("its lease is over", LONG, || {
        server.get("{crosslock:a}").is_none()
    });
    let lock = Locker::open(&proxy.url()).unwrap();
    proxy.lose_next_reply("evalsha", false);
    let outcome = lock.try_lock_for("a", millis(50));
    assert!(
        matches!(outcome, Err(Error::Unavailable { .. })),
        "{outcome:?}"
    );
    wait_until("it is taken back", LONG, || {
        server.get("{crosslock:a}").is_none()
    });
    assert!(lock.lock("a").unwrap().was_abandoned());
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

#[test]
fn answers_that_take_as_long_as_the_ttl_are_an_outage() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(millis(100));
    let lock = builder.outage_timeout(millis(500)).build().unwrap();
    proxy.set(Fault::Delay(millis(80)));
    let error = lock.lock("a").unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    wait_until("it is given back", LONG, || {
        server.get("{crosslock:a}").is_none()
    });
}

#[test]
fn arguments_that_a_server_repeats_are_not_shown() {
    let server = RedisServer::builder()
        .config("rename-command", "EVALSHA nothing")
        .start();
    let lock = Locker::open(&server.url()).unwrap();
    let error = lock.try_lock("a").unwrap_err();
    assert!(matches!(error, Error::Engine { .. }), "{error}");
    let pid = std::process::id().to_string();
    assert!(
        !format!("{error} {error:?}").contains(&format!("/{pid}")),
        "{error:?}"
    );
}

#[test]
fn unlock_of_a_lease_that_ran_out_says_lost_also_when_the_server_is_away() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(200));
    let lock = builder.build().unwrap();
    let guard = lock.lock("a").unwrap();
    server.kill();
    wait_until("its lease is over", LONG, || !guard.is_held());
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
}

#[test]
fn calls_that_ran_out_of_time_share_one_thread_and_one_connection() {
    let mut child = Child::spawn("lets calls run out of time", &[]);
    assert!(child.wait(LONG * 2).success());
}

#[test]
fn release_that_failed_is_made_when_the_server_can_be_reached_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url())
        .ttl(millis(60_000))
        .build()
        .unwrap();
    let guard = lock.lock("a").unwrap();
    proxy.set(Fault::BlackHole);
    assert!(matches!(guard.unlock(), Err(Error::Unavailable { .. })));
    assert!(server.get("{crosslock:a}").is_some());
    proxy.set(Fault::None);
    wait_until("it is released", LONG, || {
        server.get("{crosslock:a}").is_none()
    });
    assert!(
        !Locker::open(&server.url())
            .unwrap()
            .lock("a")
            .unwrap()
            .was_abandoned()
    );
}

#[test]
fn connections_to_a_server_that_became_a_replica_cost_nothing_behind_a_moving_address() {
    let old = RedisServer::start();
    let new = RedisServer::start();
    let router = Router::start(old.addr());
    let lock = router.builder().build().unwrap();
    fill(&lock, &router, 6);
    old.query::<()>(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
    router.lead_to(new.addr());
    lock.lock("a").unwrap().unlock().unwrap();
}
