//! What the line asks of a store, which is etcd or ZooKeeper: this, what `leases` ask, and what `operators` do.
//!
//! An owner has an *entry* in the line of each of its names, which all end with one lease or session at the servers. The
//! order of the entries says who holds: see `order`. A store makes whole rounds, so that each call here is one request where the
//! servers can do it in one. It knows which entries each owner of this process has, or may have after a request without an
//! answer; what is above knows nothing of keys and nodes. An owner that has done nothing yet, or was retired or abandoned, is
//! unknown to it: `enter` makes it known. Each call returns by its deadline, and is asked by one thread at a time for one owner, but
//! for `prove`, `own` and `forget`.
//!
//! | what differs | hidden by |
//! |---|---|
//! | create revision; `czxid` and sequence number | [`Entry::place`] orders a line, the store gives tokens |
//! | a transaction compares others and reads, a multi does neither | [`enter`](LineStore::enter), [`look`](LineStore::look) and [`admit`](LineStore::admit) each may let the owner in |
//! | a lease for each owner, which its waiter keeps alive; one session for all | [`rest`](LineStore::rest), and [`Why::Quiet`] |
//! | a watch tells of what came after a revision; or its answer shows how it was then | [`Watched::is_current`] |
//! | late requests exist on etcd; ZooKeeper's session and its order fence them | [`has_inflight`](LineStore::has_inflight), [`settle`](LineStore::settle), [`retire`](LineStore::retire) |
//! | etcd rewrites an entry; ZooKeeper makes another with the same number | `Write::Become` and `Write::Keep` of `leases` |
//! | loss is polled on etcd, pushed by ZooKeeper | `LineLeases::prove`, and [`tell_revocations`](LineStore::tell_revocations) |
//! | kept entries end by leases on etcd, by nothing on ZooKeeper | a snapshot shows none whose time is over: the store deletes those |

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::entries::Line;
use super::order::Standing;
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::{Capabilities, Grant, Request, Revocations, Unanswered};

