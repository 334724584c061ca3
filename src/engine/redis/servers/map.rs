//! Which node has which slot, as far as it is known.
//!
//! A set behind sentinels is a map of one slot, whose node is the master. What sentinels say of it has the epoch of the
//! last failover that they know of.
//!
//! A node that is cut off from the others goes on claiming slots that another has taken over. So the epoch of each
//! claim is kept:
//!
//! | of a slot is said | it is then |
//! |---|---|
//! | one claim or several, the highest as high as what is known, or higher | the highest's; of two as high, that of the node to which the cluster isn't down |
//! | lower claims, or none, by fewer nodes than most | where it was |
//! | the same by most of the nodes that are known | the highest's, or nobody's: the cluster was made anew |
//! | lower claims by all sentinels, or by a majority although the master has failed, or for seconds | the highest's: they were set up anew |
//! | by its node, in answer to a command, that it is another's | the other's: no look-up is needed to follow |
//!
//! What always holds: there is one [`Server`] for each address, and one that isn't in the map any more, or that was a
//! master and isn't, is retired.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::view::View;
use crate::base::sys::collections::{HashMap, HashSet};
use crate::base::sys::time;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::redis::settings::{Kind, Settings};
use crate::engine::redis::{keys::SLOTS, server::Server};

#[cfg(test)]
mod tests;

/// Which node has which slot, as far as it is known.
#[derive(Debug)]
pub(super) struct Map {
    settings: Arc<Settings>,
    /// All that are known: masters, replicas, and the seeds.
    nodes: Vec<Arc<Server>>,
    /// Of all slots, in their order.
    runs: Vec<Run>,
    pub(super) importers: Importers,
    /// When the look-up began that this is from. The one that doesn't confirm the master of sentinels isn't.
    looked_up: Option<Instant>,
    /// When a call to the master of sentinels failed, if one did since.
    failed: Option<Instant>,
    /// When its answer made it doubtful that it is the master still, if one did since.
    doubted: Option<Instant>,
}

/// Slots that one node has by one claim. They end where the next run begins.
#[derive(Clone, Copy, Debug)]
struct Run {
    begin: u16,
    /// Of the claim.
    epoch: u64,
    /// Where the node stands in `nodes`.
    place: u16,
}

/// The node of slots that nobody is known to have.
const NOBODY: u16 = u16::MAX;

/// Within this time all sentinels learn of a failover from the one that led it.
const SPREAD: Duration = Duration::from_secs(10);

impl Map {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        let nobodys = Run {
            begin: 0,
            epoch: 0,
            place: NOBODY,
        };
        Map {
            settings,
            nodes: Vec::new(),
            runs: vec![nobodys],
            importers: Importers::default(),
            looked_up: None,
            failed: None,
            doubted: None,
        }
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Self {
        let own = |node: &Arc<Server>| Arc::new(node.after_fork(settings.clone()));
        Map {
            nodes: self.nodes.iter().map(own).collect(),
            runs: self.runs.clone(),
            // The first look-up of the child tells.
            importers: Importers::default(),
            settings,
            ..*self
        }
    }

    /// The node that has a slot.
    pub(super) fn master(&self, slot: u16) -> Option<&Arc<Server>> {
        let run = self.runs[self.run_of(slot)];
        self.nodes.get(usize::from(run.place))
    }

    /// All that have slots, in the order of the first slot of each.
    pub(super) fn masters(&self) -> Vec<Arc<Server>> {
        let places = masters(&self.runs).into_iter();
        places.map(|at| self.nodes[at].clone()).collect()
    }

    /// When the look-up began that it is from.
    pub(super) fn looked_up(&self) -> Option<Instant> {
        self.looked_up
    }

    /// Since when a look-up has to be that a call to the master of sentinels needs; `None`: what is known will do, or
    /// nothing is.
    pub(super) fn unconfirmed_since(&self, known_within: Duration) -> Option<Instant> {
        let (found, now) = (self.looked_up?, time::now());
        // `None` is before any time.
        let suspected = self.failed.max(self.doubted);
        let is_fresh = now.saturating_duration_since(found) <= known_within;
        if is_fresh && suspected.is_none() {
            return None;
        }
        let since = suspected.max(now.checked_sub(known_within));
        Some(since.unwrap_or(found))
    }

    /// Whether it says that another took the place of that master.
    pub(super) fn is_newer(&self, view: &View) -> bool {
        self.master(0).is_some() && view.newest() > self.runs[0].epoch
    }

