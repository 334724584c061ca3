//! A call that has no answer yet watches for another node that has its slot.
//!
//! A node that hangs keeps its connections, so a call to it would wait until its deadline, also long after its replica took
//! its place. So its deadline is over as soon as the slot is known to be another node's; and after [`SLOW`] the call has it
//! looked up, again and again, each time that its I/O looks whether it was cancelled. All calls share these look-ups.
//!
//! What holds a deadline, such as an idle connection, keeps neither the nodes nor a server alive by it.

use std::sync::Arc;
use std::time::Duration;

use super::lookup::Nodes;
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::redis::server::Server;

/// A call without an answer has its slot looked up after so long, and again as often.
const SLOW: Duration = Duration::from_millis(250);

impl Nodes {
    /// The same deadline, for a call to the node that has that slot: it is over when another has it.
    pub(super) fn watched(
        self: &Arc<Self>,
        slot: u16,
        node: &Arc<Server>,
        deadline: &Deadline,
    ) -> Deadline {
        let (nodes, node) = (Arc::downgrade(self), Arc::downgrade(node));
        let (caller, slow) = (deadline.cancel().cloned(), time::now() + SLOW);
        deadline.clone().or(&Cancel::when(move || {
            if caller.as_ref().is_some_and(Cancel::is_set) {
                return true;
            }
            let (Some(nodes), Some(node)) = (nodes.upgrade(), node.upgrade()) else {
                return false;
            };
            if time::now() < slow {
                return node.retired().is_set();
            }
            nodes.look_up_beside(SLOW);
            let master = nodes.master(slot);
            master.is_some_and(|master| !Arc::ptr_eq(&master, &node))
        }))
    }
}