/// The servers, and what this process has there: how an owner comes into line, and out of it.
pub(crate) trait LineStore: fmt::Debug + Send + Sync + 'static {
    type Watch: LineWatch;

    /// For errors: where the locks live, without user and password.
    fn place(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// By when a call is given up that has this deadline, which may be none.
    fn gives_up_by(&self, deadline: &Deadline) -> Deadline;

    /// Puts the owner, which has no entry as far as it knows, in all of its lines at once, and shows them. Without waiting, and
    /// where that takes no round more, only if it holds then. Never puts an entry a second time, or of an owner that was broken.
    fn enter(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered>;

    /// Shows the lines of an owner that is in line, or may be, as the servers have them now.
    fn look(&self, request: Request<'_>, why: Why, deadline: &Deadline)
    -> Result<Step, Unanswered>;

    /// Lets an owner in that has its entries, and nobody in its way in this snapshot. If that has changed, shows the lines again.
    fn admit(
        &self,
        request: Request<'_>,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered>;

    /// For how long a waiter may do without asking: until its entries have to be kept alive, a kept entry ahead is over, or it
    /// is time to look whether a watch has missed something.
    fn rest(&self, request: Request<'_>) -> Duration;

    /// Begins to watch what is in the way. A failure is no end: the caller asks again after a pause.
    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<Self::Watch>>;

    /// Gives up all entries of an owner that doesn't know whether it has the lock, whichever those are, and what told that it was let
    /// in. What others have stays. Harmless where the owner has nothing.
    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Unanswered>;

    /// Whether a request without an answer may still give the owner something.
    fn has_inflight(&self, request: Request<'_>) -> bool;

    /// An answer has shown that the owner has nothing. Afterwards no late request gives it anything that lasts.
    fn retire(&self, request: Request<'_>, deadline: &Deadline);

    /// The owner's entries are gone, or end with their lease or session, which no other owner gets.
    fn abandon(&self, request: Request<'_>, deadline: &Deadline);

    /// What late requests of the owner would give it is refused from now on, and what it has ends, if need be.
    fn settle(&self, request: Request<'_>, deadline: &Deadline);

    /// See [`Engine::tell_revocations`](crate::engine::Engine::tell_revocations).
    fn tell_revocations(&self, to: Weak<dyn Revocations>);

    /// The store of a child that was forked off, with connections of its own.
    fn after_fork(&self) -> Arc<Self>;

    /// The lease is lost, or will never be released: see [`Engine::forget`](crate::engine::Engine::forget).
    fn forget(&self, _owner: &Owner) {}
}

/// A watch of what is in a waiter's way. Dropped, it ends.
pub(crate) trait LineWatch: Send {
    /// Whether it tells of this one in that snapshot, too, and hasn't told all that it will. Then it does from now on.
    fn goes_on_for(&mut self, blocker: &Blocker, seen: &Snapshot) -> bool;

    /// Blocks until something of it may have changed, or until then: then false.
    fn wait(&mut self, until: &Deadline) -> Result<bool>;
}

/// A watch that has begun.
pub(crate) struct Watched<W> {
    pub(crate) watch: W,
    /// Whether nothing can have happened between the snapshot and the watch.
    pub(crate) is_current: bool,
    /// Who stands first: `<host>/<pid>/<thread>`, if that has come with it. For the log.
    pub(crate) holder: Option<String>,
}

/// When an owner goes into its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Whoever is there.
    Always,
    /// If nobody is in its way, as far as one request can find that out. Others that would hold together with it may keep it out.
    IfFree,
    /// It would hold with those in a snapshot of that revision: if nobody has come since, where the store can compare that.
    AsSeen(u64),
}

/// Why an owner in line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Nothing has changed as far as it knows: it only has to keep its entries alive.
    Quiet,
    /// What was in its way is gone, or it doesn't know why it was called: it may be at the front.
    News,
    /// Something may have changed before it watched.
    Missed,
    /// It doesn't know whether it is in line.
    Unclear,
}

/// What came of a step.
#[derive(Debug)]
pub(crate) enum Step {
    /// The owner has the lock.
    In(Grant),
    Seen(Snapshot),
    /// It stands as it did, and was kept alive.
    Same,
    /// The owner has nothing any more, and is known no more.
    Lost,
}

/// How the names of a request stood.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Of each name those that decide: the owner, and the nearest ones ahead of it at least.
    pub(crate) lines: Vec<Line>,
    /// Whether `lines` show all that are ahead of the owner.
    pub(crate) is_whole: bool,
    pub(crate) own: Presence,
    /// Whether the owner was broken in one of them.
    pub(crate) is_broken: bool,
    /// Whether an owner that was let in alone is gone without a release, for one that is let in by this.
    pub(crate) is_abandoned: bool,
    /// If it was asked for.
    pub(crate) value: Option<Stored>,
    /// Larger in later snapshots; 0 where the store doesn't compare it.
    pub(crate) revision: u64,
}

/// What an owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Nothing,
    /// Entries that don't count: in some of its lines only, or not under its own lease or session.
    Remains,
    /// An entry in each line.
    Entries,
}

/// What is in the way of an owner in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocker {
    /// In which of its names, in their order.
    pub(crate) name: usize,
    /// Where the owner stands in that line of the snapshot.
    pub(crate) at: usize,
    /// Of these one has to go, or to change, before it is its turn, by [`Entry::id`](super::Entry::id).
    pub(crate) ahead: Vec<String>,
    /// Its own entry, which somebody may delete.
    pub(crate) own: String,
    /// Whether just one is in the way. Otherwise any change may matter.
    pub(crate) is_one: bool,
    /// Whether those ahead may also make way without leaving: a writer that goes on as a reader does so for readers.
    pub(crate) heeds_changes: bool,
    /// Of the snapshot.
    pub(crate) revision: u64,
}

impl Snapshot {
    /// What stands in the way of an owner that has its entries, in the first of the names that it can't hold yet.
    pub(crate) fn blocker(&self, request: Request<'_>) -> Option<Blocker> {
        let mut lines = self.lines.iter().enumerate();
        lines.find_map(|(name, line)| {
            let (at, own) = line.find(request.owner)?;
            let ahead = match line.standing(at) {
                Standing::Holds => return None,
                Standing::Behind(other) => &line.0[other..=other],
                Standing::BehindSome => line.in_way_of(at),
            };
            Some(Blocker {
                name,
                at,
                ahead: ahead.iter().map(|one| one.id.clone()).collect(),
                own: own.id.clone(),
                is_one: matches!(line.standing(at), Standing::Behind(_)),
                heeds_changes: own.mode == Mode::Shared,
                revision: self.revision,
            })
        })
    }

    /// Whether the owner would hold the names together with those in line, if it came now.
    pub(crate) fn lets_in(&self, request: Request<'_>) -> bool {
        let mode = request.claim.mode;
        self.lines.iter().all(|line| line.lets_in(mode))
    }

    /// Who holds: `<host>/<pid>/<thread>`, if the snapshot shows that.
    pub(crate) fn holder(&self, request: Request<'_>) -> Option<String> {
        let mut holders = self.lines.iter().filter_map(|line| line.holders().first());
        let other = holders.find(|entry| self.is_whole && !entry.is_of(request.owner))?;
        Some(other.owner()?.holder().to_owned()).filter(|holder| !holder.is_empty())
    }
}

/// The pause before a request without an answer is sent again.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until there is an answer, for what is harmless to repeat. Says also whether a question without an answer may have
/// been carried out before.
pub(crate) fn until_answered<T>(
    deadline: &Deadline,
    mut ask: impl FnMut() -> Result<T, Unanswered>,
) -> Result<(T, bool)> {
    let mut was_sent = false;
    loop {
        let Unanswered { error, sent } = match ask() {
            Ok(answer) => return Ok((answer, was_sent)),
            Err(unanswered) => unanswered,
        };
        was_sent |= sent;
        if error.may_pass() {
            deadline.sleep(PAUSE);
        }
        if !error.may_pass() || deadline.is_over() {
            return Err(error);
        }
    }
}