    /// Notes that a call to the master of sentinels has failed now.
    pub(super) fn suspect(&mut self, server: &Arc<Server>) {
        if self.is_the_master(server) {
            self.failed = Some(time::now());
        }
    }

    /// Notes that it isn't sure whether that master is one still.
    pub(super) fn doubt(&mut self, server: &Arc<Server>) {
        if self.is_the_master(server) {
            self.doubted = Some(time::now());
        }
    }

    fn is_the_master(&self, server: &Arc<Server>) -> bool {
        let master = self.master(0).filter(|_| self.slots() == 1);
        master.is_some_and(|master| Arc::ptr_eq(master, server))
    }

    pub(super) fn nodes(&self) -> &[Arc<Server>] {
        &self.nodes
    }

    /// The node at an address, which is made if it isn't there; `None` if that host can have no certificate.
    pub(super) fn node(&mut self, at: &HostPort) -> Option<&Arc<Server>> {
        let at = self.place(at)?;
        self.nodes.get(usize::from(at))
    }

    /// Notes that the node at that address has a slot.
    pub(super) fn set(&mut self, slot: u16, at: &HostPort) -> Option<&Arc<Server>> {
        let place = self.place(at)?;
        self.split([slot, slot + 1]);
        let run = self.run_of(slot);
        self.runs[run].place = place;
        self.nodes.get(usize::from(place))
    }

    fn place(&mut self, at: &HostPort) -> Option<u16> {
        let known = self.nodes.iter().position(|node| is_at(node, at));
        let place = known.unwrap_or(self.nodes.len());
        let number = u16::try_from(place).ok().filter(|at| *at != NOBODY)?;
        if known.is_none() {
            let server = Server::new(Endpoint::Tcp(at.clone()), self.settings.clone());
            self.nodes.push(Arc::new(server.ok()?));
        }
        Some(number)
    }

    /// Whether it says of any slot that another node has it than is known, and may be right.
    pub(super) fn is_news(&self, view: &View) -> bool {
        view.ranges.iter().any(|range| {
            let place = self
                .nodes
                .iter()
                .position(|node| is_at(node, &range.master));
            let known = &self.runs[self.run_of(range.first)..=self.run_of(range.last)];
            let mut others = known
                .iter()
                .filter(|run| place != Some(usize::from(run.place)));
            others.any(|run| run.epoch <= range.epoch)
        })
    }

    /// Takes over the answers of a look-up: when it began, and how many were asked. Returns the nodes that are to be
    /// retired. The seeds stay: the cluster is found again through them, whatever else is known.
    pub(super) fn take_over(
        &mut self,
        (views, asked): (&[View], usize),
        seeds: &[HostPort],
        began: Instant,
    ) -> Vec<Arc<Server>> {
        let were_masters = masters(&self.runs);
        if !self.believe(views, asked, began) {
            return Vec::new();
        }
        let are_masters = masters(&self.runs);
        for suspected in [&mut self.failed, &mut self.doubted] {
            *suspected = suspected.filter(|at| *at > began && were_masters == are_masters);
        }
        let ranges = views.iter().flat_map(|view| &view.ranges);
        let of_ranges = ranges.flat_map(|range| range.replicas.iter().chain([&range.master]));
        let masters = views.iter().flat_map(|view| &view.masters);
        let mut told = HashSet::default();
        let all = of_ranges.chain(masters).chain(seeds);
        let others: Vec<_> = all.filter(|at| told.insert(*at)).collect();
        // A master that isn't one any more is another server to those who have connections there.
        let (mut kept, mut retired, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            let was_master = were_masters.contains(&at);
            let is_told = || matches!(node.endpoint(), Endpoint::Tcp(at) if told.contains(at));
            if are_masters.contains(&at) || (!was_master && is_told()) {
                places.push(u16::try_from(kept.len()).unwrap_or(NOBODY));
                kept.push(node);
            } else {
                places.push(NOBODY);
                retired.push(node);
            }
        }
        self.nodes = kept;
        if !retired.is_empty() {
            self.importers.forget(&retired);
            for run in &mut self.runs {
                let place = places.get(usize::from(run.place));
                run.place = place.copied().unwrap_or(NOBODY);
            }
        }
        for other in others {
            let _ = self.place(other);
        }
        self.looked_up = Some(began);
        retired
    }

