//! Which nodes of a cluster are asked, and how.
//!
//! A node is asked on a connection that is idle, from the thread of the look-up. It is asked in a thread of its own, as
//! `heard.rs` says, if there is no such connection, or if that fails, or brings no answer in half of the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::heard::{Answers, Heard, NoView, OTHERS, OTHERS_OF_A_LONER, Patience, Said, worse};
use super::map::Map;
use super::view::{Asked, View};
use crate::base::Deadline;
use crate::base::sys::{collections::HashSet, net, sync::Mutex, time};
use crate::engine::net::{CANCEL_LATENESS, address::HostPort};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Server, share};

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
        let asked = self.next(&mut map.lock());
        let mut heard = Heard::nothing(asked.len(), Patience::WITH_NODES, deadline.clone());
        let mut answers = Asking::all(&asked, deadline);
        let mut answered = Vec::new();
        while let Some((node, view)) = answers.next(&heard.until) {
            add(&mut heard, map, &node, view);
            answered.push(node);
        }
        let (late, mut others) = masters_but(&mut map.lock(), &heard, &answered, &asked);
        // A node that is cut off, and that is nearer than others, may have said what is new.
        let patience = if is_news(&map.lock(), &heard) {
            OTHERS_OF_A_LONER
        } else {
            others.clear();
            OTHERS
        };
        let (until, more) = (deadline.within(patience), Asking::all(&others, deadline));
        for (mut missing, mut answers) in [(late, answers), (others, more)] {
            while !missing.is_empty()
                && let Some((node, view)) = answers.next(&until)
            {
                add(&mut heard, map, &node, view);
                missing.retain(|one| !Arc::ptr_eq(one, &node));
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

/// The nodes that are asked, and their answers in the order in which they come.
struct Asking {
    /// Those that were asked on idle connections, and haven't answered.
    on_idle: Vec<Asked>,
    began: Instant,
    /// By when these have to answer.
    idle_until: Deadline,
    answers: Answers<Said>,
    deadline: Deadline,
}

impl Asking {
    fn all(nodes: &[Arc<Server>], deadline: &Deadline) -> Self {
        let mut asking = Asking {
            on_idle: Vec::new(),
            began: time::now(),
            idle_until: share(deadline),
            answers: Answers::none(deadline),
            deadline: deadline.clone(),
        };
        let sent_by = deadline.within(OTHERS);
        for node in nodes {
            match Asked::on_idle(node, asking.began, &sent_by) {
                Some(asked) => asking.on_idle.push(asked),
                None => asking.answers.ask(node, ask),
            }
        }
        asking
    }

    /// The next answer; `None` when all have answered, or by `until`, or when the deadline is over.
    fn next(&mut self, until: &Deadline) -> Option<Said> {
        while !self.on_idle.is_empty() {
            let is_over = until.is_over() || self.deadline.is_over();
            self.look();
            if let Some(said) = self.answers.next_now() {
                return said.ok();
            }
            if is_over {
                return None;
            }
            let sockets = self.on_idle.iter().map(Asked::socket);
            let _ = net::await_any(sockets, None, until.remaining().min(CANCEL_LATENESS));
        }
        self.answers.next(until)?.ok()
    }

    /// Takes what has come on connections that were idle.
    fn look(&mut self) {
        for mut asked in std::mem::take(&mut self.on_idle) {
            let failure = match asked.has_answered() {
                Ok(true) => {
                    let node = asked.node.clone();
                    self.answers.add((node, asked.view().map_err(NoView::from)));
                    continue;
                }
                Ok(false) if !self.idle_until.is_over() => {
                    self.on_idle.push(asked);
                    continue;
                }
                Ok(false) => Failure::TimedOut("it doesn't answer".into()),
                Err(failure) => failure,
            };
            asked.node.distrust(&failure, self.began, &self.deadline);
            self.answers.ask(&asked.node, ask);
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let now = time::now();
        self.on_idle
            .drain(..)
            .for_each(|asked| asked.leave(now, OTHERS));
    }
}

fn add(heard: &mut Heard, map: &Mutex<Map>, node: &Arc<Server>, said: Result<View, NoView>) {
    if let Ok(view) = &said {
        map.lock().importers.set(node, &view.coming);
    }
    heard.add(node, said);
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

/// What a node says, and which one does.
fn ask(node: &Arc<Server>, deadline: &Deadline) -> Result<Said, Failure> {
    Ok((
        node.clone(),
        View::ask(node, deadline).map_err(NoView::from),
    ))
}

#[cfg(test)]
mod tests;
