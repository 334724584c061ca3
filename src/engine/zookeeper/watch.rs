//! Watches of what is in a waiter's way.

use super::call::Call;
use super::children::Children;
use super::client::{Failure, Op, Watcher};
use super::owners::Card;
use crate::base::clock::Deadline;
use crate::base::error::Result as PublicResult;
use crate::engine::line::{Blocker, LineWatch, Snapshot, Watched};

/// A watch of the node in a waiter's way, or of all nodes of a name.
pub(super) struct NodeWatch {
    /// Of which name of the request.
    name: usize,
    /// `None`: all nodes of the name, and each change is one to hear of anew.
    node: Option<String>,
    watcher: Watcher,
}

impl NodeWatch {
    pub(super) fn begin(
        call: &Call<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
    ) -> Result<Watched<Self>, Failure> {
        let (name, line) = (&call.names[blocker.name], &seen.lines[blocker.name]);
        let node = blocker.ahead.first().filter(|_| blocker.is_one);
        let watcher = Watcher::new();
        let watching = match node {
            Some(node) => Op::watch(&name.child(node), watcher.clone()),
            None => Op::Children {
                path: name.path.clone(),
                watch: Some(watcher.clone()),
            },
        };
        let first = Op::get(name.child(&line.0[0].id));
        let mut replies = call.ask(&[watching, first])?;
        let is_current = match node {
            Some(_) => replies.data()?.is_some(),
            None => {
                let now = Children::of(replies.children()?).line;
                let is_there = |id: &String| now.0.iter().any(|entry| entry.id == *id);
                line.0.iter().all(|entry| is_there(&entry.id))
            }
        };
        // Without its session it has no place any more.
        let nodes = call.locks.owners.get(call.request.owner);
        let is_in_line = nodes.is_some_and(|nodes| nodes.session == call.session.id());
        let holder = replies.data()?.map(|(card, _)| Card::of(&card).owner);
        let holder = holder.map(|owner| owner.holder().to_owned());
        Ok(Watched {
            watch: NodeWatch {
                name: blocker.name,
                node: node.cloned(),
                watcher,
            },
            is_current: is_current && is_in_line,
            holder: holder.filter(|holder| !holder.is_empty()),
        })
    }
}

impl LineWatch for NodeWatch {
    fn goes_on_for(&mut self, blocker: &Blocker, _seen: &Snapshot) -> bool {
        let is_same = blocker.is_one && blocker.ahead.first() == self.node.as_ref();
        is_same && blocker.name == self.name && self.watcher.told().is_none()
    }

    fn wait(&mut self, until: &Deadline) -> PublicResult<bool> {
        Ok(self.watcher.wait(until).is_some())
    }
}
