use super::*;

#[test]
fn parts_of_a_second_are_rounded_up() {
    for (millis, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (2_000, 2)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
    }
}

fn own(since: u64) -> Own {
    Own {
        lease: ServerLease {
            id: LeaseId(7),
            since: BootInstant::START.plus(Duration::from_secs(since)),
            revision: 0,
        },
        has_inflight: false,
        ..Own::unknown()
    }
}

#[test]
fn owner_that_may_have_left_keys_comes_back_to_them() {
    let id = |owners: &Owners, owner: &Owner| owners.find(owner).map(|own| own.id);
    for (has_inflight, has_marker) in [(false, false), (true, false), (false, true)] {
        let (owners, owner) = (Owners::default(), Owner::new());
        let own = Own {
            id: "7".into(),
            has_inflight,
            has_marker,
            ..own(1)
        };
        owners.set(&owner, own, BootInstant::START, Duration::from_secs(10));
        let comes_back = has_inflight || has_marker;
        // Also if it is given up twice.
        for is_first in [true, false] {
            assert_eq!(owners.remove(&owner).is_some(), is_first);
            assert!(owners.get(&owner).is_none());
            let left = comes_back.then(|| "7".to_owned());
            assert_eq!(id(&owners, &owner), left, "{has_inflight} {has_marker}");
        }
    }
}

#[test]
fn owners_of_long_ago_are_forgotten_as_others_come() {
    let owners = Owners::default();
    for now in 0..10_000 {
        let at = BootInstant::START.plus(Duration::from_secs(now));
        owners.set(&Owner::new(), own(now), at, Duration::from_secs(10));
        assert!(owners.0.lock().owners.len() <= 200);
    }
}
