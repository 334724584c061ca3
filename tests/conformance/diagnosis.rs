//! Looking at the place where locks live.

use std::collections::BTreeSet;

use crosslock::Verdict;

use crate::Place;
use crate::place::PASSWORD;

pub(crate) fn each_finding_has_a_check_of_its_own_and_words(place: &Place) {
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
}

pub(crate) fn looking_at_the_place_leaves_its_locks_alone(place: &Place) {
    let guard = place.lock("a").unwrap();
    place.diagnose().unwrap();
    guard.verify().unwrap();
    assert!(place.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
    assert!(place.try_lock("a").unwrap().is_some());
}
