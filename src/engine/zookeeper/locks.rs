//! What all parts of the engine share: the session, the owners of this process, and what is asked for a name.

use std::sync::{Arc, Weak};
use std::{fmt, time::Duration};

use super::client::{
    Change, Code, Failure, Kind, News, Op, Refused, Replies, Reply, Session, WatchEvent, Watcher,
};
use super::nodes::{self, Children, LeadersClock, Name, NodeData, left};
use super::owners::Owners;
use super::{sessions::Sessions, teller::Teller};
use crate::base::sys::collections::HashMap;
use crate::base::{
    BootInstant, Cancel, Clock, Deadline, Key, Owner, Result as PublicResult,
    limits::DEFERRED_PAUSES, sys::sync::Mutex,
};
use crate::engine::contended::Contended;
use crate::engine::line::{Line, uuid_of};
use crate::engine::{Failed, Request, Telling};

/// What all parts of the engine share.
pub(super) struct Locks {
    pub(super) owners: Owners,
    /// Nodes that are still to be deleted: their owners' leases have ended.
    garbage: Mutex<Vec<String>>,
    deletes: Teller,
    /// When this locker looks next whether a namespace is to be swept.
    pub(super) sweeps: Mutex<HashMap<Box<str>, BootInstant>>,
    /// In which an exclusive owner found the `held` of another. To make `held` together with a node would be refused
    /// there, which costs a request.
    pub(super) contended: Contended,
    pub(super) clock: Arc<dyn Clock>,
    sessions: Sessions,
    ttl: Duration,
    /// Set when the locker is gone.
    pub(super) closed: Cancel,
}

impl Locks {
    pub(super) fn new(session: Arc<Session>, ttl: Duration, clock: Arc<dyn Clock>) -> Arc<Self> {
        let locks = Locks::of(Sessions::new(session.clone()), ttl, clock);
        locks.watch_over(&session);
        locks
    }

    /// Those of a child that was forked off.
    pub(super) fn after_fork(&self) -> Arc<Self> {
        Locks::of(self.sessions.after_fork(), self.ttl, self.clock.clone())
    }

    fn of(sessions: Sessions, ttl: Duration, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (owners, garbage, deletes, sweeps, contended, closed) = Default::default();
        Arc::new(Locks {
            owners,
            garbage,
            deletes,
            sweeps,
            contended,
            clock,
            sessions,
            ttl,
            closed,
        })
    }

    pub(super) fn endpoint(&self) -> &str {
        self.sessions.any().endpoint()
    }

