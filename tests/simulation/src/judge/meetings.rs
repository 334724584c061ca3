//! What is set once, latches, barriers and leaders.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crosslock::Leader;
use crosslock_world::{Process, current, true_now, violation};

use super::{locked, number, plan};
use crate::plan::Trouble;

/// By then a message has come, where all is well.
pub const SOON: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Once {
    value: Option<u64>,
    since: Duration,
}

static ONCES: Mutex<BTreeMap<String, Once>> = Mutex::new(BTreeMap::new());

/// Somebody was told that it is this, now and for ever.
pub fn is_set(name: &str, value: u64) {
    let mut onces = locked(&ONCES);
    let once = onces.entry(name.to_owned()).or_default();
    let before = *once.value.get_or_insert_with(|| {
        once.since = true_now();
        value
    });
    drop(onces);
    if before != value && plan().is_safe() {
        violation(format!("{name} was set to {before}, and is {value}"));
    }
}

/// Somebody was told, by a call that began then, that nobody has set it.
pub fn is_unset(name: &str, began: Duration) {
    let since = locked(&ONCES)
        .get(name)
        .filter(|once| once.value.is_some())
        .map(|once| once.since);
    if since.is_some_and(|since| since < began) && plan().is_safe() {
        violation(format!(
            "{name} was set at {since:?}, and isn't set at {began:?}"
        ));
    }
}

/// How often a latch was counted down: for certain, and perhaps, and since when for certain.
#[derive(Clone, Copy, Default)]
struct Counted {
    certain: u32,
    begun: u32,
    open_since: Duration,
}

static LATCHES: Mutex<BTreeMap<String, Counted>> = Mutex::new(BTreeMap::new());

pub fn counting(name: &str) {
    locked(&LATCHES).entry(name.to_owned()).or_default().begun += 1;
}

pub fn counted(name: &str, of: u32, left: u32) {
    let mut latches = locked(&LATCHES);
    let latch = latches.entry(name.to_owned()).or_default();
    latch.certain += 1;
    if latch.certain == of {
        latch.open_since = true_now();
    }
    drop(latches);
    left_of(name, of, left, 0);
}

/// So many times are left, where so many were counted down for certain when the call began.
pub fn left_of(name: &str, of: u32, left: u32, certain: u32) {
    let begun = locked(&LATCHES).get(name).map_or(0, |latch| latch.begun);
    let range = of.saturating_sub(begun)..=of.saturating_sub(certain);
    if !range.contains(&left) && plan().is_safe() {
        violation(format!(
            "{name}: {left} of {of} are left, and {range:?} were due"
        ));
    }
}

pub fn certainly_counted(name: &str) -> u32 {
    locked(&LATCHES).get(name).map_or(0, |latch| latch.certain)
}

/// A wait for a latch that began then has ended: it was open, or the time was over.
pub fn waited(name: &str, of: u32, began: Duration, is_open: bool) {
    let latch = locked(&LATCHES).get(name).copied().unwrap_or_default();
    let now = true_now();
    let late = now.saturating_sub(latch.open_since.max(began));
    let is_certain = latch.certain >= of;
    if is_open && latch.begun < of && plan().is_safe() {
        violation(format!("{name} was passed behind {} of {of}", latch.begun));
    }
    if is_certain && late > SOON && plan().is_calm() {
        violation(format!("{name} was open for {late:?} when a wait ended"));
    }
}

/// What each leader was about to publish, by its token.
static PUBLISHED: Mutex<BTreeMap<(String, u64), Vec<String>>> = Mutex::new(BTreeMap::new());

pub fn publishing(name: &str, token: u64, text: &str) {
    let mut published = locked(&PUBLISHED);
    let of = published.entry((name.to_owned(), token)).or_default();
    of.push(text.to_owned());
}

/// A leader is shown with what it has published itself, and nobody else.
pub fn shown(name: &str, leader: Option<&Leader>) {
    let Some((leader, text)) = leader.and_then(|it| Some((it, it.value.as_ref()?))) else {
        return;
    };
    let published = locked(&PUBLISHED);
    let its = published.get(&(name.to_owned(), leader.token));
    let is_its = its.is_some_and(|its| its.contains(text));
    drop(published);
    if !is_its && plan().is_safe() {
        let token = leader.token;
        violation(format!(
            "{name}: {token} is shown with {text}, which another has published"
        ));
    }
}

