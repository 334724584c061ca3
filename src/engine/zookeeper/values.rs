//! The values that locks protect: a node beside those of the owners.

use std::sync::Arc;

use super::client::{Change, Code, Op};
use super::locks::{Locks, RETRY, get, sync};
use super::nodes::VALUE;
use super::release::{is_lost, other_store, set};
use super::replies::{Replies, Trouble};
use crate::base::clock::Deadline;
use crate::base::name::Key;
use crate::base::value::Stored;
use crate::engine::{Outcome, Request};

/// Stores the value, if the owner has its node.
pub(super) fn store(
    locks: &Arc<Locks>,
    request: Request<'_>,
    value: &[u8],
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    let nodes = locks.owners.get(request.owner);
    let Some(own) = nodes.and_then(|nodes| nodes.paths.into_iter().next()) else {
        return Ok(Outcome::NOT_OWNER);
    };
    let check = Change::Check {
        path: own,
        version: None,
    };
    let mut store = set(locks.name(request.key()).child(VALUE), value);
    let mut done = Outcome::DONE;
    loop {
        let changes = Op::Multi(vec![check.clone(), store.clone()]);
        let session = locks.session(deadline)?;
        match session.call(&[changes], deadline) {
            Ok(answers) => match Replies::new(answers).multi()? {
                Ok(_) => return Ok(done),
                Err(refused) if refused.change == 0 && refused.code == Code::NoNode => {
                    return Ok(Outcome::NOT_OWNER);
                }
                Err(refused) => match refused.code {
                    Code::NoNode | Code::NodeExists => store = other_store(&store),
                    code => return Err(code.into()),
                },
            },
            Err(lost) if is_lost(&lost.error) && !deadline.is_over() => {
                if lost.sent {
                    done = Outcome::DONE_AGAIN;
                }
                deadline.sleep(RETRY);
            }
            Err(lost) => return Err(lost.into()),
        }
    }
}

/// The value, as the leader has it.
pub(super) fn load(locks: &Arc<Locks>, key: &Key, deadline: &Deadline) -> Result<Stored, Trouble> {
    let path = locks.name(key).child(VALUE);
    let mut replies = locks.call_again(&[sync(&path), get(path)], deadline)?;
    replies.done()?;
    Ok(replies.data()?.map(|(value, _)| value.into()))
}

/// Deletes the value.
pub(super) fn remove(locks: &Arc<Locks>, key: &Key, deadline: &Deadline) -> Result<(), Trouble> {
    let delete = Op::Delete {
        path: locks.name(key).child(VALUE),
        version: None,
    };
    locks.call_again(&[delete], deadline)?.exists().map(drop)
}
