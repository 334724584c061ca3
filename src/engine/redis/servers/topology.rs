//! The servers among which the names are, as far as they are known; and looking up which of them has which slot, or who
//! is the master, in the background, and waiting for it.
//!
//! | a look-up is | then a caller who needs one | left when |
//! |---|---|---|
//! | not due: the last that asked nodes began less than 100 ms ago, or less than the caller's ttl / 4 | sleeps until it is due | it is due |
//! | due | starts one | its thread runs |
//! | running | waits for its end, and for that of another if this one began too early | it has ended |
//!
//! Each caller waits by its own deadline, and nobody by a lock. A look-up has a deadline of its own, so a caller who is
//! cancelled spoils nothing for those that have joined. It ends when the servers aren't used any more.
//!
//! A master that sentinels name is looked up, besides for its age, when a call to it has failed, or it has answered as
//! one does that was replaced. If no sentinel answers, who needs a master that was looked up lately goes on with the
//! one that is known: to lose the sentinels mustn't lose the locks. It is logged once, and for a second nobody waits
//! for that reason again.

use std::time::{Duration, Instant};
use std::{convert::Infallible, sync::Arc};

use super::heard::{Heard, Patience};
use super::{map::Map, sentinel::Ask};
use crate::base::sys::channel::{Receiver, bounded};
use crate::base::sys::{self, time};
use crate::base::{Cancel, Deadline, sys::sync::Mutex};
use crate::engine::net::{CANCEL_LATENESS, SHORTEST_SHARE};
use crate::engine::redis::round::Group;
use crate::engine::redis::server::{Server, share};
use crate::engine::redis::{failure::Failure, keys::slot_of, settings::Settings};

/// How long after one look-up began the next may begin, so that many callers at once don't burden the nodes.
const APART: Duration = Duration::from_millis(100);

/// How long to wait for other sentinels after the first, where the caller doesn't allow less.
pub(super) const AFTER_FIRST: Duration = Duration::from_millis(100);

/// The largest age of a look-up of the master, where it matters. A master that SENTINEL FAILOVER replaces takes itself
/// for the master for some seconds, and says yes to everything.
const MASTER_KNOWN: Duration = Duration::from_secs(1);

/// How long a master that works isn't looked up again when no sentinel has answered.
const OUTAGE: Duration = Duration::from_secs(1);

/// The servers that have locks, as far as they are known.
#[derive(Debug)]
pub(crate) struct Topology {
    pub(super) settings: Arc<Settings>,
    pub(super) ask: Ask,
    pub(super) map: Mutex<Map>,
    lookup: Mutex<Lookup>,
    /// Set when the servers aren't used any more.
    pub(super) closed: Cancel,
}

