use super::*;

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
