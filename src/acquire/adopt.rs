//! How a call goes on with a lease that another process has given away.
//!
//! It asks the engine beside the local queue: whoever has the turn for the name waits for a lock that stays taken.
//!
//! | answer | the ticket | the call gives |
//! |---|---|---|
//! | adopted | is used | a guard; or `Lost`, if the answer took as long as the lease |
//! | not the other owner's any more | is used | `Lost` |
//! | none | can be used again, for the same new owner: if that has the lease already, it gets it anew | `Unavailable`, or `Cancelled` |

use std::time::Instant;

use super::Calls;
use super::wait_log::WaitLog;
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, LostReason, Result};
use crate::base::owner::Owner;
use crate::base::ticket::{Heir, OwnerTicket};
use crate::engine::{Change, Grant, Outcome, Request};
use crate::guard::LockGuard;
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;

impl Calls<'_> {
    /// Goes on with the lease of a ticket, whose claim is this one.
    pub(crate) fn adopt(self, claim: &Claim, ticket: &OwnerTicket) -> Result<LockGuard> {
        let (began, _call) = (Instant::now(), self.core.begin(&claim.key, self.ended_by)?);
        let lost = |reason| Error::lost(claim.key.name(), reason);
        // Another call that has it makes a guard of it, or leaves it unclear.
        let mut heir = ticket.heir().ok_or_else(|| lost(LostReason::NotOwner))?;
        let label = self.core.options.label.as_deref();
        let owner = heir.owner(self.core.process, label);
        let owner = owner.ok_or_else(|| lost(LostReason::NotOwner))?;
        // Before anything is taken that nobody would renew.
        let renewer = self.core.renewer(&claim.key)?;
        let adopted = self.ask_to_adopt(claim, &owner, ticket);
        if adopted.is_ok() {
            *heir = Heir::Final;
        }
        let lease = adopted.and_then(|grant| match grant {
            Some(grant) => self.adopted(claim, owner, grant),
            None => Err(lost(LostReason::NotOwner)),
        });
        match lease {
            Ok(lease) => {
                let mut log = WaitLog::default();
                log.acquired(self.core, &lease, began, false);
                LockGuard::new(self.core.clone(), lease, renewer, None)
            }
            Err(e) => {
                if let Some(renewer) = renewer {
                    self.core.renewers.give_back(renewer);
                }
                Err(e)
            }
        }
    }

    fn ask_to_adopt(
        self,
        claim: &Claim,
        owner: &Owner,
        ticket: &OwnerTicket,
    ) -> Result<Option<Grant>> {
        let request = Request {
            claim,
            owner,
            ttl: self.core.options.ttl,
            granted: None,
        };
        let change = Change::Adopt {
            from: &ticket.owner,
            last_used: ticket.last_used,
        };
        self.ask(claim.key.name(), |engine, deadline: &Deadline| {
            // Read before sending: the server's lease starts no earlier than this.
            let asked = self.core.clock.now();
            let Outcome::Done(done) = engine.change(request, change, deadline)? else {
                return Ok(None);
            };
            Ok(done.token.map(|token| Grant {
                token,
                value: done.value,
                since: done.since.unwrap_or(asked),
            }))
        })
    }

    fn adopted(self, claim: &Claim, owner: Owner, grant: Grant) -> Result<Lease> {
        let mut lease = Lease::new(claim.clone(), owner, grant.token);
        self.core.restart(&mut lease, grant.since);
        if lease.is_valid(lease.granted) {
            return Ok(lease);
        }
        let release = DeferredRelease::of(lease, self.core.options.ttl);
        self.core.deferred.leave(release);
        Err(Error::lost(claim.key.name(), LostReason::Expired))
    }
}
