use super::*;
use crate::base::random::for_any;

const TICK: Duration = Duration::from_millis(400);

fn at(millis: u64) -> BootInstant {
    BootInstant::START.plus(Duration::from_millis(1_000_000 + millis))
}

#[test]
fn nothing_counts_before_a_transaction_on_the_connection() {
    let mut proof = Proof::new(TICK, at(0), at(0));
    proof.taken_up(at(100), at(110));
    for sent in (410..4_000).step_by(300) {
        proof.synced(at(sent), at(sent));
    }
    assert_eq!(proof.since(), at(0));
    proof.committed();
    assert_eq!(proof.since(), at(100));
    proof.synced(at(4_300), at(4_300));
    assert!(proof.since() > at(3_000));
}

/// A server passes touches on each half tick, behind which syncs come to the leader. That is stopped at any time for
/// any time: no touches are passed on meanwhile, and a sync that came is answered before the next are, which is as
/// soon as it goes on. Whatever is proven the leader knew when it answered.
#[test]
fn what_is_proven_the_leader_knows() {
    for_any(|random| {
        let mut proof = Proof::new(TICK, at(0), at(0));
        // The last touch, and the last that was passed on.
        let (mut touched, mut known) = (at(0), at(0));
        let (mut now, mut next_pass) = (0, 200);
        for _ in 0..100 {
            let sent = now + random.u64(0..450);
            let arrives = sent + random.u64(0..20);
            let stops = now + random.u64(1..900);
            let stopped = stops..stops + random.u64(0..3_000);
            while next_pass <= arrives {
                if stopped.contains(&next_pass) {
                    next_pass = stopped.end;
                } else {
                    known = known.max(touched);
                    next_pass += 200;
                }
            }
            touched = at(sent);
            now = arrives + random.u64(0..20);
            if stopped.contains(&arrives) {
                now = stopped.end;
                next_pass = next_pass.max(now);
            }
            proof.synced(at(sent), at(now));
            assert!(proof.since() <= known, "{:?} {:?}", proof, known);
        }
    });
}