    /// By when a call is given up that has this deadline. What asks again has an end thereby.
    pub(super) fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        self.sessions.any().gives_up_by(deadline)
    }

    pub(super) fn tick(&self) -> Duration {
        self.sessions.any().tick()
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(super) fn name(&self, key: &Key) -> Name {
        Name {
            path: nodes::name_path(self.sessions.any().chroot(), key),
        }
    }

    pub(super) fn names(&self, request: Request<'_>) -> Vec<Name> {
        let keys = request.claim.keys().iter();
        keys.map(|key| self.name(key)).collect()
    }

    pub(super) fn namespace_path(&self, namespace: &str) -> String {
        nodes::namespace_path(self.sessions.any().chroot(), namespace)
    }

    /// The session in which all is done now.
    pub(super) fn session(self: &Arc<Self>, deadline: &Deadline) -> Result<Arc<Session>, Failure> {
        self.sessions
            .get(deadline, |session| self.watch_over(session))
    }

    /// Tells guards of the session's end, and ends leases that nobody renews.
    fn watch_over(self: &Arc<Self>, session: &Arc<Session>) {
        let (locks, id) = (Arc::downgrade(self), session.id());
        session.listen(move |news| {
            let Some(locks) = locks.upgrade() else { return };
            match news {
                News::Beat => locks.end_overdue(),
                News::Expired => locks.owners.session_ended(id),
            }
        });
    }

    /// Deletes the nodes of leases that nobody has renewed in time. The holder marker stays: the next holder is told.
    fn end_overdue(self: &Arc<Self>) {
        for nodes in self.owners.take_overdue(self.clock.now()) {
            self.delete_soon(nodes.paths);
        }
        // There may have been no thread to delete others.
        let _ = self.deletes.start([]);
    }

    /// Its lease is lost: its nodes are deleted, if they are still there.
    pub(super) fn abandon(self: &Arc<Self>, owner: &Owner) {
        let Some(nodes) = self.owners.remove(owner) else {
            return;
        };
        let mut paths = nodes.paths;
        if self.owners.is_broken(owner) {
            let broken = nodes::broken(uuid_of(owner));
            let names = paths
                .iter()
                .filter_map(|path| Some(path.rsplit_once('/')?.0));
            let told: Vec<_> = names.map(|name| format!("{name}/{broken}")).collect();
            paths.extend(told);
        }
        self.delete_soon(paths);
    }

    fn delete_soon(self: &Arc<Self>, paths: Vec<String>) {
        if paths.is_empty() {
            return;
        }
        self.garbage.lock().extend(paths);
        let locks = Arc::downgrade(self);
        let job = move || delete(&locks);
        if let Err(e) = self.deletes.start([Box::new(job) as Telling]) {
            log::warn!("can't start the thread that deletes the nodes of ended leases: {e}");
        }
    }

    /// Whether one of these is about to be deleted.
    pub(super) fn deletes(&self, paths: &[String]) -> bool {
        let garbage = self.garbage.lock();
        paths.iter().any(|path| garbage.contains(path))
    }

    /// The locker is gone: the session ends at once, if nobody goes on with what it has. What was about to be deleted
    /// goes with it.
    pub(super) fn close(&self, deadline: &Deadline) {
        self.closed.set();
        if self.owners.is_empty() {
            self.sessions.close(deadline);
        }
    }

    /// What several requests are answered.
    pub(super) fn call(
        self: &Arc<Self>,
        requests: &[Op],
        deadline: &Deadline,
    ) -> Result<Replies, Failure> {
        let session = self.session(deadline)?;
        Ok(session.call(requests, deadline)?)
    }

    /// The same, of requests that may be carried out twice.
    pub(super) fn call_again(
        self: &Arc<Self>,
        requests: &[Op],
        deadline: &Deadline,
    ) -> Result<Replies, Failure> {
        self.again(deadline, || self.call(requests, deadline))
    }

    /// The same, of one transaction.
    pub(super) fn change_again(
        self: &Arc<Self>,
        changes: Vec<Change>,
        deadline: &Deadline,
    ) -> Result<Result<Vec<String>, Refused>, Failure> {
        self.call_again(&[Op::Multi(changes)], deadline)?.multi()
    }

    /// Asks again, if the connection was lost.
    pub(super) fn again<T>(
        &self,
        deadline: &Deadline,
        mut ask: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            match ask() {
                Err(Failure::Unreachable(_) | Failure::Ended) if !deadline.is_over() => {
                    deadline.sleep(RETRY);
                }
                answer => return answer,
            }
        }
    }

    /// What the leader has below a name.
    pub(super) fn children(
        self: &Arc<Self>,
        name: &Name,
        deadline: &Deadline,
    ) -> Result<Children, Failure> {
        let requests = [Op::sync(&name.path), Op::children(&name.path)];
        let mut replies = self.call_again(&requests, deadline)?;
        replies.done()?;
        Ok(Children::of(replies.children()?))
    }

    /// For how long each kept place of a line lasts, by its node. One that is gone is over.
    pub(super) fn times_left(
        self: &Arc<Self>,
        name: &Name,
        line: &Line,
        leaders_now: i64,
        deadline: &Deadline,
    ) -> Result<HashMap<String, Duration>, Failure> {
        let kept = line.0.iter().filter(|entry| entry.is_kept());
        let kept: Vec<_> = kept.map(|entry| entry.id.clone()).collect();
        let requests: Vec<_> = kept.iter().map(|node| Op::get(name.child(node))).collect();
        let mut replies = self.call_again(&requests, deadline)?;
        let time_left = |node| {
            let found = replies.data()?;
            let left = found.map(|(content, stat)| left(&content, &stat, leaders_now));
            Ok((node, left.unwrap_or_default()))
        };
        kept.into_iter().map(time_left).collect()
    }

    /// The owner's locks were broken: the nodes that tell so are no longer needed.
    pub(super) fn heard_of_break(self: &Arc<Self>, request: Request<'_>) {
        let node = nodes::broken(uuid_of(request.owner));
        let names = self.names(request).into_iter();
        self.owners.set_broken(request.owner);
        let paths = names.map(|name| name.child(&node)).collect();
        self.delete_soon(paths);
    }

    /// Makes the nodes of these names, and those above them.
    pub(super) fn make(
        &self,
        session: &Session,
        names: &[Name],
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let mut paths: Vec<_> = names
            .iter()
            .flat_map(|name| nodes::parents(&name.path))
            .collect();
        paths.sort();
        paths.dedup();
        let create = |path| {
            let (data, kind) = (Vec::new(), Kind::Container);
            Op::Change(Change::Create { path, data, kind })
        };
        let requests: Vec<_> = paths.into_iter().map(create).collect();
        let count = requests.len();
        let mut replies = session.call(&requests, deadline)?;
        for at in 0..count {
            match replies.next()? {
                // One above it that this user may not make is there already, or the last fails.
                Ok(_) | Err(Code::NODE_EXISTS) => {}
                Err(_) if at + 1 < count => {}
                Err(code) => return Err(code.into()),
            }
        }
        Ok(())
    }

    /// The leader's clock, in milliseconds since 1970: a node is made and deleted at once.
    pub(super) fn leaders_clock(
        self: &Arc<Self>,
        name: &Name,
        deadline: &Deadline,
    ) -> Result<LeadersClock, Failure> {
        loop {
            let path = name.child(&nodes::clock());
            let create = Change::create_own(path.clone(), Vec::new()).into();
            let requests = [create, Op::delete(path)];
            match self.call_again(&requests, deadline)?.next()? {
                Ok(Reply::Created { stat, .. }) => {
                    return Ok(LeadersClock(stat.ctime, self.clock.now()));
                }
                // An earlier try has made it, whose answer was lost, and this one has deleted it.
                Err(Code::NODE_EXISTS) => {}
                Err(code) => return Err(code.into()),
                Ok(_) => return Err(Failure::misunderstood()),
            }
        }
    }

    /// Since when a lease counts that begins now. The leader is asked only if the session's beats are late, and a
    /// third of the ttl is gone by.
    pub(super) fn proven(
        &self,
        session: &Session,
        deadline: &Deadline,
    ) -> Result<BootInstant, Failure> {
        let is_young = |since: &BootInstant| self.clock.now().since(*since) <= self.ttl / 3;
        let lately = session.proven_lately();
        match lately.or_else(|| session.proven_since().filter(is_young)) {
            Some(since) => Ok(since),
            None => session.prove(deadline),
        }
    }

    /// Hears that a node of the owner is gone.
    pub(super) fn watcher(self: &Arc<Self>, owner: &Owner) -> Watcher {
        let (locks, owner) = (Arc::downgrade(self), owner.clone());
        Watcher::calling(move |told| {
            let Some(locks) = locks.upgrade() else { return };
            match told {
                WatchEvent::Changed => locks.owners.node_is_gone(&owner, true),
                WatchEvent::Deleted => locks.owners.node_is_gone(&owner, false),
                WatchEvent::ConnectionLost => locks.owners.watch_is_lost(&owner),
            }
        })
    }

    /// Watchers for that number of the owner's nodes, if nothing watches these yet.
    pub(super) fn watchers(self: &Arc<Self>, owner: &Owner, nodes: usize) -> Vec<Watcher> {
        match self.owners.is_unwatched(owner) {
            true => (0..nodes).map(|_| self.watcher(owner)).collect(),
            false => Vec::new(),
        }
    }

    /// What is in the node of an owner.
    pub(super) fn node_data(&self, request: Request<'_>, token: Option<u64>) -> Vec<u8> {
        let data = NodeData {
            owner: request.owner.clone(),
            ttl_millis: request.ttl.as_millis().try_into().unwrap_or(u64::MAX),
            token,
        };
        data.to_bytes()
    }

    /// What is told of a name, or of none.
    pub(super) fn told<T>(&self, key: Option<&Key>, done: Result<T, Failure>) -> PublicResult<T> {
        done.map_err(|failure| failure.into_error(key.map(Key::name), self.endpoint()))
    }

    /// The answer to a question that wasn't answered: it is unclear what the owner has, if it is among those that may
    /// have something.
    pub(super) fn failed(&self, request: Request<'_>, failure: Failure) -> Failed {
        Failed {
            error: failure.into_error(Some(request.key().name()), self.endpoint()),
            sent: self.owners.get(request.owner).is_some(),
        }
    }
}

/// Deletes what is left over, until there is an answer: what is gone already, or what this user may not delete, is
/// done with.
fn delete(locks: &Weak<Locks>) {
    let mut pauses = DEFERRED_PAUSES.waits();
    while let Some(locks) = locks.upgrade().filter(|locks| !locks.closed.is_set()) {
        let paths = locks.garbage.lock().clone();
        if paths.is_empty() {
            return;
        }
        let requests: Vec<_> = paths.iter().cloned().map(Op::delete).collect();
        let until = Deadline::after(TRY).or(&locks.closed);
        if locks.call(&requests, &until).is_ok() {
            let mut garbage = locks.garbage.lock();
            garbage.retain(|path| !paths.contains(path));
            continue;
        }
        let pause = pauses.next().unwrap_or(DEFERRED_PAUSES.cap);
        let until = Deadline::after(pause).or(&locks.closed);
        drop(locks);
        until.sleep(pause);
    }
}

/// What one try to delete may take.
const TRY: Duration = Duration::from_secs(2);

/// The pause before what the connection's loss has ended is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(10);

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("sessions", &self.sessions)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}