/// A call that comes to a barrier.
#[derive(Clone)]
struct Coming {
    id: u64,
    process: Process,
    began: Duration,
    ended: Option<(Duration, Came)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Leader,
    Follower,
    TooEarly,
    /// An error, or its process died: it may have met others.
    Unknown,
}

static BARRIERS: Mutex<BTreeMap<String, Vec<Coming>>> = Mutex::new(BTreeMap::new());

pub fn coming(name: &str) -> u64 {
    let id = number();
    let coming = Coming {
        id,
        process: current(),
        began: true_now(),
        ended: None,
    };
    let mut barriers = locked(&BARRIERS);
    barriers.entry(name.to_owned()).or_default().push(coming);
    id
}

/// Who passes has met others, of which one leads.
pub fn came(name: &str, n: usize, id: u64, how: Came) {
    let now = true_now();
    let all = {
        let mut barriers = locked(&BARRIERS);
        let all = barriers.entry(name.to_owned()).or_default();
        let own = all.iter_mut().find(|one| one.id == id).expect("it came");
        own.ended = Some((now, how));
        all.clone()
    };
    let own = all.iter().find(|one| one.id == id).expect("it came");
    let others = || all.iter().filter(|one| one.id != id);
    let may_count = |one: &&Coming| match one.ended {
        None => true,
        Some((_, Came::TooEarly)) => false,
        // Its lease may last for a ttl, which begins anew when another leads the servers.
        Some((at, Came::Unknown)) => {
            plan().has(Trouble::KillHost)
                || plan().has(Trouble::PauseHost)
                || plan().has(Trouble::CutHost)
                || plan().has(Trouble::Own)
                || own.began <= at + plan().ttl + SOON
        }
        Some((at, _)) => own.began <= at,
    };
    let here = others().filter(may_count).count() + 1;
    let passes = matches!(how, Came::Leader | Came::Follower);
    if passes && here < n && plan().is_safe() {
        violation(format!("{name}: a {how:?} has met {} of {n}", here));
    }
    // All that wait for long enough would have met.
    let is_old = |one: &Coming| one.began + SOON < now;
    let waiting = others()
        .filter(|one| one.ended.is_none() && is_old(one))
        .count();
    if how == Came::TooEarly && is_old(own) && waiting + 1 >= n && plan().is_calm() {
        violation(format!(
            "{name}: {} of {n} were there, and didn't meet",
            waiting + 1
        ));
    }
    judge_leaders(name, n, &all);
}

/// Each meeting has one leader. What isn't over yet may be either. One that met, and was then stopped for longer than
/// its ttl, may come to the next.
fn judge_leaders(name: &str, n: usize, all: &[Coming]) {
    let count = |of: &dyn Fn(Option<Came>) -> bool| {
        let ways = all.iter().map(|one| one.ended.map(|(_, how)| how));
        ways.filter(|how| of(*how)).count()
    };
    let leaders = count(&|how| how == Some(Came::Leader));
    let followers = count(&|how| how == Some(Came::Follower));
    let unknown = count(&|how| matches!(how, None | Some(Came::Unknown)));
    let is_wrong =
        followers > (leaders + unknown) * (n - 1) || leaders * (n - 1) > followers + unknown;
    if is_wrong && plan().is_calm() {
        violation(format!(
            "{name}: {leaders} led {followers}, and {unknown} are unknown"
        ));
    }
}

pub(super) fn died(process: Process) {
    let now = true_now();
    for all in locked(&BARRIERS).values_mut() {
        for one in all.iter_mut().filter(|one| one.process == process) {
            one.ended.get_or_insert((now, Came::Unknown));
        }
    }
}

pub(super) fn forget() {
    locked(&ONCES).clear();
    locked(&LATCHES).clear();
    locked(&PUBLISHED).clear();
    locked(&BARRIERS).clear();
}
