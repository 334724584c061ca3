//! How a lease ends that its owner knows of.
//!
//! The place of the owner is deleted, or left to nobody for a while, if it is as the owner has written it. If it isn't, the
//! answer shows what is there: the owner's place with another text, such as that of a downgrade without an answer, is
//! released as it is; of several names those are released that are left.

use super::change::{Changed, Found};
use super::ops::{delete, look};
use super::shared::Commands;
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::token::Ending;
use crate::engine::etcd::client::txn::Op;
use crate::engine::etcd::keys::Keys;
use crate::engine::etcd::leases::ServerLease;
use crate::engine::etcd::owners::Own;
use crate::engine::etcd::place::Text;
use crate::engine::{Gone, Outcome, Release, Request};

impl Commands {
    pub(in super::super) fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        if release.ending == Ending::Unknown {
            self.leave_for_good(request, deadline)?;
            return Ok(Outcome::DONE);
        }
        let kept = self.keeping(request, release, deadline)?;
        let released = self.release_all(request, (release, kept), deadline)?;
        if released.is_done() {
            self.retire_cleanly(request, release, deadline);
        } else {
            self.drop_lease(request.owner, deadline);
            if let Some(lease) = kept {
                self.leases.revoke(lease, deadline);
            }
        }
        Ok(released)
    }

    /// The owner has nothing any more. A question of its own that comes late is refused from now on, but one that came just now
    /// may have left word that it was let in.
    fn retire_cleanly(&self, request: Request<'_>, release: Release<'_>, deadline: &Deadline) {
        let own = self.owners.get(request.owner);
        self.retire(request.owner, deadline);
        let is_clean = matches!(release.ending, Ending::Clean { .. });
        if let Some(own) = own.filter(|own| is_clean && own.is_unclear && own.has_entered) {
            let keys = self.keys(request.claim).into_iter();
            let left = keys.map(|keys| delete(keys.entered_by(&own.id))).collect();
            // It was released, whatever comes of this.
            let _ = self.client.transact(&look(left), deadline);
        }
    }

    /// The lease of a lock that stays taken for a while.
    fn keeping(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Option<ServerLease>> {
        if release.keep.is_zero() {
            return Ok(None);
        }
        let granted = self.leases.grant(release.keep, deadline);
        let (lease, _) = granted.map_err(|e| self.error(Some(request.key().name()), e))?;
        Ok(Some(lease))
    }

    fn release_all(
        &self,
        request: Request<'_>,
        how: (Release<'_>, Option<ServerLease>),
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (mut own, mut keys) = (self.known(request.owner), self.keys(request.claim));
        let (mut end, mut was_sent) = (Outcome::DONE, false);
        loop {
            let then = release_ops(&keys, &own, how);
            let (changed, sent) = self.change(request, (&keys, &own), then, deadline)?;
            was_sent |= sent;
            let found = match changed {
                Changed::Other(found) => found,
                Changed::Done => {
                    if own.has_entered && matches!(how.0.ending, Ending::Clean { .. }) {
                        self.leases.forgets();
                    }
                    return Ok(end);
                }
            };
            if end.is_done() {
                end = why_not(&found, was_sent);
            }
            // Those that are still the owner's, as they are.
            let left = keys.into_iter().zip(found);
            let left = left.filter_map(|(keys, found)| Some((keys, found.own?.value)));
            let (names, texts): (Vec<_>, Vec<_>) = left.unzip();
            let Some(text) = texts.into_iter().next() else {
                return Ok(end);
            };
            (keys, own.text) = (names, text);
        }
    }
}

/// What a release comes to that found this.
fn why_not(found: &[Found], was_sent: bool) -> Outcome {
    if found.iter().any(|one| one.is_broken) {
        Outcome::BROKEN
    } else if found.iter().all(|one| one.own.is_some()) {
        // It is all there, and was written otherwise.
        Outcome::DONE
    } else if was_sent {
        Outcome::Gone(Gone::Repeated)
    } else {
        Outcome::NOT_OWNER
    }
}

fn release_ops(
    keys: &[Keys],
    own: &Own,
    (release, kept): (Release<'_>, Option<ServerLease>),
) -> Vec<Op> {
    let text = Text::parse(&own.text);
    let was_alone = text
        .as_ref()
        .is_some_and(|text| text.mode == Mode::Exclusive);
    let left = kept.zip(text).map(|(lease, text)| {
        (
            lease,
            Text {
                owner: None,
                ..text
            }
            .to_bytes(),
        )
    });
    let mut ops = Vec::with_capacity(2 * keys.len() + 1);
    for keys in keys {
        ops.push(match &left {
            Some((lease, text)) => Op::Put {
                key: keys.place(&own.id),
                value: text.clone(),
                lease: Some(lease.id),
            },
            None => delete(keys.place(&own.id)),
        });
        // After a panic the next is told.
        if was_alone && matches!(release.ending, Ending::Clean { .. }) {
            ops.push(Op::Delete(keys.entered()));
        }
    }
    ops.extend(put_value(keys, release.value));
    ops
}

/// Stores a value with what is done to the name.
pub(super) fn put_value(keys: &[Keys], value: Option<&[u8]>) -> Option<Op> {
    Some(Op::Put {
        key: keys.first()?.value(),
        value: value?.to_vec(),
        lease: None,
    })
}
