//! What is forgotten: `tests/conformance` has the rules that memory shares with the other engines.

use super::*;
use crate::base::claim::{Claim, Mode};
use crate::base::clock::tests::ManualClock;
use crate::base::owner::Owner;
use crate::engine::Release;

// So long that no test comes to the end of a real wait: leases end by a clock that is moved.
const TTL: Duration = Duration::from_secs(100);
const DAY: Duration = Duration::from_secs(24 * 3600);

const MODES: [Mode; 3] = [
    Mode::Exclusive,
    Mode::Shared,
    Mode::Permits { count: 1, of: 2 },
];

/// An engine of its own, and the clock by which its leases end.
fn engine() -> (MemoryEngine, Arc<ManualClock>) {
    let clock = ManualClock::new();
    (MemoryEngine::private(ENDPOINT, clock.clone()), clock)
}

fn claim(name: &str, mode: Mode) -> Claim {
    Claim {
        mode,
        ..Claim::exclusive("test", name)
    }
}

fn request<'a>(claim: &'a Claim, owner: &'a Owner) -> Request<'a> {
    Request {
        claim,
        owner,
        ttl: TTL,
        granted: None,
    }
}

/// For how many names something is remembered.
fn names(engine: &MemoryEngine) -> usize {
    engine.state().lock().names.len()
}

#[test]
fn memory_is_gone_with_its_last_user() {
    let memories = Memories::default();
    let [first, second] = [(); 2].map(|()| memories.of("gone"));
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(&first, &memories.of("other")));
    let weak = Arc::downgrade(&first);
    drop((first, second));
    assert!(weak.upgrade().is_none());
}

#[test]
fn free_names_are_forgotten_and_their_values_are_not() {
    let (engine, _) = engine();
    for claim in MODES.map(|mode| claim("a", mode)) {
        let [holder, waiter] = [(); 2].map(|()| Owner::new());
        for owner in [&holder, &waiter] {
            engine.ask(request(&claim, owner), true).unwrap();
        }
        let changed =
            |owner, change| engine.change(request(&claim, owner), change, &Deadline::NEVER);
        assert_eq!(
            changed(&holder, Change::Store(b"1")).unwrap(),
            Outcome::DONE
        );
        changed(&holder, Change::Release(Release::UNKNOWN)).unwrap();
        assert_eq!(names(&engine), 1);
        changed(&waiter, Change::Release(Release::UNKNOWN)).unwrap();
        assert_eq!(names(&engine), 0);
        let value = engine.load(&claim.key, &Deadline::NEVER);
        assert!(value.unwrap().is_some());
    }
}

#[test]
fn what_nobody_asks_for_any_more_is_forgotten_in_time() {
    for mode in MODES {
        let (engine, clock) = engine();
        let take = |numbers: std::ops::Range<u32>| {
            for number in numbers {
                let claim = claim(&number.to_string(), mode);
                engine.ask(request(&claim, &Owner::new()), false).unwrap();
            }
        };
        take(0..100);
        clock.advance(TTL + DAY);
        take(100..200);
        assert!(names(&engine) <= 100, "{mode:?}");
    }
}
