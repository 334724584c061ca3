//! How a call that has no lease takes back what its questions may have done.

use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::token::Ending;
use crate::core::Core;
use crate::lease::deferred_release::DeferredRelease;
use crate::queue::handoff::{Contender, Standing};

/// Leaves the engine's queue, and releases what a question may have taken: by `deadline`, or else a thread does it. A
/// question that is still on its way to a server, and comes after this in spite of the engine's care, leaves the lock taken for
/// its ttl.
pub(super) fn release_contender(
    core: &Core,
    claim: &Claim,
    contender: &Contender,
    deadline: &Deadline,
) {
    if contender.standing == Standing::Unknown {
        return;
    }
    let release = DeferredRelease {
        claim: claim.clone(),
        owner: contender.owner.clone(),
        ttl: core.options.ttl,
        ending: Ending::Unknown,
        kept_until: BootInstant::START,
    };
    core.deferred.make(release, deadline);
}
