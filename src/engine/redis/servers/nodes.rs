//! Which nodes of a cluster are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::redis::Value;

use super::heard::{Heard, NoView, OTHERS, OTHERS_OF_A_LONER, Patience, worse};
use super::map::Map;
use super::view::{Questions, View};
use crate::base::Deadline;
use crate::base::sys::{collections::HashSet, sync::Mutex};
use crate::engine::net::address::HostPort;
use crate::engine::redis::{failure::Failure, round::Group, server::Server};

#[cfg(test)]
mod tests;

/// How many nodes are asked at once. The next time others are, if there are more.
const ASKED: usize = 8;

/// Asks nodes in turn.
#[derive(Debug)]
pub(super) struct Nodes {
    /// By which the cluster is found again, whatever else is known.
    seeds: Vec<HostPort>,
    /// Where the nodes begin that are asked next.
    turn: AtomicUsize,
}

impl Nodes {
    pub(super) fn new(seeds: Vec<HostPort>) -> Self {
        let turn = AtomicUsize::new(0);
        Nodes { seeds, turn }
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self) -> Self {
        Nodes::new(self.seeds.clone())
    }

    pub(super) fn seeds(&self) -> &[HostPort] {
        &self.seeds
    }

    /// Why nothing of use was said.
    pub(super) fn failure(heard: Heard) -> Failure {
        let failed = heard.silent.into_iter().filter_map(|(_, why)| match why {
            NoView::Failed(failure) => Some(failure),
            NoView::UnknownName | NoView::NoSentinel => None,
        });
        failed.fold(None, worse).unwrap_or_else(|| {
            Failure::ClusterDown("none of the nodes knows where the slots are".into())
        })
    }

    /// Asks some of them at once, and then the masters that they name and that haven't said anything yet.
    pub(super) fn hear(&self, map: &Mutex<Map>, deadline: &Deadline) -> Heard {
        let asked = Group::new(self.next(&mut map.lock()), deadline);
        let count = asked.servers.len();
        let mut heard = Heard::nothing(count, Patience::WITH_NODES, deadline.clone());
        let mut round = asked.ask(&Questions);
        let mut answered = Vec::new();
        while let Some((at, said)) = round.next(&heard.until) {
            let node = &asked.servers[at];
            add(&mut heard, map, node, said);
            answered.push(node.clone());
        }
        let (late, mut others) = masters_but(&mut map.lock(), &heard, &answered, &asked.servers);
        // A node that is cut off, and that is nearer than others, may have said what is new.
        let patience = if is_news(&map.lock(), &heard) {
            OTHERS_OF_A_LONER
        } else {
            others.clear();
            OTHERS
        };
        let until = deadline.within(patience);
        let others = Group::new(others, deadline);
        let more = others.ask(&Questions);
        // The answers of the late ones wait meanwhile; the others are asked only now.
        for (mut missing, mut round, asked) in [
            (others.servers.clone(), more, &others),
            (late, round, &asked),
        ] {
            while !missing.is_empty()
                && let Some((at, said)) = round.next(&until)
            {
                let node = &asked.servers[at];
                add(&mut heard, map, node, said);
                missing.retain(|one| !Arc::ptr_eq(one, node));
            }
        }
        heard
    }

    fn next(&self, map: &mut Map) -> Vec<Arc<Server>> {
        for seed in &self.seeds {
            let _ = map.node(seed);
        }
        let nodes = map.nodes();
        let first = self.turn.fetch_add(ASKED, Ordering::Relaxed);
        let in_turn = nodes.iter().cycle().skip(first % nodes.len().max(1));
        in_turn.take(nodes.len().min(ASKED)).cloned().collect()
    }
}

fn add(heard: &mut Heard, map: &Mutex<Map>, node: &Arc<Server>, said: Result<Value, Failure>) {
    let view = View::said(node, said);
    if let Ok(view) = &view {
        map.lock().importers.set(node, &view.coming);
    }
    heard.add(node, view.map_err(NoView::from));
}

fn is_news(map: &Map, heard: &Heard) -> bool {
    heard.views.iter().any(|view| map.is_news(view))
}

/// The masters that haven't answered: those that were asked, and the others.
fn masters_but(
    map: &mut Map,
    heard: &Heard,
    answered: &[Arc<Server>],
    asked: &[Arc<Server>],
) -> (Vec<Arc<Server>>, Vec<Arc<Server>>) {
    let is_among =
        |all: &[Arc<Server>], one: &Arc<Server>| all.iter().any(|other| Arc::ptr_eq(other, one));
    let masters: HashSet<_> = heard.views.iter().flat_map(|view| &view.masters).collect();
    let masters = masters.into_iter().filter_map(|at| map.node(at).cloned());
    let masters = masters.filter(|one| !is_among(answered, one));
    masters.partition(|one| is_among(asked, one))
}
