//! Channels that nobody waits on any more.

use super::moved::urls;
use super::*;

#[test]
#[allow(clippy::too_many_lines, reason = "one scene, step by step")]
fn channels_of_slots_that_are_not_waited_for_end_while_others_go_on() {
    let cluster = start();
    let urls = urls(&cluster);
    let (holder, waiter) = (open(&urls[0]), open(&urls[1]));
    let names: Vec<_> = (0..30).map(|number| name_on(&cluster, 0, number)).collect();
    let slots: std::collections::HashSet<_> = names.iter().map(|name| slot(name)).collect();
    let guards: Vec<_> = names.iter().map(|name| held(&holder, name)).collect();
    let (tell, granted) = mpsc::channel();
    let (locker, last) = (waiter.clone(), names[0].clone());
    thread::spawn(move || {
        let guard = locker.lock(&last).expect("lock");
        tell.send(guard).expect("the test waits for it");
    });
    wait_until("the first to wait", PATIENCE, || {
        hearing(cluster.node(0), &names[0]) == 1
    });
    let timed: Vec<_> = names[1..]
        .iter()
        .map(|name| {
            let (locker, name) = (waiter.clone(), name.clone());
            thread::spawn(move || locker.try_lock_for(&name, Duration::from_secs(5)).map(drop))
        })
        .collect();
    wait_until("all channels", PATIENCE, || {
        channels(cluster.node(0)) == 2 * slots.len()
    });
    for thread in timed {
        let _ = thread.join().expect("no panic");
    }
    // One of them leaves the node meanwhile.
    cluster.move_slot(slot(&names[1]), 1);
    wait_until("the unused channels to end", PATIENCE, || {
        channels(cluster.node(0)) == 2
    });
    assert_eq!(inboxes(cluster.node(0)), 1, "the connection lives");
    // A slot whose channels have ended is heard of again.
    let queue = Queue::of(1, &urls, &names[2], cluster.node(0));
    for guard in guards {
        drop(guard.unlock());
    }
    let guard = granted.recv_timeout(PATIENCE).expect("it has the lock");
    drop((
        guard,
        queue
            .granted
            .recv_timeout(PATIENCE)
            .expect("it has the lock"),
    ));
}
