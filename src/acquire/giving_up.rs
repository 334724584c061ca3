//! How a call that has no lease takes back what its questions may have done.

use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Whole;
use crate::base::token::Ending;
use crate::core::Core;
use crate::engine::{Release, Request};
use crate::lease::deferred_release::DeferredRelease;
use crate::queue::handoff::{Contender, Standing};

/// Leaves the engine's queue, and releases what a question may have taken: by `deadline`, or else a thread does it. A
/// question that is still on its way to the server, and takes the lock after this, leaves it taken for its ttl.
pub(super) fn release_contender(
    core: &Core,
    claim: &Claim,
    contender: &Contender,
    deadline: &Deadline,
) {
    let ttl = core.options.ttl;
    let request = Request {
        claim,
        owner: &contender.owner,
        ttl,
    };
    if contender.standing == Standing::Unknown {
        return;
    }
    let release = || core.engine.release(request, Release::UNKNOWN, deadline);
    let is_left = deadline.is_over()
        || match release() {
            Ok(_) => false,
            Err(e) if e.may_pass() => true,
            Err(e) => {
                log::warn!("what was given up is left to its ttl: {}", Whole(&e));
                false
            }
        };
    if is_left {
        core.deferred.leave(DeferredRelease {
            claim: claim.clone(),
            owner: contender.owner.clone(),
            ttl,
            ending: Ending::Unknown,
            kept_until: BootInstant::START,
        });
    }
}
