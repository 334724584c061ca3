//! What nodes of a cluster hear of each other: who has which slot, who is missed, and who takes whose place.
//!
//! What is not as in reality: a vote takes no message, but only those vote that are reached.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::group::Group;
use super::slots::{SLOTS, Slots};

#[derive(Debug)]
pub(super) struct Gossip {
    /// When each heard of each other last.
    heard: Vec<Vec<Duration>>,
    /// Which version of the other's claims it has heard.
    seen: Vec<Vec<u64>>,
    /// When a replica asks for votes.
    elects_at: Vec<Option<Duration>>,
    /// When a master that isn't up may be so again.
    rejoins_at: Vec<Duration>,
    /// Who has taken whose place.
    heirs: BTreeMap<Host, Host>,
}

/// How long a node isn't heard of that is missed.
const TIMEOUT: Duration = Duration::from_secs(1);
/// After how long a replica asks for votes, in milliseconds.
const ELECTION: std::ops::Range<u64> = 500..1_000;
/// How long a master waits that was in a minority, and one that was started.
const REJOINS: Duration = Duration::from_millis(500);
const STARTS: Duration = Duration::from_secs(2);

impl Gossip {
    pub(super) fn new(nodes: usize) -> Self {
        Gossip {
            heard: vec![vec![Duration::ZERO; nodes]; nodes],
            seen: vec![vec![1; nodes]; nodes],
            elects_at: vec![None; nodes],
            rejoins_at: vec![Duration::ZERO; nodes],
            heirs: BTreeMap::new(),
        }
    }

    /// All hear of each other until now.
    pub(super) fn hear_all(&mut self, now: Duration) {
        self.heard.iter_mut().for_each(|all| all.fill(now));
    }

    /// A node that stood still, or wasn't there, has missed nobody yet.
    pub(super) fn begin_anew(
        &mut self,
        host: Host,
        group: &mut Group,
        now: Duration,
        is_start: bool,
    ) {
        self.heard[host].fill(now);
        self.elects_at[host] = None;
        self.seen[host].fill(0);
        if is_start {
            self.rejoins_at[host] = now + STARTS;
            let slots = slots_of(group, host);
            slots.failed.clear();
            slots.is_up = false;
        }
    }

    /// A node hears anew what all say of themselves: it didn't take that over for a slot that was on its way.
    pub(super) fn hear_anew(&mut self, host: Host) {
        self.seen[host].fill(0);
    }

    /// Who has what that host had.
    pub(super) fn heir(&self, host: Host) -> Host {
        self.heirs.get(&host).copied().unwrap_or(host)
    }

    /// Says whether anything is amiss still.
    pub(super) fn look(&mut self, group: &mut Group, io: &mut Io<'_>) -> bool {
        let all = 0..group.nodes.len();
        for host in all.clone() {
            for other in all.clone() {
                if group.hears(host, other) {
                    self.heard[host][other] = io.now;
                    if host != other && io.random.bool() {
                        self.learn(group, host, other);
                    }
                }
            }
        }
        for host in all
            .clone()
            .filter(|host| group.is_at_work(*host))
            .collect::<Vec<_>>()
        {
            self.miss(group, host, io.now);
            self.judge(group, host, io.now);
            self.elect(group, host, io);
        }
        let has_all = |host: Host| {
            let slots = group.nodes[host].state.slots.as_ref();
            slots.is_some_and(|slots| slots.is_up && slots.failed.is_empty())
                && all.clone().all(|other| self.is_told(group, host, other))
        };
        !(group.is_sound() && all.clone().all(has_all))
    }

    fn is_told(&self, group: &Group, host: Host, other: Host) -> bool {
        let version = group.nodes[other]
            .state
            .slots
            .as_ref()
            .map_or(0, |slots| slots.version);
        host == other || self.seen[host][other] == version
    }

    /// A node hears what another says of itself.
    fn learn(&mut self, group: &mut Group, host: Host, other: Host) {
        let its = slots_of(group, other).clone_of_itself();
        if self.seen[host][other] == its.version {
            return;
        }
        self.seen[host][other] = its.version;
        let slots = slots_of(group, host);
        slots.current = slots.current.max(its.current);
        slots.follows[other] = its.follows;
        slots.epochs[other] = its.epoch;
        if slots.leave_unclaimed(other, &its.slots) {
            // Whoever claims them may have said so before.
            self.hear_anew(host);
        }
        let slots = slots_of(group, host);
        if its.follows.is_some() {
            return;
        }
        if slots.is_master() && slots.epochs[host] == its.epoch && host < other {
            // Two claims are never as high for long.
            slots.claim_anew();
        }
        let before = slots.follows[host].unwrap_or(host);
        let lost = take_claims(group, host, other, &its);
        let slots = slots_of(group, host);
        if lost.is_empty() || before == other {
            return;
        }
        if slots.count_of(before) > 0 {
            lost.into_iter()
                .for_each(|slot| group.nodes[host].state.keys.drop_slot(slot));
            return;
        }
        slots.follows[host] = Some(other);
        slots.migrating.clear();
        slots.importing.clear();
        slots.version += 1;
        self.elects_at[host] = None;
        group.follow(host, other);
    }

    fn misses(&self, host: Host, other: Host, now: Duration) -> bool {
        now.saturating_sub(self.heard[host][other]) > TIMEOUT
    }

