//! What many waiters cost.

use super::watch::{assert_nothing_left, holder, inboxes, wait_for_line};
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
