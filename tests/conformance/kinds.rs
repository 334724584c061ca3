//! What holds for each way to hold a lock, whether alone or with others, of one name or of several.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LeaseTicket, LockGuard, Locker, LostReason, Result, Semaphore};

use crate::cancel::ends;
use crate::lease::{CLOCK_SKEW, assert_lost, assert_tells_of_its_lock};
use crate::release::{assert_free, assert_taken, panics_with};
use crate::texts::{assert_discreet, debugged};
use crate::waiting::{assert_times_out, release_meanwhile};
use crate::{PATIENCE, Place};
use support::Stopwatch;

type Take = fn(&Locker, &str) -> Result<LockGuard>;

/// A way to hold a lock, by each of its calls.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// That of the lock, too: each kind has one of its own.
    pub(crate) name: &'static str,
    pub(crate) take: Take,
    pub(crate) try_once: fn(&Locker, &str) -> Result<Option<LockGuard>>,
    pub(crate) take_for: fn(&Locker, &str, Duration) -> Result<Option<LockGuard>>,
    pub(crate) take_until: fn(&Locker, &str, Instant) -> Result<Option<LockGuard>>,
    /// What keeps it out that is most like it.
    keep_out: Take,
    /// A holder that never releases it may have left something half done.
    pub(crate) is_exclusive: bool,
    /// Another may have it in the same way at the same time.
    pub(crate) is_shared: bool,
}

pub(crate) const SEVERAL: &str = "several";

pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "lock",
        take: Locker::lock,
        try_once: Locker::try_lock,
        take_for: Locker::try_lock_for,
        take_until: Locker::try_lock_until,
        keep_out: Locker::lock,
        is_exclusive: true,
        is_shared: false,
    },
    Kind {
        name: "write",
        take: Locker::write,
        try_once: Locker::try_write,
        take_for: Locker::try_write_for,
        take_until: Locker::try_write_until,
        keep_out: Locker::write,
        is_exclusive: true,
        is_shared: false,
    },
    Kind {
        name: "read",
        take: Locker::read,
        try_once: Locker::try_read,
        take_for: Locker::try_read_for,
        take_until: Locker::try_read_until,
        keep_out: Locker::write,
        is_exclusive: false,
        is_shared: true,
    },
    Kind {
        name: "permit",
        take: |lock, name| two(lock, name)?.acquire(),
        try_once: |lock, name| two(lock, name)?.try_acquire(),
        take_for: |lock, name, timeout| two(lock, name)?.try_acquire_for(timeout),
        take_until: |lock, name, end| two(lock, name)?.try_acquire_until(end),
        keep_out: |lock, name| two(lock, name)?.acquire_many(2),
        is_exclusive: false,
        is_shared: true,
    },
    Kind {
        name: "permits",
        take: |lock, name| two(lock, name)?.acquire_many(2),
        try_once: |lock, name| two(lock, name)?.try_acquire_many(2),
        take_for: |lock, name, timeout| two(lock, name)?.try_acquire_many_for(2, timeout),
        take_until: |lock, name, end| two(lock, name)?.try_acquire_many_until(2, end),
        keep_out: |lock, name| two(lock, name)?.acquire(),
        is_exclusive: false,
        is_shared: false,
    },
    Kind {
        name: SEVERAL,
        take: |lock, name| lock.lock_all(&pair(name)),
        try_once: |lock, name| lock.try_lock_all(&pair(name)),
        take_for: |lock, name, timeout| lock.try_lock_all_for(&pair(name), timeout),
        take_until: |lock, name, end| lock.try_lock_all_until(&pair(name), end),
        keep_out: |lock, name| lock.lock_all(&pair(name)),
        is_exclusive: true,
        is_shared: false,
    },
];

fn two(lock: &Locker, name: &str) -> Result<Semaphore> {
    lock.semaphore(name, 2)
}

fn pair(name: &str) -> [String; 2] {
    [name.to_owned(), format!("{name}, too")]
}

impl Kind {
    /// Whether one holds it at a time.
    fn is_plain(&self) -> bool {
        self.is_exclusive && self.name != "write"
    }

    /// All names that it holds.
    pub(crate) fn names(self) -> Vec<String> {
        let mut names = pair(self.name).to_vec();
        names.truncate(if self.name == SEVERAL { 2 } else { 1 });
        names
    }
}

/// Tests each kind that a place has on a thread of its name, so that a failure tells which it was.
pub(crate) fn each_kind(place: &Place, test: impl Fn(Kind) + Sync) {
    kinds_of(place).iter().for_each(|kind| run(&[*kind], &test));
}

/// The kinds that a place has.
pub(crate) fn kinds_of(place: &Place) -> Vec<Kind> {
    let all = KINDS.into_iter();
    let is_there = |kind: &Kind| !place.leases.only_exclusive || kind.is_plain();
    all.filter(is_there).collect()
}

/// The same with all at once, because the test takes its time.
pub(crate) fn all_kinds_at_once(place: &Place, test: impl Fn(Kind) + Sync) {
    run(&kinds_of(place), &test);
}

