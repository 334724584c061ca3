//! The owners of this process that have nodes, or may have some.
//!
//! | an owner | is here | leaves by |
//! |---|---|---|
//! | asks, without an answer yet | without nodes; `has_inflight` | the answer; a release, which looks for nodes |
//! | waits | with its nodes | a release; the end of its session; `abandon`, which deletes its nodes |
//! | holds | with its nodes, and the end of its lease | a release; a break; the end of the session, or of its lease |
//!
//! When a lease ends, its nodes are deleted.
//!
//! The session keeps all nodes of the process, also that of a lease that nobody renews: so leases end here.

use std::collections::VecDeque;
use std::{fmt, sync::Weak};

use super::nodes::LeadersClock;
use super::{client::Watcher, teller::Teller};
use crate::base::sys::collections::HashMap;
use crate::base::{BootInstant, LostReason, Owner, sys::sync::Mutex};
use crate::engine::{Revocations, Telling};

/// The owners of this process that have nodes, or may have some.
#[derive(Default)]
pub(super) struct Owners {
    all: Mutex<All>,
    /// The lockers whose guards hear that they lost their locks. Called without a lock.
    receivers: Mutex<Vec<Weak<dyn Revocations>>>,
    /// The session's thread, which hears of losses, calls no code of the user.
    teller: Teller,
}

#[derive(Default)]
struct All {
    /// By the whole text of each.
    owners: HashMap<Box<str>, Nodes>,
    /// Owners whose locks were broken, of late.
    broken: VecDeque<Box<str>>,
}

/// Of more than these it is forgotten why they lost their locks.
const MOST_BROKEN: usize = 256;

/// What an owner has.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    /// The id of the session that they end with.
    pub(super) session: i64,
    /// The path of its node for each of its names.
    pub(super) paths: Vec<String>,
    /// Whether there may be others, because a question has no answer.
    pub(super) has_inflight: bool,
    /// Of one that was let in: when its lease ends.
    pub(super) until: Option<BootInstant>,
    /// Of one that may have a lease without knowing: when that ends.
    at_most_until: Option<BootInstant>,
    /// They hear that a node is gone.
    watchers: Vec<Watcher>,
    /// Whether it is deleting nodes of its own: a renewal that is on its way isn't to watch them anew, or to tell of
    /// that.
    is_deleting: bool,
    /// Which transaction has made the last of its nodes, if that is known yet.
    pub(super) created: Option<i64>,
    /// Whether `held` beside its nodes is its own.
    pub(super) has_marker: bool,
    /// Whether it came when nobody had the lock, and hasn't made `held`: so it makes sure of that before it goes on.
    pub(super) found_free: bool,
    /// Whether the owner before never released the lock.
    pub(super) is_abandoned: bool,
    /// The leader's clock, if an answer said it.
    pub(super) leaders_clock: Option<LeadersClock>,
    /// When the next kept place in its way is over.
    pub(super) kept_until: Option<BootInstant>,
}

impl Owners {
    /// A question is on the wire that makes nodes.
    pub(super) fn asks(&self, owner: &Owner, session: i64) {
        let mut all = self.all.lock();
        let nodes = all.owners.entry(owner.as_str().into());
        let nodes = nodes.or_default();
        (nodes.session, nodes.has_inflight) = (session, true);
    }

    /// It has just these.
    pub(super) fn has(&self, owner: &Owner, paths: Vec<String>) {
        self.change(owner, |nodes| {
            (nodes.paths, nodes.has_inflight) = (paths, false);
            nodes.is_deleting = false;
        });
    }

    /// A question is on the wire that makes these, perhaps in the place of others. Without an answer it has a lease
    /// at most until then: nobody may ask again, and the session goes on.
    pub(super) fn may_have(&self, owner: &Owner, paths: &[String], until: BootInstant) {
        self.change(owner, |nodes| {
            nodes.paths.retain(|path| !paths.contains(path));
            nodes.paths.extend_from_slice(paths);
            nodes.at_most_until = Some(until);
        });
    }

