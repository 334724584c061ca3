//! What is set once, counted down, met at or led.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crosslock::{Error, Leader};

use super::release::panics_with;
use crate::{PATIENCE, Place};
use support::wait_until;

const SHORT: Duration = Duration::from_millis(60);

pub(crate) fn work_is_done_with_the_lock_held(place: &Place) {
    let token = place.with_lock("a", |guard| {
        assert!(guard.is_held() && place.try_lock("a").unwrap().is_none());
        guard.fencing_token()
    });
    let guard = place.try_lock("a").unwrap().expect("it was released");
    assert!(guard.fencing_token() > token.unwrap() && !guard.was_abandoned());
    drop(guard);
    panics_with(|| place.with_lock("a", |_| panic!("as this test wants it")));
    assert!(place.lock("a").unwrap().was_abandoned());
}

pub(crate) fn value_is_set_once(place: &Place) {
    let (here, there) = (place.once_lock("a"), place.other().once_lock("a"));
    let (here, there) = (here.unwrap(), there.unwrap());
    assert_eq!((here.get().unwrap(), there.get().unwrap()), (None, None));
    assert_eq!(there.wait_for(SHORT).unwrap(), None);
    thread::scope(|scope| {
        let waits = scope.spawn(|| there.wait().unwrap());
        thread::sleep(SHORT);
        assert_eq!(here.set(7).unwrap(), Ok(()));
        assert_eq!(waits.join().unwrap(), 7);
    });
    assert_eq!(there.set(8).unwrap(), Err(8));
    assert_eq!(here.set(9).unwrap(), Err(9));
    let never = || unreachable!("it is set");
    assert_eq!(there.get_or_init(never).unwrap(), 7);
    // What was seen is remembered.
    place.mutex("a", 0).unwrap().remove().unwrap();
    assert_eq!((here.get().unwrap(), there.wait().unwrap()), (Some(7), 7));
    assert_eq!(place.once_lock::<u32>("a").unwrap().get().unwrap(), None);
}

pub(crate) fn initialiser_that_fails_leaves_it_to_the_next(place: &Place) {
    let once = place.once_lock::<u32>("a").unwrap();
    let failed = once.get_or_try_init(|| Err::<u32, Box<dyn std::error::Error>>("in vain".into()));
    assert_eq!(failed.unwrap_err().to_string(), "in vain");
    panics_with(|| once.get_or_init(|| panic!("as this test wants it")));
    assert_eq!(once.get().unwrap(), None);
    assert_eq!(once.get_or_init(|| 3).unwrap(), 3);
}

pub(crate) fn latch_opens_when_it_was_counted_down(place: &Place) {
    let (here, there) = (place.latch("a", 3), place.other().latch("a", 3));
    let (here, there) = (here.unwrap(), there.unwrap());
    assert!(
        place
            .latch("b", 0)
            .unwrap()
            .wait_for(Duration::ZERO)
            .unwrap()
    );
    thread::scope(|scope| {
        let waits = scope.spawn(|| there.wait());
        assert_eq!(here.count_down().unwrap(), 2);
        assert_eq!(there.count_down().unwrap(), 1);
        assert!(!here.wait_for(SHORT).unwrap());
        assert!(!waits.is_finished());
        assert_eq!(here.count_down().unwrap(), 0);
        waits.join().unwrap().unwrap();
    });
    assert_eq!(here.count_down().unwrap(), 0);
    there.wait().unwrap();
    here.reset().unwrap();
    assert_eq!(there.remaining().unwrap(), 3);
    assert!(!there.wait_for(Duration::ZERO).unwrap());
}

pub(crate) fn threads_meet_again_and_again_and_one_leads(place: &Place) {
    const THREADS: u32 = 3;
    const ROUNDS: u32 = 4;
    let (leaders, passed) = (AtomicU32::new(0), AtomicU32::new(0));
    let barriers: Vec<_> = (0..THREADS)
        .map(|_| place.other().barrier("a", THREADS as usize).unwrap())
        .collect();
    for n in [0, 1_001] {
        let refused = place.barrier("a", n);
        support::assert_like!(refused, Err(Error::InvalidOption { .. }));
    }
    thread::scope(|scope| {
        for barrier in &barriers {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    passed.fetch_add(1, Relaxed);
                    let result = barrier.wait_for(PATIENCE).unwrap().expect("all come");
                    leaders.fetch_add(result.is_leader().into(), Relaxed);
                    assert!(passed.load(Relaxed) >= (round + 1) * THREADS);
                }
            });
        }
    });
    assert_eq!(leaders.load(Relaxed), ROUNDS);
    // Those that give up don't count.
    for barrier in &barriers {
        assert_eq!(barrier.wait_for(5 * SHORT).unwrap(), None);
    }
}

