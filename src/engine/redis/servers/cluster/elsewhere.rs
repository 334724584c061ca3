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

use super::call::half;
use super::lookup::Nodes;
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Manner, Server};

/// The nodes that take slots over, and these slots.
#[derive(Debug, Default)]
pub(super) struct Importers(Vec<(Arc<Server>, Vec<u16>)>);

impl Importers {
    /// Those of a slot, but for the one that is asked anyway.
    pub(super) fn of(&self, slot: u16, asked: &Arc<Server>) -> Vec<Arc<Server>> {
        let all = self.0.iter().filter(|(_, slots)| slots.contains(&slot));
        let others = all.filter(|(node, _)| !Arc::ptr_eq(node, asked));
        others.map(|(node, _)| node.clone()).collect()
    }

    /// Notes which slots a node takes over, by its own word.
    pub(super) fn set(&mut self, node: &Arc<Server>, slots: &[u16]) {
        self.0.retain(|(one, _)| !Arc::ptr_eq(one, node));
        if !slots.is_empty() {
            self.0.push((node.clone(), slots.to_vec()));
        }
    }

    /// Notes that a node doesn't take that slot over any more.
    fn remove(&mut self, slot: u16, node: &Arc<Server>) {
        let of_node = self.0.iter_mut().filter(|(one, _)| Arc::ptr_eq(one, node));
        of_node.for_each(|(_, slots)| slots.retain(|one| *one != slot));
    }

    /// Forgets nodes that are others now, or gone.
    pub(super) fn forget(&mut self, gone: &[Arc<Server>]) {
        let is_gone = |node: &Arc<Server>| gone.iter().any(|gone| Arc::ptr_eq(gone, node));
        self.0.retain(|(node, _)| !is_gone(node));
    }
}

/// A command that goes to the owner of its slot.
pub(super) struct Asked<'a> {
    pub(super) slot: u16,
    pub(super) owner: &'a Arc<Server>,
    pub(super) command: &'a dyn Command,
    pub(super) deadline: &'a Deadline,
}

impl Nodes {
    /// Fails if the command asks for a lock that a node has which takes the slot over, and of which the owner doesn't know.
    pub(super) fn check_before(&self, asked: &Asked<'_>) -> Result<(), Failure> {
        if self.importers(asked).is_empty() {
            return Ok(());
        }
        let is_free_there = |lock: &&str| {
            let deadline = half(asked.deadline);
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
                let has = importer.call(&exists(lock), Manner::Asking, &half(asked.deadline));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Options;
    use crate::engine::net::address::Endpoint;
    use crate::engine::redis::address::{self, At};
    use crate::engine::redis::settings::Settings;

    #[test]
    fn node_takes_a_slot_over_until_it_says_otherwise_or_is_gone() {
        let address = address::parse("redis+cluster://a:1,a:2").unwrap();
        let settings = Arc::new(Settings::new(&address, &Options::default()).unwrap());
        let At::Cluster { hosts } = address.at else {
            panic!("it is one")
        };
        let server = |at| Arc::new(Server::new(Endpoint::Tcp(at), settings.clone()).unwrap());
        let nodes: Vec<_> = hosts.into_iter().map(server).collect();
        let mut importers = Importers::default();
        importers.set(&nodes[1], &[5, 6, 7]);
        let count = |importers: &Importers, slot| importers.of(slot, &nodes[0]).len();
        assert_eq!(count(&importers, 5), 1);
        assert!(importers.of(5, &nodes[1]).is_empty());
        importers.remove(5, &nodes[1]);
        assert_eq!((count(&importers, 5), count(&importers, 6)), (0, 1));
        importers.set(&nodes[1], &[7]);
        assert_eq!((count(&importers, 6), count(&importers, 7)), (0, 1));
        importers.forget(&nodes[1..]);
        assert_eq!(count(&importers, 7), 0);
    }
}
