//! Looking up which node has which slot, in the background, and waiting for it.
//!
//! | a look-up is | then a caller who needs one | left when |
//! |---|---|---|
//! | not due: the last began less than 100 ms ago, or less than the caller's ttl / 4 | sleeps until it is due | it is due |
//! | due | starts one | its thread runs |
//! | running | waits for its end, and for that of another if this one began too early | it has ended |
//!
//! Each caller waits by its own deadline, and nobody by a lock. A look-up has a deadline of its own, so a caller who is
//! cancelled spoils nothing for those that have joined. It ends when the cluster isn't used any more.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::base::sys::channel::{Receiver, bounded};
use crate::base::sys::{self, time};

use super::heard::{Heard, OTHERS, OTHERS_OF_A_LONER};
use super::map::Map;
use super::view::View;
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::sync::Mutex;
use crate::engine::net::address::HostPort;
use crate::engine::net::limits::CANCEL_LATENESS;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::ask_all::ask_all;
use crate::engine::redis::settings::Settings;

/// How long after one look-up began the next may begin, so that many callers at once don't burden the nodes.
const APART: Duration = Duration::from_millis(100);

/// How many nodes are asked at once. The next time others are, if there are more.
const ASKED: usize = 8;

/// The nodes of a cluster, as far as they are known.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) settings: Arc<Settings>,
    /// By which the cluster is found again, whatever else is known.
    pub(super) seeds: Vec<HostPort>,
    pub(super) map: Mutex<Map>,
    lookup: Mutex<Lookup>,
    /// Where the nodes begin that are asked next.
    turn: AtomicUsize,
    /// Set when the cluster isn't used any more.
    pub(super) closed: Cancel,
}

#[derive(Debug, Default)]
struct Lookup {
    /// When the last one began.
    began: Option<Instant>,
    /// Its end is that of this channel, also if it panics.
    running: Option<Receiver<Infallible>>,
}

impl Lookup {
    fn running(&self) -> Option<Receiver<Infallible>> {
        let has_ended = |end: &Receiver<_>| end.try_recv().is_err_and(|e| e.is_disconnected());
        self.running.clone().filter(|end| !has_ended(end))
    }
}

enum Step {
    /// One that began then runs.
    Runs(Instant, Receiver<Infallible>),
    NotDue(Duration),
    /// There is no thread for it.
    Fails,
}

impl Nodes {
    pub(super) fn new(settings: Arc<Settings>, map: Map) -> Self {
        Nodes {
            settings,
            seeds: map.seeds().to_vec(),
            map: Mutex::new(map),
            lookup: Mutex::default(),
            turn: AtomicUsize::new(0),
            closed: Cancel::default(),
        }
    }

    /// The node that has a slot, as far as it is known.
    pub(super) fn master(&self, slot: u16) -> Option<Arc<Server>> {
        self.map.lock().master(slot).cloned()
    }

    /// Returns when a look-up that began after `since` has ended, or by the deadline, whatever became of it.
    pub(super) fn look_up_since(self: &Arc<Self>, since: Instant, deadline: &Deadline) {
        self.await_one_since(since, APART, deadline);
    }

    /// Returns when what is known is no older than that, or by the deadline, whatever became of it.
    pub(super) fn look_up_within(self: &Arc<Self>, known_within: Duration, deadline: &Deadline) {
        if let Some(since) = time::now().checked_sub(known_within) {
            // To wait for longer would be a good part of a short ttl.
            self.await_one_since(since, APART.min(known_within), deadline);
        }
    }

    fn await_one_since(self: &Arc<Self>, since: Instant, apart: Duration, deadline: &Deadline) {
        while !deadline.is_over() && !self.closed.is_set() {
            if self.map.lock().looked_up().is_some_and(|at| at >= since) {
                return;
            }
            match self.step(apart) {
                Step::Runs(began, end) => {
                    await_end(&end, deadline);
                    if began >= since {
                        return;
                    }
                }
                Step::NotDue(pause) => deadline.sleep(pause),
                Step::Fails => return,
            }
        }
    }

    /// Has it looked up soon, if that is due, without waiting for it.
    pub(super) fn look_up_soon(self: &Arc<Self>) {
        self.step(APART);
    }

    /// The same, if the last one began so long ago.
    pub(super) fn look_up_beside(self: &Arc<Self>, apart: Duration) {
        self.step(apart);
    }

    fn step(self: &Arc<Self>, apart: Duration) -> Step {
        let mut lookup = self.lookup.lock();
        let now = time::now();
        match (lookup.began, lookup.running()) {
            (Some(began), Some(running)) => return Step::Runs(began, running),
            (Some(began), None) if now < began + apart => {
                return Step::NotDue(began + apart - now);
            }
            _ => {}
        }
        let (ended, end) = bounded(0);
        let nodes = self.clone();
        let look_up = move || {
            let deadline = Deadline::after(nodes.settings.connect_timeout).or(&nodes.closed);
            if let Err(failure) = nodes.look_up(now, &deadline) {
                let place = &nodes.settings.shown;
                log::warn!(
                    "{place}: no node says where the slots are: {}",
                    failure.cause()
                );
            }
            drop(ended);
        };
        // So that none is tried at once again, whether or not there is a thread.
        lookup.began = Some(now);
        if let Err(e) = sys::spawn("crosslock-slots", look_up) {
            log::warn!("no thread to look slots up: {e}");
            return Step::Fails;
        }
        lookup.running = Some(end.clone());
        Step::Runs(now, end)
    }

