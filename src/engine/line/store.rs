//! What is asked of a store, which is etcd or ZooKeeper, and the entries of a line.
//!
//! The line asks of etcd and ZooKeeper what `LineStore` has, what `leases` ask, and what `operators` do. An owner has
//! an *entry* in the line of each of its names, which all end with one lease or session at the servers. The order of
//! the entries says who holds: see `order`. A store makes whole rounds, so that each call here is one request where
//! the servers can do it in one. It knows which entries each owner of this process has, or may have after a request
//! without an answer; what is above knows nothing of keys and nodes. An owner that has done nothing yet, or was
//! retired or abandoned, is unknown to it: `enter` makes it known. Each call returns by its deadline, and is asked by
//! one thread at a time for one owner, but for `prove`, `own` and `abandon`.
//!
//! | what differs | hidden by |
//! |---|---|
//! | create revision; `czxid` and sequence number | [`Entry::place`] orders a line, the store gives tokens |
//! | a transaction compares others and reads, a multi does neither | `enter`, `look` and `admit` may let it in |
//! | a lease for each owner, which its waiter keeps alive; one session for all | `rest`, and [`Why::Quiet`] |
//! | a watch tells what came after a revision; or its answer shows how it was then | [`Watched::is_current`] |
//! | late requests exist on etcd; ZooKeeper's session fences them | `has_inflight`, `settle`, `retire` |
//! | etcd rewrites an entry; ZooKeeper makes another with the same number | `Write::Become`, `Write::Keep` |
//! | loss is polled on etcd, pushed by ZooKeeper | `prove`, and `tell_revocations` |
//! | kept entries end by leases on etcd, by nothing on ZooKeeper | a snapshot leaves out those whose time is over |

use std::sync::{Arc, Weak};
use std::{fmt, time::Duration};

use super::order::{self, Standing};
use crate::base::{Deadline, Mode, Owner, Result, Stored};
use crate::engine::{Capabilities, Failed, Grant, Request, Revocations};

