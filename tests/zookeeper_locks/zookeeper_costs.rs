//! What calls cost, counted in requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crosslock::{Event, Locker, Observer};
use support::{ZooKeeper, wait_until};

use crate::PATIENCE;

/// That of servers as they come.
const TICK: Duration = Duration::from_secs(2);
/// That of lockers as they come.
const TTL: Duration = Duration::from_secs(10);

/// What is known of a session that beats in time gets no newer because it is asked for.
#[test]
fn lock_of_a_session_that_is_no_longer_new_asks_for_no_proof() {
    const LOCKS: u64 = 20;
    let server = ZooKeeper::setup().tick(TICK).proxies().start();
    let lock = Locker::open(&server.url_at("locks")).unwrap();
    wait_until("the proof to be old", PATIENCE, || {
        let guard = lock.lock("a").unwrap();
        guard.remaining() < TTL * 2 / 3 - Duration::from_millis(300)
    });
    let before = server.proxy().requests();
    for _ in 0..LOCKS {
        lock.lock("a").unwrap().unlock().unwrap();
    }
    // A node with `held`, the list, and the watch; then one transaction. Besides, the session may beat.
    let requests = server.proxy().requests() - before;
    assert!(requests < 4 * LOCKS + LOCKS / 2, "{requests}");
}

#[derive(Default)]
struct Renewals(AtomicU64);

impl Observer for Renewals {
    fn event(&self, event: &Event<'_>) {
        if matches!(event, Event::Renewed { .. }) {
            self.0.fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn renewals_ask_for_nothing_while_the_watches_stand() {
    const GUARDS: u64 = 20;
    let server = ZooKeeper::setup().tick(TICK / 4).proxies().start();
    let renewals = Arc::new(Renewals::default());
    let renewed = || renewals.0.load(SeqCst);
    let lock = Locker::builder(&server.url_at("locks"))
        .renew_every(Duration::from_millis(200))
        .observer(renewals.clone());
    let lock = lock.build().unwrap();
    let names = (0..GUARDS).map(|number| lock.lock(&format!("n{number}")).unwrap());
    let guards: Vec<_> = names.collect();
    let await_more = |number| {
        let first = renewed();
        wait_until("renewals", PATIENCE, || renewed() >= first + number);
    };
    await_more(2 * GUARDS);
    let (first, before) = (renewed(), server.proxy().requests());
    await_more(20 * GUARDS);
    let (renewals, requests) = (renewed() - first, server.proxy().requests() - before);
    assert!(
        requests < renewals / 4,
        "{requests} for {renewals} renewals"
    );
    guards.iter().for_each(|guard| guard.verify().unwrap());
}
