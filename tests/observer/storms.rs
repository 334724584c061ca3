//! Many threads at once, and lockers that are closed: what has begun has ended when they are done.

use std::collections::HashMap;
use std::thread;

use super::*;

const THREADS: u64 = 8;
const CALLS: u64 = 60;
const NAMES: [&str; 3] = ["storm-1", "storm-2", "storm-3"];
/// Some holders are slower than this.
const LEASE: Duration = Duration::from_millis(100);

/// Holders that are lost, that panic, that are handed leases over; callers that give up.
fn work(locker: &Locker, number: u64) {
    let mut random = fastrand::Rng::with_seed(number);
    for call in 0..CALLS {
        let name = NAMES[random.usize(..NAMES.len())];
        let is_slow = call % 50 == 49;
        let guard = match random.u8(..3) {
            _ if is_slow => Some(locker.lock(name).unwrap()),
            0 => locker.try_lock(name).unwrap(),
            1 => {
                let patience = Duration::from_micros(random.u64(..3_000));
                locker.try_lock_for(name, patience).unwrap()
            }
            _ => Some(locker.lock(name).unwrap()),
        };
        let Some(guard) = guard else { continue };
        if is_slow {
            thread::sleep(LEASE);
        }
        match random.u8(..4) {
            0 => drop(guard.unlock()),
            1 => {
                let _ = thread::scope(|scope| {
                    let holder = scope.spawn(move || {
                        let _guard = guard;
                        std::panic::resume_unwind(Box::new("on purpose"));
                    });
                    holder.join()
                });
            }
            _ => drop(guard),
        }
    }
}

/// In memory, where no call fails on a busy machine because its answer is late.
#[test]
fn all_that_began_has_ended() {
    let (locker, kept) = observed("memory:", |builder| builder.ttl(LEASE).renew(false));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let locker = &locker;
            scope.spawn(move || work(locker, number));
        }
    });
    let mut lost = 0;
    for name in NAMES {
        assert_balanced(&kept.of(name));
        lost += kept.count(name, |told| matches!(told, Told::Lost { .. }));
    }
    assert!(lost > 0, "none was lost");
}

#[track_caller]
fn assert_balanced(told: &[Told]) {
    let (mut waits, mut ends) = (0, 0);
    let mut holds: HashMap<u64, (u32, u32)> = HashMap::new();
    for told in told {
        match told {
            Told::Waiting => waits += 1,
            Told::GaveUp { .. } => ends += 1,
            Told::Acquired {
                token, was_waiting, ..
            } => {
                ends += usize::from(*was_waiting);
                holds.entry(*token).or_default().0 += 1;
            }
            Told::Released { token, .. } | Told::Lost { token, .. } => {
                let hold = holds.entry(*token).or_default();
                assert_eq!(hold.0, 1, "{token} ends before it begins");
                hold.1 += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(waits > 0 && holds.len() > 10, "that was no storm");
    assert_eq!(waits, ends);
    let unbalanced: Vec<_> = holds.iter().filter(|(_, hold)| **hold != (1, 1)).collect();
    assert!(unbalanced.is_empty(), "{unbalanced:?}");
}

#[test]
fn guard_whose_locker_is_closed_is_lost_once() {
    each_url(|url| {
        let (locker, kept) = observed(url, |builder| builder);
        let guard = locker.lock("closed").unwrap();
        thread::sleep(SHORT);
        locker.close();
        assert!(guard.unlock().is_err());
        assert!(locker.lock("closed").is_err());
        let held = assert_lost(&kept.of("closed"), LostReason::Closed, url);
        assert!(held >= SHORT, "{url}: {held:?}");
    });
}
