//! What nodes of a cluster hear of each other: who has which slot, who is missed, and who takes whose place.
//!
//! What is not as in reality: who changes the map knows the newest one then, so two changes are never at odds; and a
//! vote takes no message, but only those vote that are reached.

use std::sync::Arc;
use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::group::{Group, TIMEOUT};
use super::moves::Move;
use super::slots::{Map, Slots, slot_of};

pub(super) struct Gossip {
    /// What all nodes know in the end.
    pub(super) newest: Arc<Map>,
    /// When a replica asks for votes.
    elects_at: Vec<Option<Duration>>,
    /// When a master that isn't up may be so again.
    rejoins_at: Vec<Duration>,
    /// The slot that is on its way, and how many are to move behind it.
    moving: Option<Move>,
    waiting: u8,
    /// Two masters of which each takes a slot for the other's, and when they are told whose it is.
    at_odds: Option<([Host; 2], Duration)>,
}

/// After how long a replica asks for votes, in milliseconds.
const ELECTION: std::ops::Range<u64> = 500..1_000;
/// How long a master waits that was in a minority, and one that was started.
const REJOINS: Duration = Duration::from_millis(500);
const STARTS: Duration = Duration::from_secs(2);
/// How long two nodes are at odds over a slot.
const ODDS: Duration = Duration::from_secs(8);

impl Gossip {
    pub(super) fn new(newest: Arc<Map>) -> Self {
        let nodes = newest.follows.len();
        Gossip {
            newest,
            elects_at: vec![None; nodes],
            rejoins_at: vec![Duration::ZERO; nodes],
            moving: None,
            waiting: 0,
            at_odds: None,
        }
    }

    /// A node that stood still, or wasn't there.
    pub(super) fn begin_anew(
        &mut self,
        host: Host,
        group: &mut Group,
        now: Duration,
        is_start: bool,
    ) {
        self.elects_at[host] = None;
        if is_start {
            self.rejoins_at[host] = now + STARTS;
            let slots = slots_of(group, host);
            slots.failed.clear();
            slots.is_up = false;
        }
    }