fn run(kinds: &[Kind], test: &(impl Fn(Kind) + Sync)) {
    thread::scope(|scope| {
        for kind in kinds {
            let thread = thread::Builder::new().name(kind.name.to_owned());
            thread.spawn_scoped(scope, move || test(*kind)).unwrap();
        }
    });
}

pub(crate) fn guard_tells_of_its_lock_until_it_is_released(place: &Place) {
    each_kind(place, |kind| {
        for by_drop in [false, true] {
            let before = place.lock(kind.name).unwrap().fencing_token();
            let guard = (kind.take)(place, kind.name).unwrap();
            let mut token = guard.fencing_token();
            assert!(token > before && guard.name().contains(kind.name));
            assert_tells_of_its_lock(&guard);
            assert_discreet(&debugged(&guard));
            let again = (kind.try_once)(place, kind.name).unwrap();
            assert_eq!(again.is_some(), kind.is_shared);
            let lost = guard.lost().clone();
            if by_drop {
                drop(guard);
            } else {
                guard.unlock().unwrap();
            }
            let end = lost.recv_timeout(PATIENCE);
            assert_eq!(end, Err(RecvTimeoutError::Disconnected));
            if let Some(again) = again {
                again.verify().unwrap();
                assert!(again.fencing_token() > token);
                token = again.fencing_token();
            }
            let next = place.try_lock(kind.name).unwrap();
            let next = next.expect("it was released");
            assert!(next.fencing_token() > token && !next.was_abandoned());
        }
    });
}

pub(crate) fn each_call_is_served_when_its_lock_is_free(place: &Place) {
    all_kinds_at_once(place, |kind| {
        let (name, other) = (kind.name, place.other());
        for lock in [place as &Locker, &other] {
            let calls: [&(dyn Fn() -> Result<Option<LockGuard>> + Sync); 3] = [
                &|| (kind.take)(lock, name).map(Some),
                &|| (kind.take_for)(lock, name, PATIENCE),
                &|| (kind.take_until)(lock, name, Instant::now() + PATIENCE),
            ];
            for call in calls {
                let guard = call().unwrap().expect("it is free");
                drop(release_meanwhile(guard, || place.lock(name)).unwrap());
                for keep_out in [Locker::lock as Take, kind.keep_out] {
                    let guard = keep_out(place, name).unwrap();
                    let guard = release_meanwhile(guard, call).unwrap();
                    guard.expect("it was released").verify().unwrap();
                }
            }
            let guard = (kind.try_once)(lock, name).unwrap();
            guard.expect("it is free").unlock().unwrap();
        }
    });
}

pub(crate) fn each_call_ends_in_time(place: &Place) {
    const TIMEOUT: Duration = Duration::from_millis(40);
    each_kind(place, |kind| {
        let (name, other) = (kind.name, place.other());
        let guard = (kind.keep_out)(place, name).unwrap();
        for lock in [place as &Locker, &other] {
            let end = || Instant::now() + TIMEOUT;
            assert!((kind.try_once)(lock, name).unwrap().is_none());
            assert_times_out(TIMEOUT, || (kind.take_for)(lock, name, TIMEOUT));
            assert_times_out(TIMEOUT, || (kind.take_until)(lock, name, end()));
        }
        drop(guard);
        let mut names = kind.names();
        let _guard = place.lock(&names.pop().unwrap()).unwrap();
        assert!((kind.try_once)(&other, name).unwrap().is_none());
        assert_times_out(TIMEOUT, || (kind.take_for)(&other, name, TIMEOUT));
        // It holds none of several that it can't have.
        names.iter().for_each(|name| assert_free(place, name));
    });
}

pub(crate) fn each_call_tries_a_given_number_of_times(place: &Place) {
    each_kind(place, |kind| {
        let hasty = place.builder().attempts(3).build().unwrap();
        let guard = place.lock(kind.name).unwrap();
        let begun = Instant::now();
        match (kind.take)(&hasty, kind.name) {
            Err(Error::Busy { name, attempts, .. }) => {
                assert!(name.contains(kind.name) && attempts == 3, "{name}");
            }
            other => panic!("{other:?}"),
        }
        let (long, end) = (2 * PATIENCE, begun + 2 * PATIENCE);
        assert!((kind.take_for)(&hasty, kind.name, long).unwrap().is_none());
        assert!((kind.take_until)(&hasty, kind.name, end).unwrap().is_none());
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        guard.unlock().unwrap();
        (kind.take)(&hasty, kind.name).unwrap().verify().unwrap();
    });
}

