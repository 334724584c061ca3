//! What many waiters cost, in one namespace or in many.

use std::time::Instant;

use super::*;
use support::{Child, Proxy, RedisServer};

const PROCESSES: usize = 16;
const THREADS: usize = 4;

#[test]
fn sixty_four_waiters_send_less_than_one_command_a_second_and_process() {
    const HELD_FOR: Duration = Duration::from_secs(10);
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let (_, guard) = holder(&server);
    let children =
        (0..PROCESSES).map(|_| Child::spawn("waits with its threads", &[(URL, &proxy.url())]));
    let mut children: Vec<_> = children.collect();
    for child in &mut children {
        child.wait_for("waits", PATIENCE);
    }
    wait_for_line(&server, PROCESSES);
    wait_until("their inboxes", PATIENCE, || inboxes(&server) == PROCESSES);
    let (before, begun) = (proxy.requests(), Instant::now());
    thread::sleep(HELD_FOR);
    let (requests, elapsed) = (proxy.requests() - before, begun.elapsed());
    #[expect(clippy::cast_precision_loss)]
    let rate = requests as f64 / elapsed.as_secs_f64() / PROCESSES as f64;
    assert!(rate < 1.0, "{requests} in {elapsed:?}");
    wait_for_line(&server, PROCESSES);

    let mut tokens = vec![guard.fencing_token()];
    guard.unlock().unwrap();
    children.iter_mut().for_each(|child| child.tell("go"));
    for child in &mut children {
        child.wait_for("done", PATIENCE);
        for _ in 0..THREADS {
            tokens.push(child.wait_for("holds", PATIENCE).parse().unwrap());
        }
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 1 + PROCESSES * THREADS);
    assert_nothing_left(&server);
}

#[test]
fn channel_is_given_up_when_nobody_waits_and_heard_again_when_somebody_does() {
    let server = RedisServer::start();
    let holder = Locker::open(&server.url()).unwrap();
    // By no heartbeat: they are minutes away.
    let lock = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let hold = |namespace: &str| holder.with_namespace(namespace).unwrap().lock("a").unwrap();
    let waits = |namespace: &str| {
        let waiter = waiting(&lock.with_namespace(namespace).unwrap(), "a");
        wait_until_heard(&server, namespace, "a");
        waiter
    };
    let pass_on = |guard: LockGuard, waiter: &Pending| {
        guard.unlock().unwrap();
        waiter.result().unlock().unwrap();
    };
    // Each namespace has two channels: its own, and that of leases that were broken.
    let listened = |namespace: &str| {
        let channels = ["PUBSUB", "CHANNELS", &format!("{namespace}:inbox:*")];
        server.query::<Vec<String>>(&channels).len()
    };
    let (one, other) = (hold("one"), hold("other"));
    let (stays, goes) = (waits("one"), waits("other"));
    assert_eq!((listened("one"), listened("other")), (2, 2));
    assert_eq!(inboxes(&server), 1);
    pass_on(other, &goes);
    // It is listened to for 10 s more, and not for more than twice as long.
    wait_until("one to be given up", 3 * PATIENCE, || {
        listened("other") == 0
    });
    assert_eq!(listened("one"), 2);
    let other = hold("other");
    let comes = waits("other");
    pass_on(other, &comes);
    pass_on(one, &stays);
    // Not the connection either, which would hear nothing.
    wait_until("the inbox to end", 3 * PATIENCE, || inboxes(&server) == 0);
    let one = hold("one");
    pass_on(one, &waits("one"));
}
