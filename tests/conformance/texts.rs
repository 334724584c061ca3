//! What is shown to people, and what isn't: by errors, by `Debug`, and of the place where locks live.

use std::collections::BTreeSet;
use std::fmt::Debug;

use crosslock::{Error, Locker, Verdict};

use crate::place::PASSWORD;
use crate::{PATIENCE, Place};
use support::shown;

/// An owner's first part is a uuid, which nothing else here has.
fn has_uuid(text: &str) -> bool {
    text.as_bytes().windows(36).any(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

#[track_caller]
pub(crate) fn assert_discreet(text: &str) {
    assert!(!has_uuid(text), "shows an owner: {text}");
    assert!(!text.contains(PASSWORD), "shows a password: {text}");
}

fn failure<T: Debug>(outcome: crosslock::Result<T>) -> Error {
    outcome.expect_err("this can't work")
}

pub(crate) fn debugged(value: &dyn Debug) -> String {
    format!("{value:?}\n{value:#?}")
}

pub(crate) fn debug_output_hides_owner_and_password(place: &Place) {
    assert!(has_uuid("x67e55044-10b1-426f-9247-bb680e5fe0c8/host"));
    let guard = place.lock("a").unwrap();
    let lock: &Locker = place;
    let shown = [
        debugged(lock),
        debugged(&lock.with_namespace("other").unwrap()),
        debugged(&place.builder()),
        debugged(&guard),
        debugged(guard.lost()),
    ];
    shown.iter().for_each(|text| assert_discreet(text));
    assert!(shown[3].contains('a'), "{}", shown[3]);
}

/// One of each kind that needs no fault.
fn errors(place: &Place) -> Vec<(&'static str, Error)> {
    let hasty = place.builder().attempts(1).build().unwrap();
    let guard = place.careless().lock("lost").unwrap();
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    assert_discreet(&debugged(&lost));
    let _taken = place.lock("busy").unwrap();
    vec![
        ("Busy", failure(hasty.lock("busy"))),
        ("Lost", failure(guard.check())),
        ("Lost", failure(guard.verify())),
        ("Lost", failure(guard.unlock())),
        ("InvalidName", failure(place.lock(""))),
        ("InvalidOption", failure(place.with_namespace("a b"))),
    ]
}

pub(crate) fn errors_name_the_lock_and_hide_owner_and_password(place: &Place) {
    for (kind, error) in errors(place) {
        let (text, story) = (error.to_string(), shown(&error));
        assert!(story.contains(kind), "{kind}: {story}");
        assert_discreet(&story);
        assert!(text.starts_with(char::is_lowercase), "{text}");
        match kind {
            "Busy" => assert!(text.contains("\"busy\""), "{text}"),
            "Lost" => assert!(text.contains("\"lost\""), "{text}"),
            _ => {}
        }
    }
}

pub(crate) fn diagnosis_has_words_for_each_check_and_leaves_locks_alone(place: &Place) {
    let guard = place.lock("a").unwrap();
    let findings = place.diagnose().unwrap();
    assert!(!findings.is_empty());
    let checks: BTreeSet<_> = findings.iter().map(|finding| finding.check).collect();
    assert_eq!(checks.len(), findings.len(), "{findings:?}");
    for finding in &findings {
        assert!(!finding.found.is_empty(), "{finding:?}");
        if let Verdict::Weak {
            consequence,
            advice,
            ..
        } = &finding.verdict
        {
            assert!(!consequence.is_empty() && !advice.is_empty(), "{finding:?}");
        }
    }
    assert!(!format!("{findings:?}").contains(PASSWORD));
    guard.verify().unwrap();
    assert!(place.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
    assert!(place.try_lock("a").unwrap().is_some());
}
