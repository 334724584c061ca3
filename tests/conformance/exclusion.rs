//! Who keeps whom out.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crosslock::{LockGuard, Locker, Result};

use crate::Place;
use crate::release::release;

/// Threads of two lockers take the same few names, alone, together and in any order: it is counted who is inside.
pub(crate) fn threads_exclude_each_other_in_every_way(place: &Place) {
    const THREADS: u32 = 8;
    const TURNS: u32 = 50;
    /// One who has a name alone counts for more than may share it.
    const ALONE: u32 = 100;
    let (other, inside) = (place.other(), [const { AtomicU32::new(0) }; 3]);
    let hold = |guard: Result<LockGuard>, names: &[usize], weight: u32, most: u32| {
        let guard = guard.unwrap();
        for name in names {
            let now = inside[*name].fetch_add(weight, SeqCst) + weight;
            assert!(now <= most, "{now} are in {name} instead of {most}");
        }
        // Long enough for another thread to come between, if the lock lets it.
        thread::sleep(Duration::from_micros(50));
        for name in names {
            inside[*name].fetch_sub(weight, SeqCst);
        }
        release(guard);
    };
    let take = |lock: &Locker, turn: u32| match turn % 7 {
        0 => hold(lock.lock("0"), &[0], ALONE, ALONE),
        1 => hold(lock.write("1"), &[1], ALONE, ALONE),
        2 => hold(lock.read("0"), &[0], 1, THREADS),
        3 => hold(lock.read("1"), &[1], 1, THREADS),
        4 => hold(lock.lock_all(&["0", "1"]), &[0, 1], ALONE, ALONE),
        5 => hold(lock.lock_all(&["2", "1"]), &[1, 2], ALONE, ALONE),
        _ => {
            let (permits, count) = (lock.semaphore("2", 3).unwrap(), 1 + turn % 3);
            hold(permits.acquire_many(count), &[2], count, 3);
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, take) = ([place as &Locker, &other][thread as usize % 2], &take);
            scope.spawn(move || (0..TURNS).for_each(|turn| take(lock, 3 * thread + turn)));
        }
    });
    for name in ["0", "1", "2"] {
        assert!(place.try_lock(name).unwrap().is_some(), "{name} is taken");
    }
}

pub(crate) fn namespaces_are_apart(place: &Place) {
    // A name of its own, because every memory: locker of this process shares the empty namespace.
    let name = &format!("plain-{}", place.url);
    let spaces = ["", "apart-a", "apart-b"];
    let open = |space: &str| place.builder().namespace(space).build().unwrap();
    let guards = spaces.map(|space| open(space).lock(name).unwrap());
    assert!(place.try_lock(name).unwrap().is_some());
    for (space, guard) in spaces.into_iter().zip(guards) {
        // The same one, however it was come by.
        let lock = place.with_namespace(space).unwrap();
        guard.verify().unwrap();
        assert!(lock.try_lock(name).unwrap().is_none(), "{space:?}");
        guard.unlock().unwrap();
        let next = lock.try_lock(name).unwrap().expect("it was released");
        assert!(!next.was_abandoned());
    }
}