    /// Decides who has which slot, by the claims of all. Gives whether that counts as a look-up: not where all
    /// sentinels that answered are behind.
    fn believe(&mut self, views: &[View], asked: usize, began: Instant) -> bool {
        let is_one = self.slots() == 1;
        let most = if is_one {
            self.most_sentinels(asked, began)
        } else {
            self.nodes.len() / 2 + 1
        };
        // If no claim to a slot is as high as the known one, all nodes that answered are behind.
        let are_enough = views.len() >= most;
        let ranges = views.iter().flat_map(|view| &view.ranges);
        self.split(ranges.flat_map(|range| [range.first, range.last + 1]));
        let claims = self.highest_claims(views);
        for (run, (epoch, place)) in self.runs.iter_mut().zip(claims) {
            if epoch >= run.epoch || are_enough {
                (run.epoch, run.place) = (epoch, place);
            } else if is_one {
                return false;
            }
        }
        let claim = |run: &Run| (run.epoch, run.place);
        self.runs.dedup_by(|next, run| claim(next) == claim(run));
        true
    }

    /// The highest claim to each run: its epoch, and the place of its node. Of equal claims the first counts.
    fn highest_claims(&mut self, views: &[View]) -> Vec<(u64, u16)> {
        let mut highest = vec![((0, false), NOBODY); self.runs.len()];
        let mut places = HashMap::default();
        for view in views {
            for range in &view.ranges {
                let place = places
                    .entry(&range.master)
                    .or_insert_with(|| self.place(&range.master));
                let Some(place) = *place else { continue };
                let rank = (range.epoch, view.is_up);
                let runs = self.run_of(range.first)..=self.run_of(range.last);
                for claim in &mut highest[runs] {
                    if claim.1 == NOBODY || rank > claim.0 {
                        *claim = (rank, place);
                    }
                }
            }
        }
        let claims = highest.iter().map(|((epoch, _), place)| (*epoch, *place));
        claims.collect()
    }

    /// How many slots there are.
    fn slots(&self) -> u16 {
        match self.settings.kind {
            Kind::Cluster => SLOTS,
            Kind::Single | Kind::Sentinel | Kind::Quorum => 1,
        }
    }

    /// Where the run stands that a slot is in.
    fn run_of(&self, slot: u16) -> usize {
        self.runs.partition_point(|run| run.begin <= slot) - 1
    }

    /// Lets a run begin at each of these slots.
    fn split(&mut self, at: impl IntoIterator<Item = u16>) {
        let slots = self.slots();
        for begin in at.into_iter().filter(|slot| *slot < slots) {
            let run = self.run_of(begin);
            if self.runs[run].begin < begin {
                let rest = Run {
                    begin,
                    ..self.runs[run]
                };
                self.runs.insert(run + 1, rest);
            }
        }
    }

    /// How many of the sentinels that were asked have to be behind before they count as set up anew. A majority may not
    /// have heard of the failover yet.
    fn most_sentinels(&self, asked: usize, began: Instant) -> usize {
        let found = self.looked_up.unwrap_or(began);
        let is_long_ago = began.saturating_duration_since(found) >= SPREAD;
        if self.failed.is_some() || is_long_ago {
            asked / 2 + 1
        } else {
            asked
        }
    }
}

fn is_at(node: &Server, at: &HostPort) -> bool {
    matches!(node.endpoint(), Endpoint::Tcp(own) if own == at)
}

/// Where the nodes stand that have slots, in the order of the first slot of each.
fn masters(runs: &[Run]) -> Vec<usize> {
    let mut masters = Vec::new();
    for run in runs.iter().filter(|run| run.place != NOBODY) {
        let place = usize::from(run.place);
        if !masters.contains(&place) {
            masters.push(place);
        }
    }
    masters
}

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

    /// Notes that a node takes a slot over, by the word of its owner.
    pub(super) fn add(&mut self, slot: u16, node: &Arc<Server>) {
        match self.0.iter_mut().find(|(one, _)| Arc::ptr_eq(one, node)) {
            Some((_, slots)) if slots.contains(&slot) => {}
            Some((_, slots)) => slots.push(slot),
            None => self.0.push((node.clone(), vec![slot])),
        }
    }

    /// Notes that a node doesn't take that slot over any more.
    pub(super) fn remove(&mut self, slot: u16, node: &Arc<Server>) {
        let of_node = self.0.iter_mut().filter(|(one, _)| Arc::ptr_eq(one, node));
        of_node.for_each(|(_, slots)| slots.retain(|one| *one != slot));
    }

    /// Forgets nodes that are others now, or gone.
    pub(super) fn forget(&mut self, gone: &[Arc<Server>]) {
        let is_gone = |node: &Arc<Server>| gone.iter().any(|gone| Arc::ptr_eq(gone, node));
        self.0.retain(|(node, _)| !is_gone(node));
    }
}
