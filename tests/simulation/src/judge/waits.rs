//! Calls that wait for a lock: who came first, and how long nobody had it meanwhile.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crosslock::Prefer;
use crosslock_world::{Process, current, true_now, violation};

use super::holds::{exclusive_ends, is_being_broken, is_free_since};
use super::{locked, number, plan};
use crate::plan::{Step, Topology};

/// A call that asks for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    id: u64,
    pub began: Duration,
}

struct Waiting {
    id: u64,
    name: String,
    process: Process,
    began: Duration,
    /// When it gives up.
    until: Option<Duration>,
    /// Whether it asks to read, where readers and writers ask, and whom its locker prefers.
    reads: Option<(bool, Prefer)>,
    /// It may have been let in and broken, and waits as one that has just come.
    may_be_anew: bool,
}

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// When the last call for a name ended without it.
static IN_VAIN: Mutex<BTreeMap<String, Duration>> = Mutex::new(BTreeMap::new());

/// A call begins that asks for one name alone.
pub fn began(name: &str, timeout: Option<Duration>) -> Call {
    begin(name, timeout, None)
}

/// One of a reader or a writer.
pub fn began_shared(name: &str, reads: bool, prefer: Prefer) -> Call {
    begin(name, None, Some((reads, prefer)))
}

fn begin(name: &str, timeout: Option<Duration>, reads: Option<(bool, Prefer)>) -> Call {
    let (id, began) = (number(), true_now());
    locked(&WAITING).push(Waiting {
        id,
        name: name.to_owned(),
        process: current(),
        began,
        until: timeout.map(|timeout| began + timeout),
        reads,
        may_be_anew: false,
    });
    Call { id, began }
}

/// It has ended. If it has the lock, nobody was passed over that had to be let in before.
pub fn ended(call: Call, has_it: bool) {
    let mut waiting = locked(&WAITING);
    let Some(at) = waiting.iter().position(|one| one.id == call.id) else {
        return;
    };
    let own = waiting.remove(at);
    let now = true_now();
    if !has_it {
        locked(&IN_VAIN).insert(own.name.clone(), now);
    }
    let mut others = waiting.iter().filter(|one| {
        one.name == own.name && one.until.is_none_or(|until| now < until) && !one.may_be_anew
    });
    let passed_over = others.find(|one| own.passes(one));
    let text = passed_over.map(|one| {
        let (began, own_began) = (one.began, own.began);
        let name = &own.name;
        format!("{name}: who came at {own_began:?} passed over one that came at {began:?}")
    });
    drop(waiting);
    if let Some(text) = text
        && has_it
        && !is_being_broken(&own.name)
    {
        violation(text);
    }
}

/// A try has ended and found the lock taken. Somebody has had it since the try began, or has asked for it since it was
/// released.
pub fn refused(call: Call) {
    /// What a cancelled call has on its way then stands in line until it is given back.
    const GIVEN_BACK: Duration = Duration::from_millis(100);
    let waiting = locked(&WAITING);
    let own = waiting.iter().find(|one| one.id == call.id);
    let name = own.map_or_else(String::new, |own| own.name.clone());
    let is_alone = waiting
        .iter()
        .all(|one| one.name != name || one.id == call.id);
    drop(waiting);
    let in_vain = locked(&IN_VAIN).get(&name).copied().unwrap_or_default();
    let is_free = is_free_since(&name, in_vain + GIVEN_BACK..call.began);
    // Who asks for several names isn't known to ask.
    let may_judge = plan().is_calm() && !plan().does(Step::All);
    if may_judge && is_alone && is_free {
        violation(format!("{name} was free, and a try found it taken"));
    }
    ended(call, false);
}

impl Waiting {
    /// Whether it must not be let in before that one.
    fn passes(&self, other: &Waiting) -> bool {
        let came_before = |by: Duration| other.began + visible() < by;
        let is_calm = plan().is_calm() && !plan().loses();
        let (last, last_long) = exclusive_ends(&self.name);
        match (self.reads, other.reads) {
            // Of several threads of a process one stands in the queue of the others.
            (None, None) => {
                let may_judge = plan().tells_deaths() && plan().threads == 1;
                may_judge && self.process != other.process && came_before(self.began)
            }
            // Readers that wait go in together behind a writer, and so before another.
            (Some((true, prefer)), Some((false, _))) => {
                let is_beside_readers = last + visible() < self.began;
                is_calm && prefer != Prefer::Readers && is_beside_readers && came_before(self.began)
            }
            (Some((false, prefer)), Some((true, _))) => {
                is_calm
                    && prefer != Prefer::Writers
                    && plan().can_prefer()
                    && came_before(last_long)
            }
            _ => false,
        }
    }
}

/// When the call began that has waited for it longest.
pub(super) fn first_began(name: &str) -> Option<Duration> {
    let (waiting, now) = (locked(&WAITING), true_now());
    let waits = |one: &&Waiting| one.name == name && one.until.is_none_or(|until| now < until);
    waiting.iter().filter(waits).map(|one| one.began).min()
}

/// A lease was broken of which nobody knew who had it: one of those that wait.
pub(super) fn may_be_anew(name: &str) {
    for one in locked(&WAITING).iter_mut().filter(|one| one.name == name) {
        one.may_be_anew = true;
    }
}

/// By then a call that waits is in the queue. On ZooKeeper the first call of a process begins a session, and makes the
/// node of its lock: each answer may come 50 ms late.
fn visible() -> Duration {
    Duration::from_millis(match plan().topology {
        Topology::Memory => 2,
        Topology::ZooKeeper => 250,
        _ => 100,
    })
}

/// The names that its calls were waiting for.
pub(super) fn died(process: Process) -> Vec<String> {
    let mut waiting = locked(&WAITING);
    let (gone, left) = std::mem::take(&mut *waiting)
        .into_iter()
        .partition(|one: &Waiting| one.process == process);
    *waiting = left;
    gone.into_iter().map(|one| one.name).collect()
}