    /// Notes whom most masters miss, and who is there again.
    fn miss(&mut self, group: &mut Group, host: Host, now: Duration) {
        let masters = slots_of(group, host).masters();
        for other in (0..group.nodes.len()).filter(|other| *other != host) {
            let misses = self.misses(host, other, now);
            let agree = masters
                .iter()
                .filter(|master| group.hears(host, **master) && self.misses(**master, other, now));
            let is_failed = misses && agree.count() > masters.len() / 2;
            let failed = &mut slots_of(group, host).failed;
            if is_failed {
                failed.insert(other);
            } else if !misses {
                failed.remove(&other);
            }
        }
    }

    /// Whether the cluster is up, as a node sees it.
    fn judge(&mut self, group: &mut Group, host: Host, now: Duration) {
        let slots = slots_of(group, host);
        let masters = slots.masters();
        let reached = masters
            .iter()
            .filter(|master| !self.misses(host, **master, now))
            .count();
        let is_covered = slots.owners.iter().all(Option::is_some);
        let is_up = is_covered && slots.failed.is_disjoint(&masters) && reached > masters.len() / 2;
        if !is_up {
            slots.is_up = false;
            self.rejoins_at[host] = self.rejoins_at[host].max(now + REJOINS);
        } else if now >= self.rejoins_at[host] || !slots.is_master() {
            slots.is_up = true;
        }
    }

    /// The replica of a master that failed takes its place if most masters vote for it.
    fn elect(&mut self, group: &mut Group, host: Host, io: &mut Io<'_>) {
        let slots = slots_of(group, host);
        let master = slots.follows[host].filter(|master| slots.failed.contains(master));
        let Some(master) = master.filter(|master| slots.count_of(*master) > 0) else {
            self.elects_at[host] = None;
            return;
        };
        let wait = Duration::from_millis(io.random.u64(ELECTION));
        let due = *self.elects_at[host].get_or_insert(io.now + wait);
        if due > io.now {
            return;
        }
        let masters = slots.masters();
        let mut votes = masters.clone();
        votes.retain(|voter| {
            group.hears(host, *voter) && slots_of(group, *voter).failed.contains(&master)
        });
        self.elects_at[host] = Some(io.now + 2 * TIMEOUT);
        if votes.len() > masters.len() / 2 {
            self.take_over(group, host, io);
            let epoch = slots_of(group, host).current;
            votes
                .into_iter()
                .for_each(|voter| slots_of(group, voter).current = epoch);
        }
    }

    /// A replica takes its master's place.
    pub(super) fn take_over(&mut self, group: &mut Group, host: Host, io: &mut Io<'_>) {
        let slots = slots_of(group, host);
        let Some(master) = slots.follows[host].take() else {
            return;
        };
        slots.claim_anew();
        let epoch = slots.current;
        for slot in (0..SLOTS)
            .filter(|slot| slots.owner(*slot) == Some(master))
            .collect::<Vec<_>>()
        {
            group.nodes[host].state.set_owner(slot, host);
        }
        group.promote(host);
        self.elects_at[host] = None;
        for heir in self.heirs.values_mut().filter(|heir| **heir == master) {
            *heir = host;
        }
        self.heirs.insert(master, host);
        self.heirs.remove(&host);
        io.log(format!(
            "node {host} takes the place of {master}, epoch {epoch}"
        ));
    }
}

/// A node believes claims that are newer than those that it knows. Gives the slots that it, or its master, has lost.
fn take_claims(group: &mut Group, host: Host, other: Host, its: &Own) -> Vec<u16> {
    let slots = slots_of(group, host);
    let before = slots.follows[host].unwrap_or(host);
    let mut taken = its.slots.clone();
    taken.retain(|slot| {
        let owner = slots.owner(*slot);
        let is_newer = owner.is_none_or(|owner| slots.epochs[owner] < its.epoch);
        let is_newer = is_newer || slots.unclaimed.contains(slot);
        owner != Some(other) && is_newer && !slots.importing.contains_key(slot)
    });
    let lost = taken
        .iter()
        .filter(|slot| slots.owner(**slot) == Some(before));
    let lost: Vec<u16> = lost.copied().collect();
    for slot in taken {
        slots_of(group, host).migrating.remove(&slot);
        group.nodes[host].state.set_owner(slot, other);
    }
    lost
}

/// What a node says of itself.
struct Own {
    version: u64,
    current: u64,
    follows: Option<Host>,
    epoch: u64,
    slots: Vec<u16>,
}

impl Slots {
    /// Its claim becomes the highest that it knows.
    pub(super) fn claim_anew(&mut self) {
        self.current += 1;
        self.epochs[self.me] = self.current;
        self.version += 1;
    }

    /// Notes which slots their owner doesn't claim any more. Says whether there are any that it didn't know of.
    fn leave_unclaimed(&mut self, owner: Host, claimed: &[u16]) -> bool {
        let left = (0..SLOTS).filter(|slot| self.owner(*slot) == Some(owner));
        let mut left: Vec<_> = left.collect();
        left.retain(|slot| claimed.binary_search(slot).is_err());
        let known = self.unclaimed.len();
        self.unclaimed.extend(left);
        self.unclaimed.len() > known
    }

    fn clone_of_itself(&self) -> Own {
        let own = (0..SLOTS).filter(|slot| self.owner(*slot) == Some(self.me));
        Own {
            version: self.version,
            current: self.current,
            follows: self.follows[self.me],
            epoch: self.epochs[self.me],
            slots: own.collect(),
        }
    }

    fn count_of(&self, owner: Host) -> usize {
        self.owners
            .iter()
            .filter(|one| one.map(Host::from) == Some(owner))
            .count()
    }
}

pub(super) fn slots_of(group: &mut Group, host: Host) -> &mut Slots {
    let slots = group.nodes[host].state.slots.as_mut();
    slots.expect("a node of a cluster")
}
