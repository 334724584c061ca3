//! What the servers are like.

use std::{fmt, sync::Arc};

use super::client::{Failure, Word};
use super::locks::Locks;
use crate::base::{Deadline, Finding, Options, diagnosis::Defect};
use crate::engine::line;

pub(super) fn diagnose(
    locks: &Arc<Locks>,
    options: &Options,
    deadline: &Deadline,
) -> Result<Vec<Finding>, Failure> {
    // What can't be reached at all is an error, and no finding.
    let proof = proof(locks, deadline)?;
    let members = locks.session(deadline)?.words(WORD, deadline);
    let members: Vec<_> = members.into_iter().map(Member::of).collect();
    Ok(vec![
        version(&members),
        hosts(&members),
        session(locks, options),
        proof,
        log(),
    ])
}

/// It is allowed as servers come, and needs no login.
const WORD: &str = "srvr";

/// A host of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    host: String,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Why it doesn't answer.
    Down(String),
    /// It answers, and serves nobody.
    Idle,
    /// It answers, and tells nothing: the word isn't allowed.
    Silent,
    Serves {
        version: String,
        /// `leader`, `follower`, `observer`, or `standalone`.
        mode: String,
    },
}

impl Member {
    fn of((host, answer): Word) -> Self {
        let state = match answer {
            Err(why) => State::Down(why),
            Ok(text) => State::of(&text),
        };
        Member { host, state }
    }

    fn version(&self) -> Option<&str> {
        match &self.state {
            State::Serves { version, .. } => Some(version),
            _ => None,
        }
    }

    fn is_alone(&self) -> bool {
        matches!(&self.state, State::Serves { mode, .. } if mode == "standalone")
    }
}

impl State {
    fn of(text: &str) -> Self {
        let value = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key));
            value.map(|value| value.trim().to_owned())
        };
        if let (Some(version), Some(mode)) = (value("Zookeeper version:"), value("Mode:")) {
            let version = version.split(['-', ',']).next().unwrap_or_default();
            let version = version.to_owned();
            return State::Serves { version, mode };
        }
        match text.contains("not currently serving") {
            true => State::Idle,
            false => State::Silent,
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.state {
            State::Down(why) => write!(f, "{host} doesn't answer ({why})"),
            State::Idle => write!(f, "{host} serves no requests: it has no leader"),
            State::Silent => write!(f, "{host} answers"),
            State::Serves { mode, .. } => write!(f, "{host} is {mode}"),
        }
    }
}

/// The worst first.
const DEFECTS: [Defect; 2] = [
    // ZOOKEEPER-3642
    Defect {
        mended: &[[3, 5, 10], [3, 6, 3]],
        since: [0, 0, 0],
        what: "a member may lose everything that it got from a leader that died; with other members it may lose locks \
               that are held",
        better: "3.9.4 or later",
    },
    // ZOOKEEPER-4541, 4712, 4785, 4925
    Defect {
        mended: &[[3, 9, 4]],
        since: [0, 0, 0],
        what: "a member that joins a new leader may lose transactions or keep nodes that the others have deleted: \
               locks may be lost or stay taken",
        better: "3.9.4 or later",
    },
];

fn version(members: &[Member]) -> Finding {
    let versions: Vec<_> = members.iter().filter_map(Member::version).collect();
    if versions.is_empty() {
        let why = format!("no host reports its version: the command {WORD} isn't allowed");
        let advice = format!("set `4lw.commands.whitelist={WORD}`, or read a server's log");
        return Finding::unknown("version", why, advice);
    }
    // One that is alone joins nobody.
    let is_alone = members.iter().any(Member::is_alone);
    let defects = if is_alone { &[] } else { &DEFECTS[..] };
    Finding::version("ZooKeeper", versions, defects)
}

fn hosts(members: &[Member]) -> Finding {
    let all: Vec<_> = members.iter().map(Member::to_string).collect();
    let is_well = |member: &Member| matches!(member.state, State::Serves { .. } | State::Silent);
    let are_well = members.iter().all(is_well);
    let is_alone = members.iter().any(Member::is_alone);
    let look =
        "start the hosts that are down, or remove them from the URL if they are no longer members";
    line::members(all.join("; "), are_well, is_alone, look)
}

/// What clients aren't told.
fn log() -> Finding {
    let why = "servers don't report whether they write their log to disk before they answer";
    let advice = "check that no server has `forceSync=no`: a power failure of a majority would free locks and issue \
                  their tokens again";
    Finding::unknown("log", why, advice)
}

fn session(locks: &Locks, options: &Options) -> Finding {
    let (ttl, tick) = (options.ttl, locks.tick());
    let found = format!("{ttl:?}, like the ttl; the servers' tick is {tick:?}");
    if ttl >= 6 * tick {
        return Finding::fine("session timeout", found);
    }
    let consequence =
        "a renewal proves the state of two ticks ago, so leases last for little more than that";
    let advice = "use a ttl of at least six ticks, or a smaller tickTime on the servers";
    Finding::weak("session timeout", found, consequence, advice)
}

/// How old the proof is that the session lives.
fn proof(locks: &Arc<Locks>, deadline: &Deadline) -> Result<Finding, Failure> {
    let since = locks.session(deadline)?.prove(deadline)?;
    let lag = locks.clock.now().since(since);
    let found = format!("the last proof that the leader had the session is {lag:?} old");
    if lag <= locks.ttl() / 2 {
        return Ok(Finding::fine("proof", found));
    }
    let consequence = "leases last for less than half the ttl";
    let advice = "use a longer ttl, or a smaller tickTime on the servers";
    Ok(Finding::weak("proof", found, consequence, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnosis::Verdict;

    fn member(text: &str) -> Member {
        Member::of(("h:2181".to_owned(), Ok(text.to_owned())))
    }

    fn serves(version: &str, mode: &str) -> Member {
        member(&format!(
            "Zookeeper version: {version}-abc, built on 2024-12-29 17:54 UTC\nMode: {mode}\nNode count: 5\n"
        ))
    }

    fn is_fine(finding: &Finding) -> bool {
        finding.verdict == Verdict::Fine
    }

    #[test]
    fn versions_with_known_losses_are_weak() {
        for (found, fine, text) in [
            ("3.5.9", false, "everything that it got"),
            ("3.5.10", false, "joins a new leader"),
            ("3.6.2", false, "everything that it got"),
            ("3.6.3", false, "joins a new leader"),
            ("3.8.6", false, "joins a new leader"),
            ("3.9.3", false, "joins a new leader"),
            ("3.9.4", true, ""),
            ("3.10.0", true, ""),
        ] {
            let finding = version(&[serves(found, "follower"), serves(found, "leader")]);
            assert_eq!(is_fine(&finding), fine, "{finding:?}");
            assert!(format!("{finding:?}").contains(text), "{finding:?}");
            assert!(
                is_fine(&version(&[serves(found, "standalone")])),
                "it joins nobody"
            );
        }
    }

    #[test]
    fn host_that_is_down_is_named() {
        let refused = Err("connection refused".to_owned());
        let down = Member::of(("b:2181".to_owned(), refused));
        let idle = member("This ZooKeeper instance is not currently serving requests\n");
        let finding = hosts(&[serves("3.9.4", "leader"), down, idle]);
        assert!(!is_fine(&finding));
        let expected = "h:2181 is leader; b:2181 doesn't answer (connection refused); \
                        h:2181 serves no requests: it has no leader";
        assert_eq!(finding.found, expected);
    }
}