    /// It was let in. False if it has lost that meanwhile.
    pub(super) fn let_in(&self, owner: &Owner, until: BootInstant, watchers: Vec<Watcher>) -> bool {
        let let_in = |nodes: &mut Nodes| {
            nodes.until = Some(until);
            if !watchers.is_empty() {
                nodes.watchers = watchers;
            }
        };
        self.change(owner, let_in).is_some()
    }

    /// That session was proven, so its lease lasts until then. False if it has none, or has nodes that end with
    /// another session: servers may keep them for a while when that one's time is over, and the next one proves
    /// nothing of them.
    pub(super) fn renewed(&self, owner: &Owner, session: i64, until: BootInstant) -> bool {
        let renewed = self.change(owner, |nodes| {
            let is_same = nodes.session == session;
            let end = nodes.until.as_mut().filter(|_| is_same)?;
            *end = until.max(*end);
            Some(())
        });
        renewed.flatten().is_some()
    }

    /// Nobody here holds its lock any more, and another process is to adopt it: its nodes stay until then. What is
    /// left of the lease may be much less than a ttl, because the proof of a renewal is up to two and a half ticks old.
    pub(super) fn given_away(&self, owner: &Owner, until: BootInstant) {
        self.change(owner, |nodes| nodes.until = Some(until));
    }

    /// Whether its nodes are to be watched anew.
    pub(super) fn is_unwatched(&self, owner: &Owner) -> bool {
        let is_unwatched = |nodes: &mut Nodes| nodes.watchers.is_empty() && !nodes.is_deleting;
        self.change(owner, is_unwatched) == Some(true)
    }

    /// Whether servers watch all of its nodes, in that session, and have told nothing.
    pub(super) fn is_watched(&self, owner: &Owner, session: i64) -> bool {
        let is_watched = self.change(owner, |nodes| {
            let stand = nodes.watchers.iter().filter(|one| one.stands()).count();
            let is_known = nodes.session == session && !nodes.has_inflight && !nodes.is_deleting;
            is_known && stand > 0 && stand == nodes.paths.len()
        });
        is_watched == Some(true)
    }

    /// They hear that its nodes are gone.
    pub(super) fn watched(&self, owner: &Owner, watchers: Vec<Watcher>) {
        self.change(owner, |nodes| {
            if !watchers.is_empty() && !nodes.is_deleting {
                nodes.watchers = watchers;
            }
        });
    }

    /// Changes what is known of an owner, or looks at it, unless it has nothing any more.
    pub(super) fn change<T>(
        &self,
        owner: &Owner,
        change: impl FnOnce(&mut Nodes) -> T,
    ) -> Option<T> {
        let mut all = self.all.lock();
        all.owners.get_mut(owner.as_str()).map(change)
    }

    pub(super) fn get(&self, owner: &Owner) -> Option<Nodes> {
        self.all.lock().owners.get(owner.as_str()).cloned()
    }

