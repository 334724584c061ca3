//! What a value may be, how it comes back, and what becomes of one that can't be written or read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crosslock::{Error, Locker, MutexGuard, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use support::Stopwatch;

use super::mutex::counter;
use super::waiting::release_meanwhile;
use crate::{PATIENCE, Place};

#[track_caller]
fn assert_corrupt<T: std::fmt::Debug>(outcome: Result<T>) {
    match outcome {
        Err(Error::Corrupt { name, key, .. }) => {
            assert_eq!(name, "a");
            assert!(!key.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn value_of_another_type_is_corrupt_and_stays(place: &Place) {
    let text = place.mutex("a", String::from("none")).unwrap();
    *text.lock().unwrap() = "no number".to_owned();
    let number = counter(place);
    let soon = Instant::now() + PATIENCE;
    assert_corrupt(number.lock());
    assert_corrupt(number.try_lock());
    assert_corrupt(number.try_lock_for(PATIENCE));
    assert_corrupt(number.try_lock_until(soon));
    assert_corrupt(number.peek());
    let shared = place.rwlock("a", 7_u64).unwrap();
    assert_corrupt(shared.read());
    assert_corrupt(shared.try_read_for(PATIENCE));
    assert_corrupt(shared.write());
    assert_corrupt(shared.try_write_until(soon));
    assert_corrupt(number.update(|_| panic!("it can't be read")));
    assert_corrupt(number.set(8));
    let guard = text.try_lock().unwrap().expect("nobody holds it");
    assert!(*guard == "no number" && !MutexGuard::lease(&guard).was_abandoned());
    drop(guard);
    // Who waited for it, too: the one before may be a thread of the same locker, or another.
    let other = place.other();
    for holder in [place as &Locker, &other] {
        let guard = holder.mutex("a", String::new()).unwrap().lock().unwrap();
        assert_corrupt(release_meanwhile(guard, || number.lock()));
        assert!(text.try_lock().unwrap().is_some());
    }
}

pub(crate) fn value_that_can_not_be_written_is_not_stored(lock: &Locker) {
    type Map = BTreeMap<(u8, u8), u8>;
    let bad = Map::from([((1, 2), 3)]);
    match lock.mutex("a", bad.clone()) {
        Err(Error::InvalidValue { name, .. }) => assert_eq!(name, "a"),
        other => panic!("{other:?}"),
    }
    let map = lock.mutex("a", Map::new()).unwrap();
    let mut guard = map.lock().unwrap();
    guard.clone_from(&bad);
    let outcome = MutexGuard::unlock(guard);
    assert!(matches!(outcome, Err(Error::InvalidValue { .. })));
    let mut guard = map.try_lock().unwrap().expect("it was released");
    assert!(guard.is_empty() && !MutexGuard::lease(&guard).was_abandoned());
    *guard = bad;
    drop(guard);
    assert!(map.try_lock().unwrap().expect("it was released").is_empty());
    // JSON has no such number: what was written in its place could never be read.
    assert!(lock.mutex("b", f64::NAN).is_err());
    let outcome = lock.mutex("b", 0.5).unwrap().set(f64::INFINITY);
    assert!(matches!(outcome, Err(Error::InvalidValue { .. })));
    // As the docs of `Mutex` say.
    let perhaps = lock.mutex("b", Some(0.5)).unwrap();
    perhaps.set(Some(f64::NAN)).unwrap();
    assert_eq!(perhaps.peek().unwrap(), None);
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Config {
    name: String,
    limits: Vec<Option<f64>>,
    nested: BTreeMap<String, Vec<i64>>,
}

pub(crate) fn values_come_back_as_they_were(lock: &Locker) {
    let config = Config {
        name: "\0\r\n\"🔒\u{2028}\\ שם".to_owned(),
        limits: vec![None, Some(0.1), Some(-1e300), Some(f64::MIN_POSITIVE)],
        nested: BTreeMap::from([(String::new(), vec![i64::MIN, i64::MAX])]),
    };
    let mutex = lock.mutex("config", Config::default()).unwrap();
    mutex.lock().unwrap().clone_from(&config);
    assert_eq!(*mutex.lock().unwrap(), config);
    assert_eq!(mutex.peek().unwrap(), config);
    let extreme = lock.mutex("extreme", 0).unwrap();
    *extreme.lock().unwrap() = u64::MAX;
    assert_eq!(*extreme.lock().unwrap(), u64::MAX);
    let mut random = fastrand::Rng::with_seed(1);
    let numbers = std::iter::repeat_with(|| f64::from_bits(random.u64(..)));
    let numbers: Vec<_> = numbers.filter(|one| one.is_finite()).take(1000).collect();
    let mutex = lock.mutex("numbers", Vec::new()).unwrap();
    mutex.set(numbers.clone()).unwrap();
    assert!(mutex.peek().unwrap() == numbers, "to the last bit");
    // Nothing is a value, too.
    let nothing = lock.mutex("nothing", Some(1u8)).unwrap();
    *nothing.lock().unwrap() = None;
    assert_eq!(nothing.peek().unwrap(), None);
}

pub(crate) fn large_values_come_back(place: &Place) {
    /// What a release may take.
    const RELEASE: Duration = Duration::from_millis(400);
    const PART: &str = "🔒 and text ";
    let large = PART.repeat(place.leases.largest_value / PART.len());
    let mutex = place.mutex("large", String::new()).unwrap();
    let watch = Stopwatch::start();
    if let Err(error) = mutex.set(large.clone()) {
        // It isn't known whether it was stored: a release ends in time, whatever its value.
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        return watch.assert_late(RELEASE / 2, RELEASE, error);
    }
    drop(watch);
    assert!(*mutex.lock().unwrap() == large);
    let guard = mutex.lock().unwrap();
    let read = release_meanwhile(guard, || Ok(mutex.lock()?.len())).unwrap();
    assert_eq!(read, large.len());
}

#[derive(Serialize, Deserialize, Default)]
struct Tries {
    retries: u32,
}

pub(crate) fn field_and_type_of_a_value_that_does_not_fit_are_told_and_its_content_is_not(
    place: &Place,
) {
    let any = place.mutex("a", serde_json::Value::Null).unwrap();
    let config = place.mutex("a", Tries::default()).unwrap();
    for (stored, expected) in [
        (
            json!({ "tries": 1 }),
            "missing field `retries` at line 1 column",
        ),
        (
            json!({ "retries": "hunter2, expected hunter2" }),
            "invalid type: string, expected u32 at line 1 column",
        ),
        (
            json!({ "retries": -1 }),
            "invalid value: integer, expected u32",
        ),
    ] {
        any.set(stored).unwrap();
        let error = config.peek().err().expect("it is no config").to_string();
        assert!(error.contains("::Tries`: "), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

/// Its own functions are called as functions.
pub(crate) fn guard_hides_no_method_of_its_value(lock: &Locker) {
    #[derive(Clone, Serialize, Deserialize)]
    struct Door(u32);
    impl Door {
        fn unlock(&mut self) -> u32 {
            self.0 += 1;
            self.0
        }
        fn lease(&self) -> &'static str {
            "for ten years"
        }
    }
    let door = lock.mutex("a", Door(0)).unwrap();
    let mut guard = door.lock().unwrap();
    assert_eq!((guard.unlock(), guard.lease()), (1, "for ten years"));
    assert_eq!(MutexGuard::lease(&guard).name(), "a");
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(door.peek().unwrap().0, 1);
}