    /// Says whether anything is amiss still.
    pub(super) fn look(&mut self, group: &mut Group, io: &mut Io<'_>) -> bool {
        let nodes = group.nodes.len();
        (0..nodes).for_each(|host| group.listen(host, io.now));
        for (host, other) in (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes)) {
            if group.hears(host, other) {
                let map = slots_of(group, other).map.told();
                if map.version > slots_of(group, host).map.version && io.random.bool() {
                    self.learn(group, host, map);
                }
            }
        }
        for host in 0..nodes {
            if group.is_at_work(host) {
                Self::miss(group, host, io.now);
                self.judge(group, host, io.now);
                self.elect(group, host, io);
            }
        }
        let knows_all = |host: Host| {
            let slots = slots_of(group, host);
            slots.is_up && slots.failed.is_empty() && slots.map.version == self.newest.version
        };
        let is_amiss = !(0..nodes).all(knows_all) || !group.is_sound();
        if !is_amiss && self.moving.is_none() && self.waiting > 0 {
            // Who moves slots waits until all know of the last one.
            self.waiting -= 1;
            self.moving = Move::any(group, io);
        }
        is_amiss || self.moving.is_some() || self.waiting > 0
    }

    /// A node knows that map from now on, and copies whom it names.
    fn learn(&mut self, group: &mut Group, host: Host, map: Arc<Map>) {
        let follows = map.follows[host];
        group.nodes[host].state.take_map(map);
        if let Some(master) = follows.filter(|master| group.master_of(host) != Some(*master)) {
            self.elects_at[host] = None;
            group.follow(host, master);
        }
    }

    /// A node changes the newest map.
    pub(super) fn change(
        &mut self,
        group: &mut Group,
        host: Host,
        change: impl FnOnce(Map) -> Map,
    ) {
        let changed = change(Map::clone(&self.newest));
        self.newest = Arc::new(changed.counted());
        self.tell(group, host);
    }

    /// A node is told the newest map.
    pub(super) fn tell(&mut self, group: &mut Group, host: Host) {
        self.learn(group, host, self.newest.clone());
    }

    /// Notes whom most masters miss, and who is there again.
    fn miss(group: &mut Group, host: Host, now: Duration) {
        let masters = slots_of(group, host).map.masters();
        for other in (0..group.nodes.len()).filter(|other| *other != host) {
            let misses = group.misses(host, other, now);
            let agree = masters
                .iter()
                .filter(|master| group.hears(host, **master) && group.misses(**master, other, now));
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
        let masters = slots_of(group, host).map.masters();
        let is_reached = |master: &&Host| !group.misses(host, **master, now);
        let reached = masters.iter().filter(is_reached).count();
        let slots = slots_of(group, host);
        let has_failed = masters.iter().any(|master| slots.failed.contains(master));
        if has_failed || reached <= masters.len() / 2 {
            slots.is_up = false;
            self.rejoins_at[host] = self.rejoins_at[host].max(now + REJOINS);
        } else if now >= self.rejoins_at[host] || !slots.is_master() {
            slots.is_up = true;
        }
    }

    /// The replica of a master that failed takes its place if most masters vote for it.
    fn elect(&mut self, group: &mut Group, host: Host, io: &mut Io<'_>) {
        let slots = slots_of(group, host);
        let (map, follows) = (slots.map.clone(), slots.map.follows[host]);
        let master = follows.filter(|one| slots.failed.contains(one) && map.has_any(*one));
        let Some(master) = master else {
            self.elects_at[host] = None;
            return;
        };
        let wait = Duration::from_millis(io.random.u64(ELECTION));
        if *self.elects_at[host].get_or_insert(io.now + wait) > io.now {
            return;
        }
        self.elects_at[host] = Some(io.now + 2 * TIMEOUT);
        let masters = map.masters();
        let votes = |voter: &&Host| {
            let misses = slots_of(group, **voter).failed.contains(&master);
            misses && group.hears(host, **voter)
        };
        if masters.iter().filter(votes).count() > masters.len() / 2 {
            self.take_over(group, host, io);
        }
    }

    /// A replica takes its master's place.
    fn take_over(&mut self, group: &mut Group, host: Host, io: &mut Io<'_>) {
        let Some(master) = self.newest.follows[host] else {
            return;
        };
        self.change(group, host, |map| map.replace(master, host));
        group.promote(host);
        self.elects_at[host] = None;
        io.log(format!("node {host} takes the place of {master}"));
    }

    /// CLUSTER FAILOVER, sent to a replica, or to that of a master. Nobody sends it while a slot is on its way and one
    /// of its nodes isn't there: `docs/cluster.md` says what that may break.
    pub(super) fn fail_over_by_hand(&mut self, group: &mut Group, at: Host, io: &mut Io<'_>) {
        if self.moving.as_ref().is_some_and(|one| !one.has_both(group)) {
            return;
        }
        let is_replica = group.master_of(at).is_some();
        let replica = is_replica.then_some(at);
        let replica = replica.or_else(|| group.followers(at).next());
        if let Some(replica) = replica.filter(|replica| group.is_in_step(*replica)) {
            self.take_over(group, replica, io);
        }
    }

    pub(super) fn move_slot(&mut self, group: &mut Group, io: &mut Io<'_>) {
        match self.moving {
            None => self.moving = Move::any(group, io),
            Some(_) => self.waiting = self.waiting.saturating_add(1),
        }
    }

    /// An operator gave a slot that has keys to another node, and told that node the opposite.
    /// Each sends clients to the other.
    pub(super) fn set_at_odds(&mut self, group: &mut Group, io: &mut Io<'_>) {
        let nodes = group.nodes.iter();
        let mut keys = nodes.filter_map(|node| node.state.keys.iter().next());
        let Some((key, _)) = keys.next().filter(|_| self.at_odds.is_none()) else {
            return;
        };
        let slot = slot_of(key);
        let own = self.newest.owner(slot);
        let mut masters = self.newest.masters().into_iter();
        let Some(other) = masters.rfind(|host| *host != own) else {
            return;
        };
        for (host, believed) in [(own, other), (other, own)] {
            let slots = slots_of(group, host);
            slots.map = slots.map.mistaken(slot, believed);
        }
        io.log(format!(
            "nodes {own} and {other} are at odds over slot {slot}"
        ));
        self.at_odds = Some(([own, other], io.now + ODDS));
    }

    /// Goes on with the slot that is on its way, and ends what nodes are at odds over.
    pub(super) fn go_on(&mut self, group: &mut Group, io: &mut Io<'_>) {
        if let Some((both, _)) = self.at_odds.take_if(|(_, until)| *until <= io.now) {
            both.into_iter().for_each(|host| self.tell(group, host));
        }
        if let Some(mut one) = self.moving.take()
            && one.go_on(group, self, io)
        {
            self.moving = Some(one);
        }
    }

    /// When `go_on` has something to do.
    pub(super) fn goes_on_at(&self) -> Option<Duration> {
        let moves_at = self.moving.as_ref().map(|one| one.due);
        let agree_at = self.at_odds.map(|(_, until)| until);
        moves_at.into_iter().chain(agree_at).min()
    }
}

pub(super) fn slots_of(group: &mut Group, host: Host) -> &mut Slots {
    let slots = group.nodes[host].state.slots.as_mut();
    slots.expect("a node of a cluster")
}
