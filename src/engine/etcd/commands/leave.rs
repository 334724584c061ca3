//! How an owner leaves the line that doesn't know what it has, or may not stay.

use super::ops::{delete, look};
use super::shared::Commands;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::keys::id_of;
use crate::engine::{Request, Unanswered};

impl Commands {
    /// Gives up all places of an owner that doesn't know that it has the lock. What others have stays.
    pub(in super::super) fn leave(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<(), Unanswered<Failure>> {
        let own = self.owners.get(request.owner);
        let id = own.as_ref().map_or(id_of(request.owner), |own| &*own.id);
        let keys = self.keys(request.claim);
        let mut ops = Vec::with_capacity(2 * keys.len());
        for keys in &keys {
            ops.push(delete(keys.place(id)));
            // It has done nothing that the next would have to be told.
            ops.push(delete(keys.entered_by(id)));
        }
        self.write(request.owner, &look(ops), deadline)?;
        if own.is_some_and(|own| own.has_entered) {
            self.leases.forgets();
            self.owners
                .change(request.owner, |own| own.has_entered = false);
        }
        Ok(())
    }

    /// The same, for good.
    pub(in super::super) fn leave_for_good(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<()> {
        let name = request.key().name();
        if let Some(own) = self.owners.get(request.owner).filter(|own| own.is_unclear) {
            // Once before its places are gone: whoever is let in then isn't to find that it was.
            let _ = self.leave(request, deadline);
            // What comes late is refused from now on, and can't undo the rest.
            self.leases.revoke(own.lease, deadline);
        }
        self.until_answered(Some(name), deadline, || self.leave(request, deadline))?;
        self.retire(request.owner, deadline);
        Ok(())
    }
}
