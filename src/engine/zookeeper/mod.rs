//! Locks in ZooKeeper.
//!
//! A locker has one `client::Session`. Each owner has an ephemeral node in the line of each of its names: `nodes`
//! says what they are called, and what they tell. `engine::line` says who holds, and how an owner comes to a lock;
//! [`ZooKeeperStore`] is what ZooKeeper does for that, by `enter`, `commit` and `leases`. `owners` has those of this
//! process, whose guards hear of the end of the session, and of nodes that are gone.
//!
//! It uses `base`, the seam, `engine::line`, `engine::net` and `engine::url`. What always holds here: a lease counts
//! since a time at which the leader is known to have had the session; what is deleted before a node that others watch
//! is deleted in the same transaction; and a node that a request may have made is looked for before another is made.

use std::sync::{Arc, Weak};
use std::{fmt, time::Duration};

use self::client::{Failure, Op, Session, Watcher};
use self::nodes::{Children, NodeData};
use self::{call::Call, leases::Lease, locks::Locks};
use super::line::{
    Blocker, HAND_OVERS, LineEngine, LineStore, LineWatch, Snapshot, Step, Watched, When, Why,
};
use super::{Capabilities, Engine, Failed, Request, Revocations};
use crate::base::{Clock, Deadline, Options, Owner, Result};

mod address;
mod call;
mod client;
mod commit;
mod diagnosis;
mod enter;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod leases;
mod locks;
mod nodes;
mod operators;
mod owners;
mod sessions;
mod sweep;
mod teller;
mod watch;

/// Opens the session, so that a wrong URL, login, address or ttl is told now.
pub(super) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let address = address::parse(url)?;
    options.check()?;
    let session = Session::open(address, options.ttl, options, clock.clone())?;
    let locks = Locks::new(session, options.ttl, clock);
    Ok(Arc::new(LineEngine(Arc::new(ZooKeeperStore(locks)))))
}

/// For how long the end of a locker waits until the servers know of it.
const CLOSE: Duration = Duration::from_millis(60);

/// The longest time that a waiter rests without a look, whatever its watch tells.
const LOOK: Duration = Duration::from_secs(10);

/// The locks of one locker.
struct ZooKeeperStore(Arc<Locks>);

impl LineStore for ZooKeeperStore {
    type Watch = NodeWatch;

    fn endpoint(&self) -> &str {
        self.0.endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            preference: false,
            hand_overs: HAND_OVERS,
            silence_ends_all: false,
            ..Capabilities::default()
        }
    }

    fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        self.0.gives_up_by(deadline)
    }

    fn enter(&self, request: Request<'_>, when: When, deadline: &Deadline) -> Result<Step, Failed> {
        self.answered(request, deadline, |call| call.enter(when))
    }

    fn look(&self, request: Request<'_>, why: Why, deadline: &Deadline) -> Result<Step, Failed> {
        self.answered(request, deadline, |call| call.look_in_line(why))
    }

    /// The look that shows nobody in its way lets it in. So its nodes are gone since.
    fn admit(
        &self,
        _request: Request<'_>,
        _seen: &Snapshot,
        _deadline: &Deadline,
    ) -> Result<Step, Failed> {
        Ok(Step::Same)
    }

    fn rest(&self, request: Request<'_>) -> Duration {
        let kept = self.0.owners.get(request.owner);
        let kept = kept.and_then(|nodes| nodes.kept_until);
        kept.map_or(LOOK, |until| until.since(self.0.clock.now()).min(LOOK))
    }

    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<NodeWatch>> {
        let call = Call::new(&self.0, request, deadline);
        let watched = call.and_then(|call| NodeWatch::begin(&call, blocker, seen));
        self.0.told(Some(request.key()), watched)
    }

    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Failed> {
        let deadline = self.0.gives_up_by(deadline);
        let left = self.lease(request, &deadline).leave();
        left.map_err(|failure| self.0.failed(request, failure))
    }

    /// What was sent is carried out before all that this session asks later, and ends with the session.
    fn has_inflight(&self, _request: Request<'_>) -> bool {
        false
    }

    fn retire(&self, request: Request<'_>, _deadline: &Deadline) {
        self.0.owners.remove(request.owner);
    }

    fn discard(&self, request: Request<'_>, deadline: &Deadline) {
        self.retire(request, deadline);
    }

    fn settle(&self, _request: Request<'_>, _deadline: &Deadline) {}

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.0.owners.tell(to);
    }

    fn after_fork(&self) -> Arc<Self> {
        Arc::new(ZooKeeperStore(self.0.after_fork()))
    }

    fn abandon(&self, owner: &Owner) {
        self.0.abandon(owner);
    }
}

impl ZooKeeperStore {
    fn lease<'a>(&'a self, request: Request<'a>, deadline: &'a Deadline) -> Lease<'a> {
        Lease {
            locks: &self.0,
            request,
            deadline,
        }
    }

    fn answered(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
        ask: impl FnOnce(&Call<'_>) -> Result<Step, Failure>,
    ) -> Result<Step, Failed> {
        let call = Call::new(&self.0, request, deadline);
        let step = call.and_then(|call| ask(&call));
        step.map_err(|failure| self.0.failed(request, failure))
    }
}

/// A watch of the node in a waiter's way, or of all nodes of a name.
struct NodeWatch {
    /// Of which name of the request.
    name: usize,
    /// `None`: all nodes of the name, and each change is one to hear of anew.
    node: Option<String>,
    watcher: Watcher,
}

impl NodeWatch {
    fn begin(
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
        let holder = replies.data()?.map(|(data, _)| NodeData::of(&data).owner);
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

    fn wait(&mut self, until: &Deadline) -> Result<bool> {
        Ok(self.watcher.wait(until).is_some())
    }
}

impl Drop for ZooKeeperStore {
    fn drop(&mut self) {
        self.0.close(&Deadline::after(CLOSE));
    }
}

impl fmt::Debug for ZooKeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