/// The servers, and what this process has there: how an owner comes into line, and out of it.
pub(crate) trait LineStore: fmt::Debug + Send + Sync + 'static {
    type Watch: LineWatch;

    /// For errors: where the locks live, without user and password.
    fn endpoint(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// By when a call is given up that has this deadline, which may be none.
    fn gives_up_by(&self, deadline: &Deadline) -> Deadline;

    /// Puts the owner, which has no entry as far as it knows, in all of its lines at once, and shows them. Without
    /// waiting, and where that takes no round more, only if it holds then. Never puts an entry a second time, or of
    /// an owner that was broken.
    fn enter(&self, request: Request<'_>, when: When, deadline: &Deadline) -> Result<Step, Failed>;

    /// Shows the lines of an owner that is in line, or may be, as the servers have them now.
    fn look(&self, request: Request<'_>, why: Why, deadline: &Deadline) -> Result<Step, Failed>;

    /// Lets an owner in that has its entries, and nobody in its way in this snapshot. If that has changed, shows the
    /// lines again.
    fn admit(
        &self,
        request: Request<'_>,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Step, Failed>;

    /// For how long a waiter may do without asking: until its entries have to be kept alive, a kept entry ahead is
    /// over, or it is time to look whether a watch has missed something.
    fn rest(&self, request: Request<'_>) -> Duration;

    /// Begins to watch what is in the way. A failure is no end: the caller asks again after a pause.
    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<Self::Watch>>;

    /// Gives up all entries of an owner that doesn't know whether it has the lock, whichever those are, and what told
    /// that it was let in. What others have stays. Harmless where the owner has nothing.
    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Failed>;

    /// Whether a request without an answer may still give the owner something.
    fn has_inflight(&self, request: Request<'_>) -> bool;

    /// An answer has shown that the owner has nothing. Afterwards no late request gives it anything that lasts.
    fn retire(&self, request: Request<'_>, deadline: &Deadline);

    /// The owner's entries are gone, or end with their lease or session, which no other owner gets.
    fn discard(&self, request: Request<'_>, deadline: &Deadline);

    /// What late requests of the owner would give it is refused from now on, and what it has ends, if need be.
    fn settle(&self, request: Request<'_>, deadline: &Deadline);

    /// See [`Engine::tell_revocations`](crate::engine::Engine::tell_revocations).
    fn tell_revocations(&self, to: Weak<dyn Revocations>);

    /// The store of a child that was forked off, with connections of its own.
    fn after_fork(&self) -> Arc<Self>;

    /// The lease is lost, or will never be released: see [`Engine::abandon`](crate::engine::Engine::abandon).
    fn abandon(&self, _owner: &Owner) {}
}

/// A watch of what is in a waiter's way. Dropped, it ends.
pub(crate) trait LineWatch: Send {
    /// Whether it also watches this blocker of that snapshot, and hasn't fired. Then it does so from now on.
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
    /// If nobody is in its way, as far as one request can find that out. Others that would hold together with it may
    /// keep it out.
    IfFree,
    /// It would hold with those in a snapshot of that revision: if nobody has come since, where the store can compare
    /// that.
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

    /// The first other holder: `<host>/<pid>/<thread>`, if the snapshot shows that.
    pub(crate) fn holder(&self, request: Request<'_>) -> Option<String> {
        let mut holders = self.lines.iter().filter_map(|line| line.holders().first());
        let other = holders.find(|entry| self.is_whole && !entry.is_of(request.owner))?;
        Some(other.owner()?.holder().to_owned()).filter(|holder| !holder.is_empty())
    }
}

/// One that stands in the line of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// How the store tells it from the others of its line.
    pub(crate) id: String,
    /// Its order in the line: an entry that came later has more. Places of other stores mean something else.
    pub(crate) place: u64,
    pub(crate) mode: Mode,
    pub(crate) who: Who,
    /// The first token of its lease, if that isn't the token of its place.
    pub(crate) token: Option<u64>,
    /// When it came, in milliseconds since 1970, by its host's clock or the servers'. Operators are shown it.
    pub(crate) since: u64,
    /// What it ends with at the servers: a lease, or a session. `None`: nothing, or it isn't known.
    pub(crate) session: Option<i64>,
    /// The version in which it was seen, which each change changes. 0 where the store compares none.
    pub(crate) version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Where a look shows no more, it is the owner's uuid alone.
    Owner(Owner),
    /// Nobody: its owner has released it, and it stays taken for a while.
    Kept,
    /// A program that isn't crosslock.
    Stranger,
}

impl Entry {
    pub(crate) fn owner(&self) -> Option<&Owner> {
        match &self.who {
            Who::Owner(owner) => Some(owner),
            Who::Kept | Who::Stranger => None,
        }
    }

    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        self.owner()
            .is_some_and(|one| uuid_of(one) == uuid_of(owner))
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.who == Who::Kept
    }
}

/// By which the entries of an owner are told from those of others: what is random of it.
pub(crate) fn uuid_of(owner: &Owner) -> &str {
    const UUID: usize = 36;
    let text = owner.as_str();
    text.get(..UUID).unwrap_or(text)
}

/// Those that stand in line for a name, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) Vec<Entry>);

impl Line {
    pub(crate) fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.place);
        Line(entries)
    }

    pub(crate) fn modes(&self) -> Vec<Mode> {
        self.0.iter().map(|entry| entry.mode).collect()
    }

    /// The entry of an owner, and where it is.
    pub(crate) fn find(&self, owner: &Owner) -> Option<(usize, &Entry)> {
        let mut entries = self.0.iter().enumerate();
        entries.find(|(_, entry)| entry.is_of(owner))
    }

    /// How the one at that place stands.
    pub(crate) fn standing(&self, at: usize) -> Standing {
        let modes = self.modes();
        order::standing(&modes[..at], modes[at])
    }

    /// Whether an owner that came now would hold.
    pub(crate) fn lets_in(&self, mode: Mode) -> bool {
        order::standing(&self.modes(), mode) == Standing::Holds
    }

    /// The nearest of those ahead of the one at that place, which waits, that leave too few permits for it, however
    /// many of the others leave.
    pub(crate) fn in_way_of(&self, at: usize) -> &[Entry] {
        let modes = self.modes();
        let left = match modes[at] {
            Mode::Permits { count, of } => u64::from(of).saturating_sub(count.into()),
            Mode::Exclusive | Mode::Shared | Mode::Task => 0,
        };
        let first = (0..=at)
            .rev()
            .find(|first| left < order::used(&modes[*first..at]));
        &self.0[first.unwrap_or(0)..at]
    }

    /// Which of them hold the name. Whoever holds has nobody ahead that doesn't.
    pub(crate) fn holders(&self) -> &[Entry] {
        let modes = self.modes();
        let holds = order::holders(&modes).take_while(|holds| *holds);
        &self.0[..holds.count()]
    }

    /// How many of so many permits are free. Where a writer or readers have the name, none is.
    pub(crate) fn free_permits(&self, of: u32) -> u32 {
        let modes: Vec<_> = self.holders().iter().map(|entry| entry.mode).collect();
        let is_permits = |mode: &Mode| matches!(mode, Mode::Permits { .. });
        if !modes.iter().all(is_permits) {
            return 0;
        }
        let free = u64::from(of).saturating_sub(order::used(&modes));
        free.try_into().unwrap_or(of)
    }
}
