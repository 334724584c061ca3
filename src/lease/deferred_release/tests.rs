use super::*;
use crate::base::clock::tests::ManualClock;
use crate::base::error::Error;
use crate::engine::{Capabilities, Wait};
use crossbeam_channel::{Receiver, Sender, unbounded};

const TTL: Duration = Duration::from_secs(30);

/// Can't be reached, and tells which owners it is to abandon.
#[derive(Debug)]
struct Unreachable {
    abandoned: Sender<Owner>,
    silence_ends_all: bool,
}

impl Engine for Unreachable {
    fn endpoint(&self) -> &str {
        "nowhere"
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        unreachable!("nobody waits")
    }

    fn change(&self, _: Request<'_>, _: Change<'_>, _: &Deadline) -> Result<Outcome> {
        Err(Error::unavailable(None, "nowhere", "it is down"))
    }

    fn abandon(&self, owner: &Owner) {
        let _ = self.abandoned.send(owner.clone());
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            silence_ends_all: self.silence_ends_all,
            ..Capabilities::default()
        }
    }
}

fn of_unreachable(silence_ends_all: bool) -> (DeferredReleases, Receiver<Owner>) {
    let (abandoned, told) = unbounded();
    let engine = Unreachable {
        abandoned,
        silence_ends_all,
    };
    let clock = ManualClock::new();
    (DeferredReleases::new(Arc::new(engine), clock), told)
}

fn release(owner: &Owner, ttl: Duration) -> DeferredRelease {
    DeferredRelease::of_owner(Claim::exclusive("deferred", "a"), owner.clone(), ttl)
}

#[test]
fn rest_goes_behind_what_nobody_has_released() {
    let (mut queue, over) = (Queue::default(), Instant::now());
    let owners: Vec<_> = (0..4).map(|_| Owner::new()).collect();
    for (owner, is_rest) in owners.iter().zip([true, false, true, false]) {
        let release = release(owner, TTL);
        queue.push(DeferredRelease { is_rest, ..release }, over);
    }
    let dropped = queue.pop_least().expect("the last rest").0;
    assert_eq!(dropped.owner, owners[2]);
    let left = queue.waiting.iter().map(|(release, _)| &release.owner);
    let order = [&owners[1], &owners[3], &owners[0]];
    assert!(left.eq(order));
}

/// An engine whose sessions outlast leases would keep its place in line.
#[test]
fn owner_whose_release_is_dropped_is_forgotten() {
    let (deferred, told) = of_unreachable(true);
    let owners: Vec<_> = (0..MOST + 9).map(|_| Owner::new()).collect();
    for owner in &owners {
        deferred.leave(release(owner, TTL));
    }
    let mut forgotten: Vec<_> = told.try_iter().collect();
    // One may be on the wire.
    assert!(forgotten.len() >= 8, "{}", forgotten.len());
    // Those that are left when the locker is gone, too.
    drop(deferred);
    while forgotten.len() < owners.len() {
        forgotten.push(told.recv_timeout(TTL).expect("all are forgotten"));
    }
    assert!(forgotten.iter().all(|owner| owners.contains(owner)));
}

#[test]
fn what_silence_does_not_end_is_tried_for_longer_than_its_ttl() {
    let owner = Owner::new();
    let all = [true, false].map(|silence_ends_all| {
        let (deferred, told) = of_unreachable(silence_ends_all);
        deferred.leave(release(&owner, Duration::from_millis(1)));
        (deferred, told)
    });
    let [(_, ended), (_, kept)] = &all;
    assert_eq!(ended.recv_timeout(TTL), Ok(owner));
    // It was left behind the other, and pauses for as long at most.
    assert!(kept.recv_timeout(DEFERRED_PAUSES.cap).is_err());
}
