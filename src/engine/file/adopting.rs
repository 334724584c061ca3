//! How a lease passes to another owner of the same process. It can't pass to another process: the lock is the kernel's, and
//! belongs to the file that this process has open.

use super::content::{Held, Record};
use super::files::Files;
use super::moment::Moment;
use crate::base::error::{Error, Result};
use crate::base::fork::Process;
use crate::base::inspection::Party;
use crate::base::owner::Owner;
use crate::base::token::{HAND_OVERS, Token};
use crate::engine::{Renewed, Request};

impl Files {
    /// Gives the token of the new owner; `None` when the lease was the other's no more.
    pub(super) fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
    ) -> Result<Option<Token>> {
        let mut ours = self.held.lock();
        if let Some(adopted) = ours.get(request.owner) {
            return Ok(Some(adopted.token));
        }
        let Some(mut held) = ours.remove(from) else {
            return self.adopt_unknown(from);
        };
        // More hand-overs there can't have been.
        let most = held.token.number + 2 * HAND_OVERS;
        let last_used = Token::from_number(last_used.clamp(held.token.number, most));
        held.token = last_used.handed_over();
        let record = Record::Held(Held {
            since: Moment::now(),
            holder: request.owner.holder().to_owned(),
        });
        let written = held.write(held.token.number, &record);
        let standing = written.and_then(|()| held.standing());
        if standing.map_err(|e| self.error(request.key(), e))? != Renewed::Done {
            return Ok(None);
        }
        let token = held.token;
        ours.insert(request.owner.clone(), held);
        Ok(Some(token))
    }

    /// Of an owner that has nothing in this process.
    fn adopt_unknown(&self, from: &Owner) -> Result<Option<Token>> {
        let process = Party::of(from.holder()).map(|party| party.pid);
        if process == Some(Process::current().id()) {
            return Ok(None);
        }
        let what = format!(
            "passing a lock on to another process on {}, where the kernel ties it to the process that took it: \
             use redis://",
            self.place
        );
        Err(Error::Unsupported { what })
    }
}
