//! Fencing tokens.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crosslock::Locker;

use crate::Place;

#[track_caller]
fn assert_increasing(tokens: &[u64]) {
    for pair in tokens.windows(2) {
        assert!(pair[0] < pair[1], "{} after {}", pair[1], pair[0]);
    }
}

pub(crate) fn tokens_are_odd_and_increase_from_holder_to_holder(place: &Place) {
    let (other, clone) = (place.builder().build().unwrap(), Locker::clone(place));
    let take = |lock: &Locker| {
        let guard = lock.lock("a").unwrap();
        let token = guard.fencing_token();
        assert_eq!(guard.fencing_token(), token);
        assert_eq!(token % 2, 1, "{token}");
        token
    };
    let tokens: Vec<_> = (0..20)
        .flat_map(|_| [take(place), take(&other), take(&clone)])
        .collect();
    assert_increasing(&tokens);
}

pub(crate) fn tokens_increase_over_threads(lock: &Locker) {
    let tokens = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let guard = lock.lock("a").unwrap();
                    // In the order in which the lock was held, because it is held here.
                    tokens.lock().unwrap().push(guard.fencing_token());
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 40);
    assert_increasing(&tokens);
}

pub(crate) fn tokens_increase_in_each_namespace(lock: &Locker) {
    let spaces = ["tokens-a", "tokens-b"].map(|name| lock.with_namespace(name).unwrap());
    let mut tokens = [Vec::new(), Vec::new()];
    for cycle in 0..30 {
        // One is used more often than the other.
        let which = usize::from(cycle % 3 == 0);
        let guard = spaces[which].lock("a").unwrap();
        tokens[which].push(guard.fencing_token());
    }
    tokens.iter().for_each(|tokens| assert_increasing(tokens));
}

pub(crate) fn tokens_increase_after_an_abandonment(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(100));
    let careless = place.builder().ttl(ttl).renew(false).build().unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let guard = careless.lock("a").unwrap();
        tokens.push(guard.fencing_token());
        std::mem::forget(guard);
        let next = place.lock("a").unwrap();
        assert!(next.was_abandoned());
        assert_eq!(next.fencing_token() % 2, 1);
        tokens.push(next.fencing_token());
    }
    tokens.push(place.lock("a").unwrap().fencing_token());
    assert_increasing(&tokens);
}
