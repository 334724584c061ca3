use super::*;
use crate::engine::etcd::client::Failure;

fn shown(named: &[(&str, bool)], is_last: bool) -> (Vec<String>, Option<String>) {
    let named = named
        .iter()
        .map(|(name, in_line)| (name.to_string(), *in_line));
    let page = page(named.collect(), is_last);
    (page.names, page.next.and_then(|next| next.after))
}

#[test]
fn name_at_the_end_of_a_page_is_on_the_next() {
    let keys = [("a", true), ("b", false), ("b", true), ("c", true)];
    let strings = |names: &[&str]| names.iter().map(|one| one.to_string()).collect::<Vec<_>>();
    assert_eq!(shown(&keys, true), (strings(&["a", "b", "c"]), None));
    assert_eq!(
        shown(&keys, false),
        (strings(&["a", "b"]), Some("b".into()))
    );
    let one = [("c", true), ("c", true)];
    assert_eq!(shown(&one, false), (strings(&["c"]), Some("c".into())));
    assert_eq!(shown(&[], true), (strings(&[]), None));
}

fn status(version: &str, leader: Option<u64>) -> Status {
    member(1, version, leader)
}

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
fn versions_are_weak_of_what_is_known() {
    for (text, verdict) in [
        ("3.4.23", "weak"),
        ("3.4.38", "weak"),
        ("3.4.42", "fine"),
        ("3.5.22", "weak"),
        ("3.5.27", "weak"),
        ("3.5.28", "fine"),
        ("3.6.0", "weak"),
        ("3.6.0-rc.1", "weak"),
        ("3.6.8", "weak"),
        ("3.6.9", "fine"),
        ("4.0.0", "fine"),
        ("3.3.27", "weak"),
        ("", "weak"),
    ] {
        let finding = version(&[status(text, Some(1))]);
        assert_eq!(finding.verdict.to_string(), verdict, "{text}");
    }
    assert_eq!(version(&[]).verdict.to_string(), "unknown");
}

#[test]
fn worst_that_is_known_of_a_version_is_told() {
    for (text, words) in [
        ("3.5.0", "other data"),
        ("3.5.2", "other data"),
        ("3.5.3", "its successor"),
        ("3.4.30", "its successor"),
        ("3.5.13", "kept alive"),
        ("3.6.0", "kept alive"),
        ("3.6.4", "kept alive"),
        ("3.6.5", "from the past"),
        ("3.5.27", "from the past"),
        ("3.4.41", "from the past"),
    ] {
        // The oldest member counts.
        let members = [status("3.6.9", Some(1)), status(text, Some(1))];
        let said = format!("{:?}", version(&members));
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn versions_without_exclusion_are_warned_of() {
    for (version, is_warned_of) in [
        ("3.4.23", true),
        ("3.4.30", true),
        ("3.4.31", false),
        ("3.5.2", true),
        ("3.5.12", true),
        ("3.5.13", false),
        ("3.6.0", false),
    ] {
        let warning = breaks_exclusion(version);
        assert_eq!(warning.is_some(), is_warned_of, "{version}");
    }
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
