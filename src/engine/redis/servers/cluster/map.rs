//! Which node has which slot, as far as it is known.
//!
//! What always holds: there is one [`Server`] for each address, and one that isn't in the map any more, or that was a master
//! and isn't, is retired.

use std::sync::Arc;
use std::time::Instant;

use super::view::View;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::slots::SLOTS;
use crate::engine::redis::settings::Settings;

/// Which node has which slot, as far as it is known.
#[derive(Debug)]
pub(super) struct Map {
    settings: Arc<Settings>,
    /// By which the cluster is found again, whatever else is known.
    seeds: Vec<HostPort>,
    /// All that are known: masters, replicas, and the seeds.
    nodes: Vec<Arc<Server>>,
    /// The node of each slot: where it stands in `nodes`.
    slots: Vec<u16>,
    /// When the look-up began that this is from.
    looked_up: Option<Instant>,
}

/// The node of a slot that nobody is known to have.
const NOBODY: u16 = u16::MAX;

impl Map {
    pub(super) fn new(seeds: Vec<HostPort>, settings: Arc<Settings>) -> Self {
        Map {
            settings,
            seeds,
            nodes: Vec::new(),
            slots: vec![NOBODY; usize::from(SLOTS)],
            looked_up: None,
        }
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Self {
        let own = |node: &Arc<Server>| Arc::new(node.after_fork(settings.clone()));
        Map {
            nodes: self.nodes.iter().map(own).collect(),
            seeds: self.seeds.clone(),
            slots: self.slots.clone(),
            settings,
            ..*self
        }
    }

    pub(super) fn seeds(&self) -> &[HostPort] {
        &self.seeds
    }

    /// The node that has a slot.
    pub(super) fn master(&self, slot: u16) -> Option<&Arc<Server>> {
        let at = self.slots.get(usize::from(slot))?;
        self.nodes.get(usize::from(*at))
    }

    /// All that have slots, in the order of the first slot of each.
    pub(super) fn masters(&self) -> Vec<Arc<Server>> {
        let nodes = masters(&self.slots).into_iter();
        nodes.map(|at| self.nodes[at].clone()).collect()
    }

    /// How many slots somebody is known to have.
    #[cfg(test)]
    fn covered(&self) -> usize {
        self.slots.iter().filter(|at| **at != NOBODY).count()
    }

    /// When the look-up began that it is from.
    pub(super) fn looked_up(&self) -> Option<Instant> {
        self.looked_up
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
        let at = self.place(at)?;
        if let Some(node) = self.slots.get_mut(usize::from(slot)) {
            *node = at;
        }
        self.nodes.get(usize::from(at))
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

    /// Takes over what a look-up says that began then. Gives the nodes that are to be retired.
    pub(super) fn take_over(&mut self, view: &View, began: Instant) -> Vec<Arc<Server>> {
        let before = std::mem::take(&mut self.nodes);
        let were_masters = masters(&self.slots);
        let addresses = |range: &super::view::Range| range.master.clone();
        let are_masters: Vec<_> = view.ranges.iter().map(addresses).collect();
        let replicas = view.ranges.iter().flat_map(|range| &range.replicas);
        let others: Vec<_> = replicas.chain(&self.seeds).cloned().collect();
        // A master that isn't one any more is another server to those who have connections there.
        let (mut kept, mut retired) = (Vec::new(), Vec::new());
        for (at, node) in before.into_iter().enumerate() {
            let is_one_of = |all: &[HostPort]| all.iter().any(|at| is_at(&node, at));
            let was_master = were_masters.contains(&at);
            if is_one_of(&are_masters) || (!was_master && is_one_of(&others)) {
                kept.push(node);
            } else {
                retired.push(node);
            }
        }
        self.nodes = kept;
        self.slots.fill(NOBODY);
        for range in &view.ranges {
            if let Some(place) = self.place(&range.master) {
                self.slots[usize::from(range.first)..=usize::from(range.last)].fill(place);
            }
        }
        for other in &others {
            let _ = self.place(other);
        }
        self.looked_up = Some(began);
        retired
    }
}

fn is_at(node: &Server, at: &HostPort) -> bool {
    matches!(node.endpoint(), Endpoint::Tcp(own) if own == at)
}

/// The nodes that have slots, in the order of the first slot of each.
fn masters(slots: &[u16]) -> Vec<usize> {
    let mut masters: Vec<usize> = Vec::new();
    let mut last = NOBODY;
    for at in slots {
        if *at != last && *at != NOBODY && !masters.contains(&usize::from(*at)) {
            masters.push(usize::from(*at));
        }
        last = *at;
    }
    masters
}

#[cfg(test)]
mod tests {
    use super::super::view::Range;
    use super::*;
    use crate::base::options::Options;
    use crate::engine::redis::address::{self, At};

    fn at(port: u16) -> HostPort {
        HostPort {
            host: "a".into(),
            port,
        }
    }

    fn map() -> Map {
        let address = address::parse("redis+cluster://a:1,a:9").unwrap();
        let settings = Settings::new(&address, &Options::default()).unwrap();
        let At::Cluster { hosts } = address.at else {
            panic!("it is one")
        };
        Map::new(hosts, Arc::new(settings))
    }

    fn view(ranges: &[(u16, u16, u16, &[u16])]) -> View {
        let range = |(first, last, master, replicas): &(u16, u16, u16, &[u16])| Range {
            first: *first,
            last: *last,
            master: at(*master),
            replicas: replicas.iter().copied().map(at).collect(),
        };
        View {
            epoch: 1,
            is_up: true,
            ranges: ranges.iter().map(range).collect(),
        }
    }

    fn ports(nodes: &[Arc<Server>]) -> Vec<u16> {
        let port = |node: &Arc<Server>| (1..10).find(|port| is_at(node, &at(*port))).unwrap();
        nodes.iter().map(port).collect()
    }

    #[test]
    fn slot_is_where_the_last_word_has_it() {
        let (mut map, now) = (map(), Instant::now());
        assert!(map.master(0).is_none() && map.masters().is_empty());
        let retired = map.take_over(&view(&[(0, 9, 1, &[3]), (10, 16_383, 2, &[])]), now);
        assert!(retired.is_empty());
        assert_eq!(ports(&map.masters()), [1, 2]);
        assert_eq!(ports(map.nodes()), [1, 2, 3, 9]);
        map.set(0, &at(2));
        assert_eq!(ports(&map.masters()), [2, 1]);
        assert!(Arc::ptr_eq(map.master(0).unwrap(), map.master(10).unwrap()));
        assert_eq!((map.covered(), map.looked_up()), (16_384, Some(now)));
        assert!(map.master(SLOTS).is_none());
    }

    #[test]
    fn only_what_has_lost_its_place_is_retired() {
        let (mut map, now) = (map(), Instant::now());
        map.take_over(&view(&[(0, 9, 1, &[3]), (10, 19, 2, &[4])]), now);
        let replica = map.node(&at(3)).unwrap().clone();
        let master = map.node(&at(2)).unwrap().clone();
        // 3 takes over from 1, which becomes its replica, and 4 is gone.
        let retired = map.take_over(&view(&[(0, 9, 3, &[1]), (10, 19, 2, &[])]), now);
        assert_eq!(ports(&retired), [1, 4]);
        assert!(Arc::ptr_eq(map.master(0).unwrap(), &replica));
        assert!(Arc::ptr_eq(map.master(10).unwrap(), &master));
        // The same address, but another server to those who had connections there.
        let anew = map.node(&at(1)).unwrap();
        assert!(!retired.iter().any(|old| Arc::ptr_eq(old, anew)));
        assert_eq!(map.covered(), 20);
    }
}