#[derive(Debug, Default)]
struct Lookup {
    /// When the last one began.
    began: Option<Instant>,
    /// Whether there was no thread for it.
    lacked_thread: bool,
    /// Its end is that of this channel, also if it panics.
    running: Option<Receiver<Infallible>>,
    /// The sentinels of the last one. Those that are slower than the others are connected to until this is dropped.
    asked: Option<Group>,
    /// When the last one began in which a sentinel has named a master.
    answered: Option<Instant>,
    /// When it was found last that no sentinel does, if that is so.
    outage: Option<Instant>,
    /// Why the last one has found nothing.
    cause: Option<String>,
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

impl Topology {
    pub(super) fn new(settings: Arc<Settings>, ask: Ask) -> Arc<Self> {
        let map = Map::new(settings.clone());
        Arc::new(Topology {
            settings,
            ask,
            map: Mutex::new(map),
            lookup: Mutex::default(),
            closed: Cancel::default(),
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Arc<Self> {
        let forked = Topology::new(settings.clone(), self.ask.after_fork(&settings));
        // A thread of the parent may have locked it, which the child doesn't have.
        if let Some(map) = self.map.try_lock() {
            *forked.map.lock() = map.after_fork(settings);
        }
        forked
    }

    pub(super) fn is_on_its_way(&self, key: &str) -> bool {
        let (slot, map) = (self.slot(key), self.map.lock());
        let master = map.master(slot);
        master.is_some_and(|master| !map.importers.of(slot, master).is_empty())
    }

    pub(super) fn all(self: &Arc<Self>, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        self.look_up_within(Some(MASTER_KNOWN), deadline);
        if self.map.lock().masters().is_empty() {
            // A child that was forked off may know nothing.
            self.look_up_since(time::now(), deadline);
        }
        let masters = self.map.lock().masters();
        if masters.is_empty() {
            return Err(self.nobody("any slot"));
        }
        Ok(masters)
    }

    pub(super) fn without_locks(&self) -> Vec<Arc<Server>> {
        if let Ask::Sentinels(sentinels) = &self.ask {
            return sentinels.all.clone();
        }
        let map = self.map.lock();
        let masters = map.masters();
        let is_master = |node: &&Arc<Server>| masters.iter().any(|one| Arc::ptr_eq(one, node));
        let others = map.nodes().iter().filter(|node| !is_master(node));
        others.cloned().collect()
    }

    /// Where in the map a key is.
    pub(super) fn slot(&self, key: &str) -> u16 {
        match self.ask {
            Ask::Sentinels(_) => 0,
            Ask::Nodes(_) => slot_of(key),
        }
    }

    /// Whether sentinels name the master of all names.
    pub(super) fn has_one_slot(&self) -> bool {
        matches!(self.ask, Ask::Sentinels(_))
    }

    /// The node that has a slot, as far as it is known.
    pub(super) fn master(&self, slot: u16) -> Option<Arc<Server>> {
        self.map.lock().master(slot).cloned()
    }

    /// Why there is no node for that.
    pub(super) fn nobody(&self, what: &str) -> Failure {
        match self.ask {
            Ask::Sentinels(_) => Failure::Closed("no sentinel reports the master".into()),
            Ask::Nodes(_) => Failure::ClusterDown(format!("no known node has {what}").into()),
        }
    }

    /// Waits for the end of a look-up that began after `since`, until the deadline at most. The look-up may have
    /// failed.
    pub(super) fn look_up_since(self: &Arc<Self>, since: Instant, deadline: &Deadline) {
        let apart = match self.ask {
            // There are few, and who has no master has nothing.
            Ask::Sentinels(_) => Duration::ZERO,
            Ask::Nodes(_) => APART,
        };
        self.await_one_since(since, (apart, AFTER_FIRST), deadline);
    }

    /// The same, unless what is known is new enough. It leaves time for the command that follows.
    pub(super) fn look_up_within(
        self: &Arc<Self>,
        known_within: Option<Duration>,
        deadline: &Deadline,
    ) {
        match self.ask {
            Ask::Sentinels(_) => self.confirm_master(known_within, deadline),
            Ask::Nodes(_) => {
                let known_within = known_within.unwrap_or(Duration::MAX);
                if let Some(since) = time::now().checked_sub(known_within) {
                    // To wait for longer would be a good part of a short ttl.
                    let pauses = (APART.min(known_within), AFTER_FIRST);
                    self.await_one_since(since, pauses, &share(deadline));
                }
            }
        }
    }

    fn confirm_master(self: &Arc<Self>, known_within: Option<Duration>, deadline: &Deadline) {
        let known_within = known_within.map_or(Duration::MAX, |within| within.min(MASTER_KNOWN));
        let Some(since) = self.map.lock().unconfirmed_since(known_within) else {
            return;
        };
        let outage = self.lookup.lock().outage;
        if outage.is_some_and(|at| time::since(at) < OUTAGE) {
            return;
        }
        // What is left of the time is for the command.
        let patience = (deadline.remaining() / 2).min(self.settings.connect_timeout);
        let patience = outage.map_or(patience, |_| patience.min(SHORTEST_SHARE));
        let until = deadline.within(patience);
        let pauses = (Duration::ZERO, after_first(known_within));
        self.await_one_since(since, pauses, &until);
        if !until.is_over() || patience >= SHORTEST_SHARE && !until.is_cancelled() {
            self.tell_outage(since);
        }
    }

    /// Notes that no sentinel has answered since then, if that is so.
    fn tell_outage(&self, since: Instant) {
        let is_new = |began: Option<Instant>| began.is_some_and(|began| began >= since);
        // The map is written before the look-up notes that it was answered.
        let is_mapped = is_new(self.map.lock().looked_up());
        let mut lookup = self.lookup.lock();
        if is_mapped || is_new(lookup.answered) {
            return;
        }
        let level = match lookup.outage.replace(time::now()) {
            None => log::Level::Warn,
            Some(_) => log::Level::Debug,
        };
        let shown = &self.settings.shown;
        let cause = lookup.cause.clone();
        drop(lookup);
        let cause = cause
            .as_deref()
            .unwrap_or("its sentinels didn't answer in time");
        log::log!(
            level,
            "{shown}: can't look up the master, using the last known one: {cause}"
        );
    }

    fn await_one_since(self: &Arc<Self>, since: Instant, pauses: Pauses, deadline: &Deadline) {
        while !deadline.is_over() && !self.closed.is_set() {
            if self.map.lock().looked_up().is_some_and(|at| at >= since) {
                return;
            }
            match self.step(pauses) {
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

    /// Starts a look-up if the last one began that long ago, and doesn't wait for it.
    pub(super) fn look_up_beside(self: &Arc<Self>, apart: Duration) {
        self.step((apart, AFTER_FIRST));
    }

    /// The same, if that is due.
    pub(super) fn look_up_soon(self: &Arc<Self>) {
        self.look_up_beside(APART);
    }

    fn step(self: &Arc<Self>, (apart, after_first): Pauses) -> Step {
        let mut lookup = self.lookup.lock();
        let now = time::now();
        match (lookup.began, lookup.running()) {
            (Some(began), Some(running)) => return Step::Runs(began, running),
            // Nobody waits for a thread: a renewal has no time for that.
            (Some(began), None) if now < began + apart => match lookup.lacked_thread {
                true => return Step::Fails,
                false => return Step::NotDue(began + apart - now),
            },
            _ => {}
        }
        let (ended, end) = bounded(0);
        let topology = self.clone();
        let look_up = move || {
            let deadline = Deadline::after(topology.settings.connect_timeout).or(&topology.closed);
            let outcome = topology.look_up(now, after_first, &deadline);
            topology.note(now, outcome);
            drop(ended);
        };
        // So that none is tried at once again, whether or not there is a thread.
        lookup.began = Some(now);
        let started = sys::spawn("crosslock-lookup", look_up);
        lookup.lacked_thread = started.is_err();
        if let Err(e) = started {
            log::warn!("can't start a thread that looks servers up: {e}");
            return Step::Fails;
        }
        lookup.running = Some(end.clone());
        Step::Runs(now, end)
    }

    fn note(&self, began: Instant, outcome: Result<(), Box<Heard>>) {
        let cause = outcome
            .err()
            .map(|heard| self.ask.failure(*heard).cause().to_string());
        if let (Ask::Nodes(_), Some(cause)) = (&self.ask, &cause) {
            let endpoint = &self.settings.shown;
            log::warn!("{endpoint}: no node reports where the slots are: {cause}");
        }
        let mut lookup = self.lookup.lock();
        if cause.is_none() {
            (lookup.answered, lookup.outage) = (Some(began), None);
        }
        lookup.cause = cause;
    }

    /// Asks some of the servers at once, and takes over what they say.
    ///
    /// # Errors
    ///
    /// When none says anything of use. Then what is known stays.
    pub(super) fn look_up(
        &self,
        began: Instant,
        after_first: Duration,
        deadline: &Deadline,
    ) -> Result<(), Box<Heard>> {
        let heard = match &self.ask {
            Ask::Sentinels(sentinels) => {
                // What is newer than what is known counts at once, for callers who have no time to wait for the others.
                let said_so_far = |heard: &Heard| {
                    let map = self.map.lock();
                    let is_newer = heard.views.last().is_some_and(|view| map.is_newer(view));
                    drop(map);
                    if is_newer {
                        self.take_over(heard, began);
                    }
                };
                let patience = Patience::with_sentinels(after_first);
                let (heard, asked) =
                    sentinels.hear(patience, deadline, &self.settings, said_so_far);
                let before = self.lookup.lock().asked.replace(asked);
                drop(before);
                heard
            }
            Ask::Nodes(nodes) => nodes.hear(&self.map, deadline),
        };
        if heard.views.is_empty() {
            return Err(Box::new(heard));
        }
        self.take_over(&heard, began);
        Ok(())
    }

    fn take_over(&self, heard: &Heard, began: Instant) {
        let mut map = self.map.lock();
        let before = map.master(0).cloned();
        let retired = map.take_over((&heard.views, heard.asked), self.ask.seeds(), began);
        let now = map.master(0).cloned();
        drop(map);
        if let (Ask::Sentinels(_), Some(before), Some(now)) = (&self.ask, before, now)
            && !Arc::ptr_eq(&before, &now)
        {
            let (shown, from, to) = (&self.settings.shown, before.address(), now.address());
            log::info!("the master of {shown} changed from {from} to {to}");
        }
        // It closes connections.
        retired.iter().for_each(|node| node.retire());
    }
}

/// How long after one look-up began the next may begin, and for how long it waits for sentinels when one has answered.
type Pauses = (Duration, Duration);

/// How long a look-up waits for other sentinels when one has answered. A lease that ends soon leaves no time for that.
/// An operator's call, which allows no old look-up, does.
fn after_first(known_within: Duration) -> Duration {
    match known_within {
        Duration::ZERO => AFTER_FIRST,
        within => AFTER_FIRST.min(within / 2),
    }
}

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
