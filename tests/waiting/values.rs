//! Waits until a value changes: what they cost the server, and what becomes of them when it can't tell.

use std::collections::BTreeMap;
use std::thread::JoinHandle;

use crosslock::{Mutex, MutexGuard};

use super::*;
use support::RedisServer;

const CHANNEL: &str = "{crosslock:a}:value";

fn number(lock: &Locker) -> Mutex<u32> {
    lock.mutex("a", 0).unwrap()
}

/// Waits on a thread until the value is at least that.
fn await_least(number: &Mutex<u32>, least: u32) -> JoinHandle<u32> {
    let number = number.clone();
    thread::spawn(move || {
        let guard = number.lock().unwrap();
        *MutexGuard::wait_while(guard, |value| *value < least).unwrap()
    })
}

fn wait_for_watches(server: &RedisServer, count: i64) {
    wait_until("so many that watch the value", PATIENCE, || {
        let (_, watches): (String, i64) = server.query(&["PUBSUB", "NUMSUB", CHANNEL]);
        watches == count
    });
}

/// How often the server has carried out each command, those of this look not counted.
fn calls(server: &RedisServer) -> BTreeMap<String, u64> {
    let stats: String = server.query(&["INFO", "commandstats"]);
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = rest.split_once(',')?.0.parse().ok()?;
        let is_own = ["info", "client|setname"].contains(&name);
        (!is_own).then(|| (name.to_owned(), calls))
    });
    calls.collect()
}

#[test]
fn hundred_waiters_of_a_value_cost_one_message_and_no_command_while_nothing_changes() {
    const WAITERS: u64 = 100;
    let server = RedisServer::start();
    let open = || Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let ours = number(&open());
    let waits: Vec<_> = (0..WAITERS)
        .map(|_| await_least(&number(&open()), 1))
        .collect();
    wait_for_watches(&server, WAITERS.try_into().unwrap());
    // Each looks once since, and sleeps.
    let mut before = calls(&server);
    wait_until("silence", PATIENCE, || {
        thread::sleep(millis(500));
        let now = calls(&server);
        std::mem::replace(&mut before, now.clone()) == now
    });
    thread::sleep(millis(1_000));
    assert_eq!(calls(&server), before);
    ours.set(1).unwrap();
    for one in waits {
        assert_eq!(one.join().unwrap(), 1);
    }
    let after = calls(&server);
    let made = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
    // One message tells all, and the others are grants. The rest is what a lock costs for which a hundred wait, with
    // its heartbeats on a busy machine.
    let made = ["publish", "evalsha", "get"].map(made);
    report("messages, scripts and reads for 100 waiters", made);
    assert!(made[0] <= WAITERS + 1, "{made:?}");
    assert!(made[1].max(made[2]) <= 10 * WAITERS, "{made:?}");
}
