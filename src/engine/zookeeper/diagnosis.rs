//! What the servers are like.

use std::sync::Arc;
use std::time::Duration;

use super::locks::{Locks, sync};
use super::replies::Trouble;
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::options::Options;

pub(super) fn diagnose(
    locks: &Arc<Locks>,
    options: &Options,
    deadline: &Deadline,
) -> Result<Vec<Finding>, Trouble> {
    Ok(vec![
        session(locks, options),
        round_trip(locks, deadline)?,
        proof(locks, deadline)?,
        log(),
    ])
}

/// What clients aren't told.
fn log() -> Finding {
    let why = "servers tell no client whether their log is on disk before they answer";
    let advice = "see that no server has `forceSync=no`: the loss of a majority's power would free locks and \
                  give their tokens again";
    Finding::unknown("log", why, advice)
}

fn session(locks: &Locks, options: &Options) -> Finding {
    let (ttl, tick) = (options.ttl, locks.tick());
    let found = format!("{ttl:?}, as the ttl; the servers' tick is {tick:?}");
    if ttl >= 6 * tick {
        return Finding::fine("session timeout", found);
    }
    let consequence =
        "a renewal proves what was two ticks ago: leases last for little more than that";
    let advice = "take a ttl of at least six ticks, or give the servers a smaller tickTime";
    Finding::weak("session timeout", found, consequence, advice)
}

/// What the leader answers.
fn round_trip(locks: &Arc<Locks>, deadline: &Deadline) -> Result<Finding, Trouble> {
    const ROUNDS: u32 = 5;
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let asked = locks.clock.now();
        locks.call_again(&[sync("/")], deadline)?.done()?;
        fastest = fastest.min(locks.clock.now().since(asked));
    }
    let found = format!("{fastest:?} to the leader and back, the fastest of {ROUNDS}");
    if fastest <= locks.ttl() / 20 {
        return Ok(Finding::fine("round trip", found));
    }
    let consequence = "renewals are late: a short pause of a server ends leases";
    let advice = "take a longer ttl, or a server that is nearer";
    Ok(Finding::weak("round trip", found, consequence, advice))
}

/// How old the proof is that the session lives.
fn proof(locks: &Arc<Locks>, deadline: &Deadline) -> Result<Finding, Trouble> {
    let since = locks.session(deadline)?.prove(deadline)?;
    let lag = locks.clock.now().since(since);
    let found = format!("the leader is known to have had the session {lag:?} ago");
    if lag <= locks.ttl() / 2 {
        return Ok(Finding::fine("proof", found));
    }
    let consequence = "leases last for less than half of the ttl";
    let advice = "take a longer ttl, or give the servers a smaller tickTime";
    Ok(Finding::weak("proof", found, consequence, advice))
}
