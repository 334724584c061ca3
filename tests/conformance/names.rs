//! What a lock may be called.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, Result};

use crate::Place;

type Call<'a> = dyn Fn(&str) -> Result<Option<LockGuard>> + 'a;

/// Names that an engine could mangle, mix up, or take for something else.
const ODD: &[&str] = &[
    "a",
    "A",
    "a ",
    " a",
    "a\n",
    "a\0",
    "a\0b",
    "a\r\nb",
    "a\tb",
    "\0",
    "\n",
    " ",
    "  ",
    "a b",
    "a  b",
    "a+b",
    "a/b",
    "a//b",
    "/a/b",
    "a/b/",
    "/",
    "//",
    "\\",
    "a\\b",
    ".",
    "..",
    "...",
    "../a",
    "../../etc/passwd",
    "a/../b",
    "~",
    "~root",
    "a~",
    "a~b",
    "%",
    "%%",
    "%2f",
    "%2F",
    "a%2fb",
    "a%2Fb",
    "%00",
    "a%",
    "{",
    "}",
    "{}",
    "{a}",
    "{a}b",
    "a}b{",
    "a}",
    "{{a}}",
    ":",
    "::",
    "a:b",
    "a::b",
    "a:fence",
    "{a}:fence",
    "a}:fence",
    "crosslock:a",
    "\"",
    "'",
    "\"a\"",
    "'a'",
    "`a`",
    "$a",
    "${a}",
    "$(a)",
    "*",
    "?",
    "[a]",
    "a*",
    "a.lock",
    ".lock",
    "a.LOCK",
    "a;b",
    "a|b",
    "a&b",
    "<a>",
    "#",
    "@",
    "=",
    ",",
    "-",
    "--",
    "-a",
    "_",
    "\u{7f}",
    "\u{1b}[0m",
    "é",
    "e\u{301}",
    "É",
    "ß",
    "ss",
    "SS",
    "ı",
    "i",
    "İ",
    "I",
    "名前",
    "имя",
    "שם",
    "🔒",
    "🔒🔒",
    "👩\u{200d}🔬",
    "\u{feff}a",
    "\u{200b}a",
    "a\u{202e}b",
    "\u{10ffff}",
    "con",
    "nul",
    "aux.txt",
    "-1",
    "0",
    "00",
    "null",
    "nil",
    "EVAL",
    "return 1",
    "a\r\n*1\r\n$4\r\nPING\r\n",
];

/// These, and some that are long.
fn odd_names() -> Vec<String> {
    let mut names: Vec<_> = ODD.iter().copied().map(String::from).collect();
    // About the length at which a file system's or an encoding's limits begin.
    for length in [199, 200, 201, 250, 255, 256, 400, 511, 512] {
        names.push("x".repeat(length));
        names.push("X".repeat(length));
        names.push("/".repeat(length));
        names.push("é".repeat(length / 2));
        names.push("🔒".repeat(length / 4));
    }
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

pub(crate) fn odd_names_are_all_different_locks(place: &Place) {
    let names = odd_names();
    let other = place.builder().build().unwrap();
    let guards: Vec<LockGuard> = names
        .iter()
        .map(|name| {
            let guard = place.try_lock(name).unwrap();
            guard.unwrap_or_else(|| panic!("{name:?} is taken by another name"))
        })
        .collect();
    for (name, guard) in names.iter().zip(&guards) {
        assert_eq!(guard.name(), name);
        guard.verify().unwrap_or_else(|e| panic!("{name:?}: {e}"));
        assert!(other.try_lock(name).unwrap().is_none(), "{name:?} is free");
    }
    for guard in guards {
        guard.unlock().unwrap();
    }
    for name in &names {
        let guard = place.try_lock(name).unwrap();
        let guard = guard.unwrap_or_else(|| panic!("{name:?} is still taken"));
        assert!(!guard.was_abandoned(), "{name:?}");
    }
}

pub(crate) fn longest_name_is_accepted(place: &Place) {
    let other = place.builder().build().unwrap();
    for name in ["n".repeat(512), "é".repeat(256), "\0".repeat(512)] {
        let guard = place.lock(&name).unwrap();
        assert_eq!(guard.name(), name);
        assert!(other.try_lock(&name).unwrap().is_none());
        guard.unlock().unwrap();
    }
}

pub(crate) fn names_out_of_bounds_are_rejected_by_every_call(lock: &Locker) {
    let soon = Instant::now() + Duration::from_millis(1);
    let calls: [&Call<'_>; 4] = [
        &|name| lock.lock(name).map(Some),
        &|name| lock.try_lock(name),
        &|name| lock.try_lock_for(name, Duration::from_millis(1)),
        &|name| lock.try_lock_until(name, soon),
    ];
    for name in [String::new(), "n".repeat(513), "é".repeat(257)] {
        for call in calls {
            match call(&name) {
                Err(Error::InvalidName { reason, .. }) => {
                    let length = name.len().to_string();
                    assert!(reason.contains(&length), "{reason}");
                }
                other => panic!("{name:?}: {other:?}"),
            }
        }
    }
}

pub(crate) fn bad_namespaces_are_rejected(lock: &Locker) {
    for bad in [" ", "a b", "a:b", "{a}", "a/b", "ä", "a\0", &"n".repeat(65)] {
        match lock.with_namespace(bad) {
            Err(Error::InvalidOption { option, .. }) => assert_eq!(option, "namespace"),
            other => panic!("{bad:?}: {other:?}"),
        }
    }
    for good in ["A-z_0.9", &"n".repeat(64)] {
        let lock = lock.with_namespace(good).unwrap();
        lock.lock("a").unwrap().unlock().unwrap();
    }
}
