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
fn owners_of_long_ago_are_forgotten_as_others_come() {
    let owners = Owners::default();
    for now in 0..10_000 {
        let at = BootInstant::START.plus(Duration::from_secs(now));
        owners.set(&Owner::new(), own(now), at, Duration::from_secs(10));
        assert!(owners.0.lock().owners.len() <= 200);
    }
}
