//! The renewal of one lease, on a clock that moves as it is told.

use super::*;
use crate::base::clock::tests::ManualClock;
use crate::base::clock::valid_until;
use crate::base::error::Result;
use crate::base::token::Token;
use crate::engine::{Outcome, Wait};

const TTL: Duration = Duration::from_secs(9);

/// Renews a lease, and answers that after some time.
#[derive(Debug)]
struct Slow {
    clock: Arc<ManualClock>,
    takes: Duration,
    forgotten: Mutex<u32>,
}

impl Engine for Slow {
    fn endpoint(&self) -> &str {
        "a slow one"
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        unreachable!("a renewal never acquires")
    }

    fn change(&self, request: Request<'_>, change: Change<'_>, _: &Deadline) -> Result<Outcome> {
        assert!(matches!(change, Change::Renew), "{change:?}");
        assert_eq!(request.ttl, TTL);
        self.clock.advance(self.takes);
        Ok(Outcome::DONE)
    }

    fn abandon(&self, _: &Owner) {
        *self.forgotten.lock() += 1;
    }
}

/// For how long a lease is valid that was granted now.
fn validity(clock: &ManualClock) -> Duration {
    valid_until(clock.now(), TTL, Duration::ZERO).since(clock.now())
}

/// A lease when its first renewal, which takes as long as it is valid, was answered.
fn renewed() -> (Arc<Slow>, LeaseMonitor<()>) {
    let clock = ManualClock::new();
    let engine = Arc::new(Slow {
        clock: clock.clone(),
        takes: validity(&clock),
        forgotten: Mutex::default(),
    });
    let now = clock.now();
    let plan = Plan {
        ttl: TTL,
        every: Some(TTL / 3),
        max_hold: None,
        clock_skew: Duration::ZERO,
    };
    let claim = Claim::exclusive("test", "a");
    let mut lease = Lease::new(claim, Owner::new(), Token::next(0, 0));
    (lease.valid_until, lease.due) = (plan.valid_until(now), plan.due(now));
    (lease.granted, lease.held_since) = (now, now);
    let (to, observer) = (engine.clone(), Observers::default());
    let held = LeaseMonitor::new(to, clock.clone(), plan, observer, lease, Some(()));
    // To where the renewer would wake.
    clock.advance(held.tend().unwrap());
    held.tend();
    (engine, held)
}

#[test]
fn lease_that_ran_out_before_its_renewal_was_answered_is_lost_for_good() {
    // The process stands still while the answer waits in its socket, and nobody looks meanwhile.
    let (engine, held) = renewed();
    let lost = held.lost().try_recv().map(|lost| lost.reason);
    assert_eq!(lost, Ok(LostReason::Expired));
    assert_eq!(held.remaining(), Duration::ZERO);
    assert_eq!(held.tend(), None, "nothing is left to renew");
    assert_eq!(*engine.forgotten.lock(), 1);
}
