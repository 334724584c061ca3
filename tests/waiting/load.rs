//! What many waiters cost, in one namespace or in many.

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
    let (before, begun) = (proxy.requests(), now());
    thread::sleep(HELD_FOR);
    let (requests, elapsed) = (proxy.requests() - before, now() - begun);
    #[expect(clippy::cast_precision_loss)]
    let rate = requests as f64 / elapsed.as_secs_f64() / PROCESSES as f64;
    report("commands a second and process while 64 threads wait", rate);
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

/// A channel without waiters is listened to for 10 s more, and not for more than twice as long.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(60);

/// The namespaces whose channels are listened to: the inbox's own, and that of leases that were broken.
fn listened(server: &RedisServer) -> Vec<String> {
    let channels: Vec<String> = server.query(&["PUBSUB", "CHANNELS"]);
    let namespace = |channel: &String| channel.split_once(":inbox:").unwrap().0.to_owned();
    let mut namespaces: Vec<_> = channels.iter().map(namespace).collect();
    namespaces.sort();
    let pairs: Vec<_> = namespaces.iter().step_by(2).cloned().collect();
    // While one channel is given up after the other.
    if namespaces.len() % 2 == 0 && namespaces.iter().skip(1).step_by(2).eq(&pairs) {
        return pairs;
    }
    namespaces
}

#[track_caller]
fn wait_until_listened(server: &RedisServer, namespaces: &[&str]) {
    let what = format!("only {namespaces:?} to be listened to");
    wait_until(&what, GIVEN_UP_WITHIN, || listened(server) == namespaces);
}

/// A thread that waits in a namespace and will be heard there.
fn heard_waiter(server: &RedisServer, lock: &Locker, namespace: &str) -> Pending<LockGuard> {
    let waiter = waiting(&lock.with_namespace(namespace).unwrap(), "a");
    wait_until_heard(server, namespace, "a");
    waiter
}

fn pass_on(guard: LockGuard, waiter: &Pending<LockGuard>) {
    guard.unlock().unwrap();
    // By no heartbeat: they are minutes away.
    waiter.result().unlock().unwrap();
}

#[test]
fn channel_is_given_up_when_nobody_waits_and_heard_again_when_somebody_does() {
    let server = RedisServer::start();
    let holder = Locker::open(&server.url()).unwrap();
    let lock = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let hold = |namespace: &str| holder.with_namespace(namespace).unwrap().lock("a").unwrap();
    let (one, other) = (hold("one"), hold("other"));
    let stays = heard_waiter(&server, &lock, "one");
    let goes = heard_waiter(&server, &lock, "other");
    assert_eq!(listened(&server), ["one", "other"]);
    pass_on(other, &goes);
    wait_until_listened(&server, &["one"]);

    let other = hold("other");
    let comes = heard_waiter(&server, &lock, "other");
    assert_eq!(listened(&server), ["one", "other"]);
    pass_on(other, &comes);
    pass_on(one, &stays);
    wait_until_listened(&server, &[]);
    // Not the connection either, which would hear nothing.
    wait_until("the inbox to be closed", PATIENCE, || {
        let clients: String = server.query(&["CLIENT", "LIST"]);
        !clients.contains("subscribe ")
    });

    let one = hold("one");
    let comes = heard_waiter(&server, &lock, "one");
    pass_on(one, &comes);
}
