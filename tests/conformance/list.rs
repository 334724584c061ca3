//! The list of names in use.

use std::time::Duration;

use crosslock::{Locker, Result};

use crate::Place;

/// Sorted: they come in no order.
#[track_caller]
pub(crate) fn listed(lock: &Locker, prefix: &str) -> Vec<String> {
    let names: Result<Vec<_>> = lock.list(prefix).unwrap().collect();
    let mut names = names.unwrap();
    names.sort();
    names
}

pub(crate) fn names_in_use_are_listed(place: &Place) {
    assert_eq!(listed(place, ""), [""; 0]);
    let guards = ["b", "a-1", "a-2"].map(|name| place.lock(name).unwrap());
    let other = place.builder().build().unwrap();
    for lock in [place as &Locker, &other] {
        assert_eq!(listed(lock, ""), ["a-1", "a-2", "b"]);
        assert_eq!(listed(lock, "a-"), ["a-1", "a-2"]);
        assert_eq!(listed(lock, "a-2"), ["a-2"]);
        assert_eq!(listed(lock, "a-22"), [""; 0]);
    }
    drop(guards);
    assert_eq!(listed(place, ""), [""; 0]);
}

pub(crate) fn prefix_has_no_special_characters(place: &Place) {
    const ODD: [&str; 12] = [
        "*", "?", "[", "[a-z]", "\\", "{", "}", "{x}", "/", "..", "\n", "Ü%41",
    ];
    let names = ODD
        .iter()
        .flat_map(|odd| [format!("{odd}1"), odd.repeat(2)]);
    let names: Vec<_> = names.chain(["abc".into(), "a*c".into()]).collect();
    let _guards: Vec<_> = names.iter().map(|name| place.lock(name).unwrap()).collect();
    for prefix in ODD.iter().chain(&["a", "a*", "ab", "a?c", ""]) {
        let mut expected: Vec<_> = names.iter().filter(|one| one.starts_with(prefix)).collect();
        expected.sort();
        assert_eq!(listed(place, prefix).iter().collect::<Vec<_>>(), expected);
    }
}

pub(crate) fn namespaces_are_listed_apart(place: &Place) {
    let [own, longer] = ["list", "list-more"].map(|one| place.with_namespace(one).unwrap());
    let _guards = [own.lock("a").unwrap(), longer.lock("b").unwrap()];
    assert_eq!(listed(&own, ""), ["a"]);
    assert_eq!(listed(&longer, ""), ["b"]);
    assert_eq!(listed(place, ""), [""; 0]);
}

pub(crate) fn each_of_many_names_is_listed_once(place: &Place) {
    let mut names: Vec<_> = (0..300).map(|number| format!("many-{number}")).collect();
    let _guards: Vec<_> = names.iter().map(|name| place.lock(name).unwrap()).collect();
    names.sort();
    assert_eq!(listed(place, "many-"), names);
}

pub(crate) fn kept_lock_is_listed(place: &Place) {
    let guard = place.lock("a").unwrap();
    guard.at_least_for(Duration::from_secs(60));
    guard.unlock().unwrap();
    assert_eq!(listed(place, ""), ["a"]);
}

pub(crate) fn several_names_of_one_guard_are_listed(place: &Place) {
    let guard = place.lock_all(&["a", "b", "c"]).unwrap();
    assert_eq!(listed(place, ""), ["a", "b", "c"]);
    guard.unlock().unwrap();
    assert_eq!(listed(place, ""), [""; 0]);
}
