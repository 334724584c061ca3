//! Calls that wait for a lock: who came first, and how long nobody had it meanwhile.

use std::sync::Mutex;
use std::time::Duration;

use crosslock_world::{Process, current, true_now, violation};

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
}

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// A call begins that asks for one name alone.
pub fn began(name: &str, timeout: Option<Duration>) -> Call {
    let (id, began) = (number(), true_now());
    locked(&WAITING).push(Waiting {
        id,
        name: name.to_owned(),
        process: current(),
        began,
        until: timeout.map(|timeout| began + timeout),
    });
    Call { id, began }
}

/// It has ended. If it has the lock, nobody of another process was passed over that waited for it before.
pub fn ended(call: Call, has_it: bool) {
    let mut waiting = locked(&WAITING);
    let Some(at) = waiting.iter().position(|one| one.id == call.id) else {
        return;
    };
    let own = waiting.remove(at);
    let passed_over = waiting.iter().find(|one| {
        let is_there = one.until.is_none_or(|until| true_now() < until);
        is_there
            && one.name == own.name
            && one.process != own.process
            && one.began + visible() < own.began
    });
    let text = passed_over.map(|one| {
        let (began, own_began) = (one.began, own.began);
        let name = &own.name;
        format!("{name}: who came at {own_began:?} passed over one that came at {began:?}")
    });
    drop(waiting);
    // Of several threads of a process one stands in the queue of the others. One whose lock is broken before it knows
    // that it has it waits as one that has just come.
    if let Some(text) = text
        && has_it
        && plan().tells_deaths()
        && !plan().does(Step::Break)
        && plan().threads == 1
    {
        violation(text);
    }
}

/// By then a call that waits is in the queue. On ZooKeeper the first call of a process begins a session, and makes the
/// node of its lock: each answer may come 50 ms late.
fn visible() -> Duration {
    Duration::from_millis(match plan().topology {
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
