//! Locks that a node has whose slot is another's.
//!
//! A slot moves key by key. Its owner sends a command for a key that has gone to the node that takes the slot over, until it
//! forgets that the slot goes: when its replica takes its place, which Redis 7 hasn't told, or by SETSLOT STABLE. Then it
//! answers for all names, as if those that have gone were free. The node that takes the slot over doesn't forget. So:
//!
//! - Before the owner is asked for a lock, it is asked whether it has its key. While it knows that the slot goes, it doesn't say
//!   no, but where to ask. If it says no, the node that takes the slot over is asked, too. So nothing is written at the owner
//!   that would be in the way of those keys when they come back.
//! - That node is asked again before what the owner has granted counts: the lock may have moved meanwhile.
//!
//! Who takes slots over is known from look-ups. A process has had one within a quarter of its ttl when it takes a lock, and one
//! that began when it found the slot at another node than before.

use std::sync::Arc;

use ::redis::{Cmd, Value};

use super::topology::Topology;
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Manner, Server, share};

/// A command that goes to the owner of its slot.
pub(super) struct Asked<'a> {
    pub(super) slot: u16,
    pub(super) owner: &'a Arc<Server>,
    pub(super) command: &'a dyn Command,
    pub(super) deadline: &'a Deadline,
}

impl Topology {
    /// Fails if the command asks for a lock that a node has which takes the slot over, and of which the owner doesn't know.
    pub(super) fn check_before(&self, asked: &Asked<'_>) -> Result<(), Failure> {
        if self.importers(asked).is_empty() {
            return Ok(());
        }
        let is_free_there = |lock: &&str| {
            let deadline = share(asked.deadline);
            let said = asked.owner.call(&exists(lock), Manner::Plain, &deadline);
            said.is_ok_and(|said| said.value == Value::Int(0))
        };
        if asked.command.locks().iter().any(is_free_there) {
            return self.check_after(asked);
        }
        Ok(())
    }

    /// Fails if a node that takes the slot over has a lock that the command may have taken at its owner.
    pub(super) fn check_after(&self, asked: &Asked<'_>) -> Result<(), Failure> {
        for importer in self.importers(asked) {
            for lock in asked.command.locks() {
                let has = importer.call(&exists(lock), Manner::Asking, &share(asked.deadline));
                let said = match has {
                    Ok(answer) if answer.value == Value::Int(0) => continue,
                    Ok(_) => "which has this lock".to_owned(),
                    // Not any more.
                    Err(e) if matches!(e.error, Failure::Elsewhere(_)) => {
                        self.map.lock().importers.remove(asked.slot, &importer);
                        break;
                    }
                    Err(e) => {
                        let cause = e.error.cause();
                        format!("which doesn't say whether it has this lock ({cause})")
                    }
                };
                return Err(half_done(asked, &importer, &said));
            }
        }
        Ok(())
    }

    fn importers(&self, asked: &Asked<'_>) -> Vec<Arc<Server>> {
        self.map.lock().importers.of(asked.slot, asked.owner)
    }
}

fn half_done(asked: &Asked<'_>, importer: &Server, said: &str) -> Failure {
    let (slot, owner, importer) = (asked.slot, asked.owner.address(), importer.address());
    let cause = format!(
        "slot {slot} of {owner} is on its way to {importer}, {said}: finish that, or mend it by \
         redis-cli --cluster fix {owner}"
    );
    Failure::Moving(cause.into())
}

fn exists(key: &str) -> Cmd {
    let mut exists = ::redis::cmd("EXISTS");
    exists.arg(key);
    exists
}