/// As after a server has lost its data.
pub(crate) fn forgotten_meeting_begins_anew(place: &Place) {
    let barrier = place.barrier("a", 2).unwrap();
    let other = place.other().barrier("a", 2).unwrap();
    let nobody = (0u64, Vec::<u64>::new(), Vec::<u64>::new());
    let stored = place.mutex("a", nobody).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| barrier.wait_for(PATIENCE).unwrap().expect("both come"));
        other.wait_for(PATIENCE).unwrap().expect("both come");
    });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| barrier.wait_for(PATIENCE).unwrap());
        wait_until("it waits", PATIENCE, || stored.peek().unwrap().1.len() == 1);
        stored.remove().unwrap();
        let here = other.wait_for(PATIENCE).unwrap().expect("both come");
        let there = waiting.join().unwrap().expect("both come");
        assert!(here.is_leader() != there.is_leader());
    });
}

fn value_of(leader: &Option<Leader>) -> Option<&str> {
    leader.as_ref().and_then(|leader| leader.value.as_deref())
}

pub(crate) fn one_leads_and_says_so(place: &Place) {
    let label = |label: &str| place.builder().label(label).build().unwrap();
    let (first, second) = (label("first").election("a"), label("second").election("a"));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.leader().unwrap(), None);
    let leadership = first.campaign().unwrap();
    assert!(second.try_campaign().unwrap().is_none());
    assert!(second.try_campaign_for(SHORT).unwrap().is_none());
    let leader = second.leader().unwrap().expect("the first leads");
    assert_eq!(
        (leader.label.as_deref(), leader.pid),
        (Some("first"), std::process::id())
    );
    assert_eq!(
        (leader.token, leader.value),
        (leadership.fencing_token(), None)
    );
    assert!(leader.since.elapsed().unwrap() < PATIENCE && !leader.host.is_empty());
    leadership.publish("here").unwrap();
    assert_eq!(value_of(&second.leader().unwrap()), Some("here"));
    thread::scope(|scope| {
        let waits = scope.spawn(|| second.campaign().unwrap());
        thread::sleep(SHORT);
        assert!(!waits.is_finished());
        leadership.resign().unwrap();
        let next = waits.join().unwrap();
        let leader = first.leader().unwrap().expect("the second leads");
        assert_eq!(leader.label.as_deref(), Some("second"));
        assert_eq!((leader.token, leader.value), (next.fencing_token(), None));
    });
    assert_eq!(first.leader().unwrap(), None);
    panics_with(|| first.campaign().unwrap());
    assert_eq!(second.leader().unwrap(), None);
    assert!(second.campaign().unwrap().was_abandoned());
}

pub(crate) fn change_of_leader_is_observed(place: &Place) {
    let (here, there) = (place.election("a"), place.other().election("a"));
    let (here, there) = (here.unwrap(), there.unwrap());
    let leaders = there.observe().unwrap();
    let next = || leaders.recv_timeout(PATIENCE).unwrap();
    assert_eq!(next(), None);
    let until = |what: &str, is_it: &dyn Fn(&Option<Leader>) -> bool| {
        wait_until(what, PATIENCE, || is_it(&next()));
    };
    let leadership = here.campaign().unwrap();
    let token = leadership.fencing_token();
    until("a leader", &|one| {
        one.as_ref().is_some_and(|one| one.token == token)
    });
    leadership.publish("here").unwrap();
    until("its value", &|one| value_of(one) == Some("here"));
    leadership.resign().unwrap();
    until("nobody", &|one| one.is_none());
    // The present one comes first, whoever that is. One that is gone is observed, too.
    let careless = place.careless_after(place.ttl(Duration::from_secs(1)));
    let (careless, other) = (careless.election("a"), place.other());
    let election = other.election("a").unwrap();
    let leadership = careless.unwrap().campaign().unwrap();
    let leaders = election.observe().unwrap();
    assert!(leaders.recv_timeout(PATIENCE).unwrap().is_some());
    std::mem::forget(leadership);
    assert_eq!(leaders.recv_timeout(2 * PATIENCE).unwrap(), None);
    // It ends with its locker.
    drop((election, other));
    assert!(leaders.recv_timeout(PATIENCE).is_err());
}