    /// It has nothing any more, or is about to lose it.
    pub(super) fn remove(&self, owner: &Owner) -> Option<Nodes> {
        self.all.lock().owners.remove(owner.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.lock().owners.is_empty()
    }

    /// Whether somebody broke its lock, as far as it is known here.
    pub(super) fn is_broken(&self, owner: &Owner) -> bool {
        let all = self.all.lock();
        all.broken.iter().any(|broken| **broken == *owner.as_str())
    }

    /// Somebody broke its lock.
    pub(super) fn set_broken(&self, owner: &Owner) {
        let mut all = self.all.lock();
        if all.broken.len() == MOST_BROKEN {
            all.broken.pop_front();
        }
        all.broken.push_back(owner.as_str().into());
    }

    /// Takes out the nodes of leases that nobody has renewed in time.
    pub(super) fn take_overdue(&self, now: BootInstant) -> Vec<Nodes> {
        let is_over = |nodes: &Nodes| {
            let until = nodes.until.or(nodes.at_most_until);
            until.is_some_and(|until| until <= now)
        };
        let mut all = self.all.lock();
        if !all.owners.values().any(is_over) {
            return Vec::new();
        }
        let over = all.owners.extract_if(|_, nodes| is_over(nodes));
        over.map(|(_, nodes)| nodes).collect()
    }

    pub(super) fn tell(&self, to: Weak<dyn Revocations>) {
        let mut receivers = self.receivers.lock();
        receivers.retain(|one| one.strong_count() > 0);
        receivers.push(to);
    }

    /// A node of the owner was deleted, or was told that it will be.
    pub(super) fn node_is_gone(&self, owner: &Owner, is_broken: bool) {
        // One that isn't here any more has released it.
        let is_told = self.change(owner, |nodes| {
            nodes.until.is_some() && (is_broken || !nodes.is_deleting)
        });
        if is_told != Some(true) {
            return;
        }
        let reason = match is_broken {
            true => LostReason::Broken,
            false => LostReason::NotOwner,
        };
        if is_broken {
            self.set_broken(owner);
        }
        self.revoked(&[owner.as_str()], reason);
    }

    /// It deletes nodes of its own, which nobody is to be told of, until it is known what it has.
    pub(super) fn unwatch(&self, owner: &Owner) {
        self.change(owner, |nodes| {
            nodes.watchers.clear();
            nodes.is_deleting = true;
        });
    }

    /// The connection was lost, and with it what watched the owner's nodes.
    pub(super) fn watch_is_lost(&self, owner: &Owner) {
        self.change(owner, |nodes| nodes.watchers.clear());
    }

    /// All that the session had is gone.
    pub(super) fn session_ended(&self, session: i64) {
        let ended = {
            let mut all = self.all.lock();
            let ended = all.owners.extract_if(|_, nodes| nodes.session == session);
            ended.collect::<Vec<_>>()
        };
        let held = ended.iter().filter(|(_, nodes)| nodes.until.is_some());
        let held: Vec<_> = held.map(|(owner, _)| &**owner).collect();
        self.revoked(&held, LostReason::Expired);
    }

    fn revoked(&self, owners: &[&str], reason: LostReason) {
        let receivers = self.receivers.lock();
        let all: Vec<_> = receivers.iter().filter_map(Weak::upgrade).collect();
        // A receiver may be the last that has its locker, whose end is told here.
        drop(receivers);
        // All are lost before the first is told.
        let lost = owners.iter().flat_map(|owner| {
            let each = all.iter();
            each.filter_map(|one| one.revoked_untold(owner, u64::MAX, reason))
        });
        let calls: Vec<Telling> = lost.collect();
        self.teller.tell(calls);
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.all.lock().owners.len();
        f.debug_struct("Owners")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn renewal_that_proves_another_session_extends_nothing() {
        let (owners, owner) = (Owners::default(), Owner::new());
        owners.asks(&owner, 1);
        owners.has(&owner, vec!["/a".to_owned()]);
        owners.let_in(&owner, BootInstant::START, Vec::new());
        assert!(!owners.renewed(&owner, 2, BootInstant::MAX));
        assert!(owners.renewed(&owner, 1, BootInstant::START));
        assert_eq!(owners.take_overdue(BootInstant::START).len(), 1);
    }

    #[test]
    fn lease_that_was_given_away_stays_for_a_ttl() {
        let (owners, owner) = (Owners::default(), Owner::new());
        let until = BootInstant::START.plus(std::time::Duration::from_secs(1));
        owners.asks(&owner, 1);
        owners.has(&owner, vec!["/a".to_owned()]);
        owners.let_in(&owner, BootInstant::START, Vec::new());
        owners.given_away(&owner, until);
        assert!(owners.take_overdue(BootInstant::START).is_empty());
        assert_eq!(owners.take_overdue(until).len(), 1);
    }
}
