//! Values that are set and removed: who waits for a removal is told of it soon.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crosslock_world::{true_now, violation};

use super::{locked, meetings::SOON, plan};

#[derive(Clone, Copy, Default)]
struct Removal {
    /// How many sets have begun, and how many of them haven't ended.
    sets: usize,
    setting: usize,
    /// Since when it is certainly not there.
    gone_since: Option<Duration>,
}

static REMOVALS: Mutex<BTreeMap<String, Removal>> = Mutex::new(BTreeMap::new());

fn with<T>(name: &str, work: impl FnOnce(&mut Removal) -> T) -> T {
    work(locked(&REMOVALS).entry(name.to_owned()).or_default())
}

/// From now on it may be there.
pub fn setting(name: &str) {
    with(name, |one| {
        one.gone_since = None;
        one.sets += 1;
        one.setting += 1;
    });
}

/// Unless a removal is behind it.
pub fn set(name: &str) {
    with(name, |one| one.setting -= 1);
}

/// It is to be removed. What is given is for `removed`.
pub fn removing(name: &str) -> Option<usize> {
    with(name, |one| (one.setting == 0).then_some(one.sets))
}

/// It was.
pub fn removed(name: &str, sets: Option<usize>) {
    with(name, |one| {
        if sets == Some(one.sets) {
            one.gone_since.get_or_insert(true_now());
        }
    });
}

/// Who waited since then for a removal has the lock again. All of them get it, one after the other.
pub fn waited(name: &str, began: Duration) {
    let since = with(name, |one| one.gone_since);
    let late = since.map(|since| true_now().saturating_sub(since.max(began)));
    if late.is_some_and(|late| late > 2 * SOON) && plan().is_calm() {
        violation(format!("{name} was removed for {late:?} when a wait ended"));
    }
}

pub(super) fn forget() {
    locked(&REMOVALS).clear();
}
