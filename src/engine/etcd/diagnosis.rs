//! What the servers are like, and which promise doesn't hold there.

use std::collections::BTreeSet;
use std::time::Duration;

use super::client::{MemberStatus, Status};
use super::store::EtcdStore;
use crate::base::clock::Deadline;
use crate::base::defects::{self, Defect};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::name::Namespace;
use crate::base::options::Options;

/// The worst first.
const DEFECTS: [Defect; 4] = [
    Defect {
        mended: &[[3, 5, 3]],
        since: [3, 5, 0],
        what: "a member that is killed under load may come back with other data than the others: two may have one lock",
        better: "3.5.28, 3.6.9 or later",
    },
    Defect {
        mended: &[[3, 4, 31], [3, 5, 13]],
        since: [0, 0, 0],
        what: "a leader that was stopped for longer than a ttl, was replaced, and goes on may end leases that its successor has renewed: \
               two may have one lock",
        better: "3.4.42, 3.5.28 or later",
    },
    Defect {
        mended: &[[3, 4, 38], [3, 5, 23], [3, 6, 5]],
        since: [0, 0, 0],
        what: "it may say of a lease that it was kept alive although its keys are being deleted; locks look at their keys as well, and \
               other programs may not",
        better: "3.4.42, 3.5.28, 3.6.9 or later",
    },
    Defect {
        mended: &[[3, 4, 42], [3, 5, 28], [3, 6, 9]],
        since: [0, 0, 0],
        what: "a member may answer a read from the past, also one that has to be of the present: a renewal or `verify` may not see yet that a lock was lost",
        better: "3.4.42, 3.5.28, 3.6.9 or later",
    },
];

/// What is wrong with a version where two may have one lock, and which is better.
pub(super) fn breaks_exclusion(version: &str) -> Option<String> {
    let defect = DEFECTS[..2].iter().find(|defect| defect.is_in(version))?;
    Some(format!("{}: use {}", defect.what, defect.better))
}

/// All findings.
pub(super) fn diagnose(
    store: &EtcdStore,
    namespace: &Namespace,
    options: &Options,
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    // What can't be reached at all is an error, and no finding.
    store.ping(namespace, deadline)?;
    let statuses = store.client.status(deadline);
    let mut findings = vec![version(&statuses), members(&statuses)];
    findings.extend(errors(&statuses));
    findings.push(ttl(options));
    Ok(findings)
}

fn found(statuses: &[Status]) -> impl Iterator<Item = &MemberStatus> {
    statuses.iter().filter_map(|one| one.found.as_ref().ok())
}

fn version(statuses: &[Status]) -> Finding {
    let versions: Vec<_> = found(statuses).map(|one| one.version.as_str()).collect();
    if versions.is_empty() {
        let advice = "allow this user to ask for the status, or ask `etcdctl endpoint status`";
        return Finding::unknown("version", "no host tells its version", advice);
    }
    defects::version("etcd", versions, &DEFECTS)
}

fn members(statuses: &[Status]) -> Finding {
    let silent: Vec<_> = statuses
        .iter()
        .filter_map(|one| Some((&one.host, one.found.as_ref().err()?)))
        .map(|(host, why)| format!("{host}: {why}"))
        .collect();
    let members: BTreeSet<_> = found(statuses).map(|one| one.member).collect();
    let without_leader = found(statuses).filter(|one| one.leader.is_none()).count();
    let learners = found(statuses).filter(|one| one.is_learner).count();
    let term = found(statuses).map(|one| one.term).max();
    let text = format!(
        "{} of {} hosts answer, for {} members, in term {}",
        found(statuses).count(),
        statuses.len(),
        members.len(),
        term.unwrap_or_default()
    );
    let is_alone = members.len() == 1;
    let look = "look at `etcdctl endpoint status --cluster`";
    if silent.is_empty() && without_leader + learners == 0 {
        return defects::members(text, true, is_alone, look);
    }
    let silent = silent.join("; ");
    let text = format!("{text}; {without_leader} know no leader, {learners} only learn; {silent}");
    defects::members(text, false, is_alone, look)
}

/// Such as that a database is full.
fn errors(statuses: &[Status]) -> Option<Finding> {
    let errors: Vec<_> = found(statuses)
        .flat_map(|one| one.errors.iter().map(String::as_str))
        .collect();
    let size = found(statuses).map(|one| one.size).max()?;
    let revision = found(statuses).map(|one| one.revision).max()?;
    let text = format!(
        "at revision {revision}, the largest has {} MB",
        size.div_ceil(1 << 20)
    );
    if errors.is_empty() {
        return Some(Finding::fine("database", text));
    }
    Some(Finding::weak(
        "database",
        format!("{text}; the servers say: {}", errors.join("; ")),
        "servers with an alarm take no writes: nothing can be locked",
        "`etcdctl alarm list`; compact and defragment, or raise the quota, and then `etcdctl alarm disarm`",
    ))
}

fn ttl(options: &Options) -> Finding {
    const CHECK: &str = "ttl";
    const LEAST: Duration = Duration::from_secs(5);
    let text = format!("{:?}", options.ttl);
    if LEAST <= options.ttl {
        return Finding::fine(CHECK, text);
    }
    Finding::weak(
        CHECK,
        text,
        "choosing another leader can take longer: locks are then lost although their holders live",
        "5 s or more",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::etcd::client::Failure;

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
}
