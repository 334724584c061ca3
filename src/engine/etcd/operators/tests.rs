use super::*;
use crate::engine::etcd::client::Failure;

fn member(member: u64, version: &str, leader: Option<u64>) -> Status {
    Status {
        host: "h:2379".to_owned(),
        found: Ok(MemberStatus {
            version: version.to_owned(),
            member,
            leader,
            term: 2,
            revision: 3,
            size: 20_480,
            is_learner: false,
            errors: Vec::new(),
        }),
    }
}

#[test]
fn versions_are_weak_of_what_is_known_and_the_worst_is_told() {
    for (text, verdict, words, breaks_exclusion) in [
        ("3.4.30", "weak", "its successor", true),
        ("3.4.31", "weak", "kept alive", false),
        ("3.4.41", "weak", "old data", false),
        ("3.4.42", "fine", "", false),
        ("3.5.2", "weak", "other data", true),
        ("3.5.12", "weak", "its successor", true),
        ("3.5.13", "weak", "kept alive", false),
        ("3.5.27", "weak", "old data", false),
        ("3.5.28", "fine", "", false),
        ("3.6.0-rc.1", "weak", "kept alive", false),
        ("3.6.4", "weak", "kept alive", false),
        ("3.6.8", "weak", "old data", false),
        ("3.6.9", "fine", "", false),
        ("3.3.27", "weak", "its successor", true),
        ("", "weak", "its successor", true),
    ] {
        // The oldest member counts.
        let members = [member(1, "4.0.0", Some(1)), member(2, text, Some(1))];
        let finding = version(&members);
        assert_eq!(finding.verdict.to_string(), verdict, "{text}");
        assert!(
            format!("{finding:?}").contains(words),
            "{text}: {finding:?}"
        );
        let warning = super::breaks_exclusion(text);
        assert_eq!(warning.is_some(), breaks_exclusion, "{text}");
    }
    assert_eq!(version(&[]).verdict.to_string(), "unknown");
}

#[test]
fn hosts_that_do_not_answer_or_know_no_leader_are_weak() {
    let silent = Status {
        host: "i:2379".to_owned(),
        found: Err(Failure::Unreachable("connection refused".into())),
    };
    let well = |number| member(number, "3.5.23", Some(1));
    for (statuses, verdict) in [
        (vec![well(1), well(2), well(3)], "fine"),
        (vec![well(1)], "weak"),
        (vec![well(1), well(1)], "weak"),
        (vec![well(1), well(2), silent], "weak"),
        (vec![well(1), well(2), member(3, "3.5.23", None)], "weak"),
    ] {
        let finding = members(&statuses);
        assert_eq!(finding.verdict.to_string(), verdict, "{}", finding.found);
    }
}