    /// Asks some of the nodes at once, and takes over what they say.
    ///
    /// # Errors
    ///
    /// When none says anything of use. Then what is known stays.
    pub(super) fn look_up(&self, began: Instant, deadline: &Deadline) -> Result<(), Failure> {
        let asked = self.next_to_ask();
        let mut heard = Heard::nothing(asked.len(), deadline.clone());
        let answers = ask_all(&asked, deadline, ask);
        let mut answered = Vec::new();
        while let Some(Ok((node, view))) = heard.until().and_then(|until| answers.next(until)) {
            self.hear(&mut heard, &node, view);
            answered.push(node);
        }
        let (late, mut others) = self.masters_but(&heard, &answered, &asked);
        // A node that is cut off, and that is nearer than others, may have said what is new.
        let patience = if self.is_news(&heard) {
            OTHERS_OF_A_LONER
        } else {
            others.clear();
            OTHERS
        };
        let (until, more) = (deadline.within(patience), ask_all(&others, deadline, ask));
        for (mut missing, answers) in [(late, answers), (others, more)] {
            while !missing.is_empty()
                && let Some(Ok((node, view))) = answers.next(&until)
            {
                self.hear(&mut heard, &node, view);
                missing.retain(|one| !Arc::ptr_eq(one, &node));
            }
        }
        self.take_over(&heard.into_views()?, began);
        Ok(())
    }

    fn hear(&self, heard: &mut Heard, node: &Arc<Server>, said: Result<View, Failure>) {
        if let Ok(view) = &said {
            self.map.lock().importers.set(node, &view.coming);
        }
        heard.add(said);
    }

    fn is_news(&self, heard: &Heard) -> bool {
        let map = self.map.lock();
        heard.views().iter().any(|view| map.is_news(view))
    }

    /// The masters that haven't answered: those that were asked, and the others.
    fn masters_but(
        &self,
        heard: &Heard,
        answered: &[Arc<Server>],
        asked: &[Arc<Server>],
    ) -> (Vec<Arc<Server>>, Vec<Arc<Server>>) {
        let is_among = |all: &[Arc<Server>], one: &Arc<Server>| {
            all.iter().any(|other| Arc::ptr_eq(other, one))
        };
        let mut map = self.map.lock();
        let masters: HashSet<_> = heard
            .views()
            .iter()
            .flat_map(|view| &view.masters)
            .collect();
        let masters = masters.into_iter().filter_map(|at| map.node(at).cloned());
        let masters = masters.filter(|one| !is_among(answered, one));
        masters.partition(|one| is_among(asked, one))
    }

    fn take_over(&self, views: &[View], began: Instant) {
        let retired = self.map.lock().take_over(views, began);
        // It closes connections.
        retired.iter().for_each(|node| node.retire());
    }

    fn next_to_ask(&self) -> Vec<Arc<Server>> {
        let mut map = self.map.lock();
        for seed in &self.seeds {
            let _ = map.node(seed);
        }
        let nodes = map.nodes();
        let first = self.turn.fetch_add(ASKED, Ordering::Relaxed);
        let in_turn = nodes.iter().cycle().skip(first % nodes.len().max(1));
        in_turn.take(nodes.len().min(ASKED)).cloned().collect()
    }
}

/// What a node says, and which one does.
fn ask(node: &Arc<Server>, deadline: &Deadline) -> Result<Said, Failure> {
    Ok((node.clone(), View::ask(node, deadline)))
}

type Said = (Arc<Server>, Result<View, Failure>);

/// Returns when the channel has ended, or the deadline is over.
fn await_end(end: &Receiver<Infallible>, deadline: &Deadline) {
    while !deadline.is_over() {
        let patience = deadline.remaining().min(CANCEL_LATENESS);
        if end
            .recv_timeout(patience)
            .is_err_and(|e| e.is_disconnected())
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Options;
    use crate::engine::redis::address::{self, At};

    /// A cluster none of whose nodes is there.
    fn nobody() -> Arc<Nodes> {
        let address = address::parse("redis+cluster://127.0.0.1:1").unwrap();
        let settings = Arc::new(Settings::new(&address, &Options::default()).unwrap());
        let At::Cluster { hosts } = address.at else {
            panic!("it is one")
        };
        let map = Map::new(hosts, settings.clone());
        Arc::new(Nodes::new(settings, map))
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[test]
    fn look_up_that_panicked_is_followed_by_another() {
        let (nodes, (ended, end)) = (nobody(), bounded(0));
        // As its thread leaves it then.
        let before = Instant::now();
        *nodes.lookup.lock() = Lookup {
            began: Some(before),
            running: Some(end),
        };
        drop(ended);
        let deadline = soon();
        nodes.look_up_since(Instant::now(), &deadline);
        assert!(!deadline.is_over() && nodes.lookup.lock().began > Some(before));
    }

    #[test]
    fn who_needs_what_is_newer_than_that_has_it_looked_up_more_often() {
        let nodes = nobody();
        let began = || {
            nodes.look_up_within(Duration::from_millis(20), &soon());
            nodes.lookup.lock().began.unwrap()
        };
        // A machine that is busy may be slower now and then.
        let mut last = began();
        let mut apart = std::iter::repeat_with(|| {
            let next = began();
            next - std::mem::replace(&mut last, next)
        });
        assert!(apart.by_ref().take(100).any(|apart| apart < APART / 2));
    }
}