pub(crate) fn lease_that_is_not_renewed_is_lost_and_then_the_next_ones(place: &Place) {
    all_kinds_at_once(place, |kind| {
        let (lock, ttl) = (place.careless(), place.brief());
        let (begun, taking) = (Instant::now(), Stopwatch::start());
        let guard = (kind.take)(&lock, kind.name).unwrap();
        // The servers may have kept the call waiting.
        let watch = Stopwatch::start();
        assert!(guard.remaining() <= ttl);
        let waited = guard.wait_lost(PATIENCE).expect("it is lost");
        watch.assert_within(ttl);
        let least = place.least(ttl) - CLOCK_SKEW;
        assert!(begun.elapsed() >= least, "lost after {:?}", begun.elapsed());
        assert_eq!(waited.reason, LostReason::Expired);
        let next = place.lock(kind.name).unwrap();
        taking.assert_within(place.most(ttl));
        assert!(
            begun.elapsed() >= least,
            "taken after {:?}",
            begun.elapsed()
        );
        assert_lost(&guard, LostReason::Expired);
        assert!(next.fencing_token() > guard.fencing_token());
        assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
        next.verify().unwrap();
        // One that shares leaves nothing half done.
        assert_eq!(next.was_abandoned(), kind.is_exclusive);
        drop(next);
        assert_free(place, kind.name);
    });
}

/// Also of one that was downgraded or adopted.
pub(crate) fn renewal_keeps_each_for_several_ttls(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(600));
    let lock = place.builder().ttl(ttl).build().unwrap();
    all_kinds_at_once(place, |kind| {
        let watch = Stopwatch::start();
        let names = [kind.name.to_owned(), format!("{}, changed", kind.name)];
        let [plain, changed] = names
            .each_ref()
            .map(|name| (kind.take)(&lock, name).unwrap());
        let changed = match kind.name {
            "write" => changed.downgrade(),
            _ => lock.adopt(changed.into_ticket().expect("a ticket")),
        };
        let changed = match changed {
            Ok(changed) => changed,
            // A server was silent for a while.
            Err(error) => return watch.assert_late(ttl / 4, ttl, error),
        };
        let (guards, end) = ([plain, changed], Instant::now() + 5 * ttl / 2);
        while Instant::now() < end {
            for (guard, name) in guards.iter().zip(&names) {
                let other = place.try_lock(name).unwrap();
                assert!(other.is_none() || !guard.is_held(), "another got in");
            }
            thread::sleep(ttl / 20);
        }
        for (guard, name) in guards.into_iter().zip(&names) {
            let (verified, is_told) = (guard.verify(), !guard.lost().is_empty());
            let lost = guard.wait_lost(Duration::ZERO);
            if verified.is_err() || lost.is_some() {
                // Its renewals may have been too late.
                return watch.assert_late(ttl / 2, ttl, format!("{verified:?}, {lost:?}"));
            }
            assert!(!is_told);
            guard.unlock().unwrap();
            assert_free(place, name);
        }
    });
}

pub(crate) fn panic_releases_each_and_is_told_of_those_that_are_exclusive(place: &Place) {
    each_kind(place, |kind| {
        panics_with(|| (kind.take)(place, kind.name).unwrap());
        for name in kind.names() {
            let next = place.try_lock(&name).unwrap().expect("it was released");
            assert_eq!(next.was_abandoned(), kind.is_exclusive, "{name}");
            drop(next);
            assert_free(place, &name);
        }
    });
}

pub(crate) fn what_can_not_be_downgraded_is_released(place: &Place) {
    each_kind(place, |kind| {
        let guard = (kind.take)(place, kind.name).unwrap();
        let is_possible = ["lock", "write"].contains(&kind.name);
        match guard.downgrade() {
            Ok(reading) => assert!(is_possible && reading.verify().is_ok()),
            Err(Error::Unsupported { .. }) => assert!(!is_possible),
            Err(error) => panic!("{error}"),
        }
        kind.names()
            .iter()
            .for_each(|name| assert_free(place, name));
    });
}

pub(crate) fn each_is_passed_on_once_with_a_token_above(place: &Place) {
    each_kind(place, |kind| {
        let (guard, other) = ((kind.take)(place, kind.name).unwrap(), place.other());
        let (token, lost) = (guard.fencing_token(), guard.lost().clone());
        let ticket = guard.into_ticket().expect("a ticket");
        assert!(lost.recv().is_err(), "it isn't lost");
        let all_taken = || {
            kind.names()
                .iter()
                .for_each(|name| assert_taken(&other, name))
        };
        all_taken();
        let guard = place.adopt(ticket.to_secret().parse::<LeaseTicket>().unwrap());
        let guard = guard.unwrap();
        assert!(guard.fencing_token() > token && !guard.was_abandoned());
        all_taken();
        let beside = (kind.try_once)(&other, kind.name).unwrap();
        assert_eq!(beside.is_some(), kind.is_shared);
        drop(beside);
        assert!(matches!(place.adopt(&ticket), Err(Error::Lost { .. })));
        guard.verify().unwrap();
        let token = guard.fencing_token();
        guard.unlock().unwrap();
        assert!(matches!(place.adopt(&ticket), Err(Error::Lost { .. })));
        for name in kind.names() {
            let next = other.try_lock(&name).unwrap().expect("it was released");
            assert!(next.fencing_token() > token && !next.was_abandoned());
        }
    });
}

pub(crate) fn each_call_that_waits_is_cancelled(place: &Place) {
    each_kind(place, |kind| {
        ends(place, place.builder(), kind.name, |lock| {
            (kind.take)(lock, kind.name).map(Some)
        });
        ends(place, place.builder(), kind.name, |lock| {
            (kind.take_for)(lock, kind.name, 10 * PATIENCE)
        });
    });
}
