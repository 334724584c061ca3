//! Values that are counters: each store adds one, so the value says how many were carried out.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crosslock::Error;
use crosslock_world::{true_now, violation};

use super::{locked, number, plan};

#[derive(Default)]
struct Value {
    /// What it is at least.
    certain: i64,
    /// Stores that have begun, with the reading that decided whether they were carried out.
    begun: BTreeMap<u64, Option<usize>>,
    readings: Vec<Reading>,
    /// When it was certain to be so large.
    reached: Vec<(Duration, i64)>,
    stores: usize,
}

/// Who had the lock found what had become of all stores before.
struct Reading {
    carried_out: i64,
    of: i64,
}

/// For so long the answer may be on its way that gives a lock and its value. A server that loses locks may have given
/// both to another meanwhile.
const ON_ITS_WAY: Duration = Duration::from_millis(10);

static VALUES: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());

fn with<T>(name: &str, work: impl FnOnce(&mut Value) -> T) -> T {
    work(locked(&VALUES).entry(name.to_owned()).or_default())
}

pub(super) fn forget() {
    locked(&VALUES).clear();
}

fn judge(wrong: Option<String>) {
    if let Some(text) = wrong
        && plan().keeps_values()
    {
        violation(text);
    }
}

/// Who has the lock, for certain, has read it.
pub fn read(name: &str, found: i64) {
    let wrong = with(name, |value| {
        let open = value.begun.values().filter(|decided| decided.is_none());
        let (certain, open) = (value.certain, open.count() as i64);
        let mut larger = value.reached.iter().filter(|(_, it)| *it > found);
        let is_late = |(at, _): &(Duration, i64)| true_now() < *at + ON_ITS_WAY;
        if !plan().is_safe() && larger.next().is_some_and(is_late) {
            return None;
        }
        if !(certain..=certain + open).contains(&found) {
            return Some(format!(
                "{name} is {found}, but {certain} stores are certain and {open} unclear"
            ));
        }
        let reading = value.readings.len();
        value.readings.push(Reading {
            carried_out: found - certain,
            of: open,
        });
        value.grow(found);
        let all = value.begun.values_mut();
        all.for_each(|decided| *decided = decided.or(Some(reading)));
        None
    });
    judge(wrong);
}

/// A store begins: until it has ended it may have been carried out or not.
pub fn storing(name: &str) -> u64 {
    let id = number();
    with(name, |value| {
        value.stores += 1;
        value.begun.insert(id, None)
    });
    id
}

/// What is known of it now.
pub fn stored<T>(name: &str, id: u64, result: &Result<T, Error>) {
    let was_stored = match result {
        Ok(_) => true,
        Err(Error::Lost { .. }) => false,
        Err(_) => return,
    };
    let wrong = with(name, |value| match value.begun.remove(&id)? {
        None => {
            let certain = value.certain + i64::from(was_stored);
            value.grow(certain);
            None
        }
        Some(reading) => {
            let reading = &mut value.readings[reading];
            reading.of -= 1;
            reading.carried_out -= i64::from(was_stored);
            let is_wrong = !(0..=reading.of).contains(&reading.carried_out);
            is_wrong.then(|| {
                let told = if was_stored { "stored" } else { "lost" };
                format!("{name}: a change was told to be {told}, and it isn't so")
            })
        }
    });
    judge(wrong);
}

impl Value {
    fn grow(&mut self, to: i64) {
        if to > self.certain {
            self.certain = to;
            self.reached.push((true_now(), to));
        }
    }
}

/// Somebody looks at it without the lock.
pub fn peeking(name: &str) -> i64 {
    with(name, |value| value.certain)
}

/// That is what was seen, where it was so large when the look began.
pub fn peeked(name: &str, before: i64, found: i64) {
    let wrong = with(name, |value| {
        let open = value.begun.values().filter(|decided| decided.is_none());
        let most = value.certain + open.count() as i64;
        let is_wrong = !(before..=most).contains(&found);
        is_wrong.then(|| format!("{name} looks like {found}, and is {before} to {most}"))
    });
    judge(wrong);
}

/// Since when it is certainly so large.
pub fn reached(name: &str, least: i64) -> Option<Duration> {
    with(name, |value| {
        let mut reached = value.reached.iter();
        reached.find(|(_, it)| *it >= least).map(|(at, _)| *at)
    })
}

/// How many stores were begun so far.
pub fn stores(name: &str) -> usize {
    with(name, |value| value.stores)
}
