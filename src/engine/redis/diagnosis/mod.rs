//! What a server is like, and which promise doesn't hold there.
//!
//! `facts` judges what a server tells of itself, `rights` what this user may do there; what stands here, how the
//! masters of a cluster have its slots, and how long it takes until one is replaced. What the server doesn't show to
//! this user is told as unknown. The answers are those of one moment, and each command stands alone.

use std::{error::Error as _, sync::Arc, time::Duration};

use ::redis::{Cmd, Value};

use crate::base::{Deadline, Error, Finding, Namespace, Options, Result, diagnosis::Verdict};
use crate::engine::redis::servers::view::{NodeLine, node_lines};
use crate::engine::redis::{
    failure::Failure, keys::SLOTS, lock_scripts::LockScripts, reply::text_of, round::Group,
    server::Server,
};

mod facts;
mod rights;

/// All findings, of several servers one for each check: `servers` are those that have locks, and those that don't. One
/// that gives no answer is a finding itself, unless nobody else has locks.
///
/// # Errors
///
/// When no server that has locks answers.
pub(super) fn diagnose(
    (servers, without_locks): (&[Arc<Server>], &[Arc<Server>]),
    scripts: &LockScripts,
    (namespace, options): (&Namespace, &Options),
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    let mut down = silent(without_locks, deadline);
    let (mut found, mut probes, mut failed) = (Vec::new(), Vec::new(), None);
    for server in servers {
        let probe = Probe {
            server,
            scripts,
            deadline,
        };
        match of_one(&probe, namespace) {
            Ok(findings) => {
                found.extend(findings.into_iter().map(|one| (server.address(), one)));
                probes.push(probe);
            }
            Err(e) => {
                down.push(unanswered(server, &e));
                failed.get_or_insert(e);
            }
        }
    }
    if let Some(e) = failed.filter(|_| probes.is_empty()) {
        return Err(e);
    }
    let mut findings = weakest(&found);
    if scripts.is_cluster() {
        findings.extend(cluster(&probes, options)?);
    }
    let all = servers.len() + without_locks.len();
    findings.extend((all > 1).then(|| finding(all, &down)));
    Ok(findings)
}

/// The checks, in the order in which they are told. Some say nothing where there is no limit.
const CHECKS: [fn(&facts::Facts) -> Option<Finding>; 6] = [
    facts::version,
    facts::persistence,
    facts::eviction,
    facts::memory,
    facts::clients,
    facts::replication,
];

fn of_one(probe: &Probe<'_>, namespace: &Namespace) -> Result<Vec<Finding>> {
    let facts = facts::Facts::ask(probe)?;
    let mut findings: Vec<_> = CHECKS.iter().filter_map(|check| check(&facts)).collect();
    findings.extend(rights::rights(probe, namespace)?);
    Ok(findings)
}

/// What would show the facts that INFO has.
const ALLOW_INFO: &str = "allow this user INFO (ACL SETUSER: +info)";

/// Asks the server one thing at a time.
struct Probe<'a> {
    server: &'a Arc<Server>,
    scripts: &'a LockScripts,
    deadline: &'a Deadline,
}

impl Probe<'_> {
    /// What the server says, or why it refuses: this user may not ask that, or the server doesn't have the command.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    fn ask(&self, command: &Cmd) -> Result<Result<Value, Failure>> {
        self.answered(self.server.value(command, self.deadline))
    }

    fn answered(&self, answer: Result<Value, Failure>) -> Result<Result<Value, Failure>> {
        match answer {
            Ok(_) | Err(Failure::Denied(_) | Failure::Conflict(_) | Failure::Other(_)) => {
                Ok(answer)
            }
            Err(failure) => Err(self.scripts.error(None, failure)),
        }
    }

    /// The answer to a command of these words, if the server shows it.
    fn answer(&self, words: &str) -> Result<Option<Value>> {
        Ok(self.ask(&command(words))?.ok())
    }

    /// The same where it is a text.
    fn text(&self, words: &str) -> Result<Option<String>> {
        let answer = self.answer(words)?;
        Ok(answer.as_ref().and_then(text_of).map(str::to_owned))
    }
}

/// A command of words with a blank between two.
fn command(words: &str) -> Cmd {
    let mut command = Cmd::new();
    command.arg(words.split(' ').collect::<Vec<_>>());
    command
}

const SERVERS: &str = "servers";

/// Of each that gives no answer within the connect timeout, where it is, and why. All are asked at once.
fn silent(servers: &[Arc<Server>], deadline: &Deadline) -> Vec<String> {
    let Some(first) = servers.first() else {
        return Vec::new();
    };
    let deadline = deadline.within(first.settings().connect_timeout);
    let group = Group::new(servers.to_vec(), &deadline);
    let ping = ::redis::cmd("PING");
    let mut round = group.ask(&ping);
    let mut missing = servers.to_vec();
    let mut silent = Vec::new();
    while let Some((at, said)) = round.next(&deadline) {
        missing.retain(|one| !Arc::ptr_eq(one, &servers[at]));
        if let Err(failure) = said {
            let why = servers[at].suspecting_tls(failure).cause();
            silent.push(placed(&servers[at], &why.to_string()));
        }
    }
    silent.extend(missing.iter().map(|one| placed(one, "it doesn't answer")));
    silent.sort_unstable();
    silent
}

/// Where a server is, and why it gave no answer.
fn unanswered(server: &Server, error: &Error) -> String {
    let why = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    placed(server, &why)
}

fn placed(server: &Server, why: &str) -> String {
    let address = server.address();
    if why.starts_with(&address) {
        why.to_owned()
    } else {
        format!("{address}: {why}")
    }
}

/// Which of all servers give no answer.
fn finding(all: usize, silent: &[String]) -> Finding {
    if silent.is_empty() {
        return Finding::fine(SERVERS, format!("all {all} answer"));
    }
    Finding::weak(
        SERVERS,
        format!(
            "{} of {all} don't answer: {}",
            silent.len(),
            silent.join("; ")
        ),
        "names on a master that is down can't be locked until it is back or replaced, and fewer sentinels and \
         replicas are left to replace a master",
        "start it and check its log, or remove it from the URL if it is gone for good",
    )
}

/// Of each check the finding that is weakest, with the address of its server where others differ.
fn weakest(found: &[(String, Finding)]) -> Vec<Finding> {
    let mut weakest: Vec<Finding> = Vec::new();
    for (_, first) in found {
        let same = || found.iter().filter(|(_, one)| one.check == first.check);
        let least = same().min_by_key(|(_, one)| strength(&one.verdict));
        let Some((address, one)) =
            least.filter(|_| weakest.iter().all(|one| one.check != first.check))
        else {
            continue;
        };
        let mut one = one.clone();
        if same().any(|(_, other)| other.found != one.found) {
            one.found = format!("{address}: {}", one.found);
        }
        weakest.push(one);
    }
    weakest
}

fn strength(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Weak { .. } => 0,
        Verdict::Unknown { .. } => 1,
        Verdict::Fine => 2,
    }
}

const COVERAGE: &str = "slots";
const FAILOVER: &str = "failover";

/// What an election takes, once a master counts as failed.
const ELECTION: Duration = Duration::from_secs(1);

/// Of the masters of a cluster.
fn cluster(masters: &[Probe<'_>], options: &Options) -> Result<Vec<Finding>> {
    let (mut covered, mut moving, mut longest) = (None, Some(Vec::new()), Some(Duration::ZERO));
    for master in masters {
        let info = master
            .text("CLUSTER INFO")?
            .map(|text| facts::Facts::of(&text));
        covered = covered.max(info.and_then(|info| info.number("cluster_slots_ok")));
        let nodes = master.text("CLUSTER NODES")?;
        moving = moving.zip(nodes).map(|(mut moving, nodes)| {
            moving.extend(on_their_way(&nodes));
            moving
        });
        let timeout = node_timeout(master)?;
        longest = longest.zip(timeout).map(|(one, other)| one.max(other));
    }
    Ok(vec![slots(covered, moving), failover(longest, options)])
}

fn node_timeout(master: &Probe<'_>) -> Result<Option<Duration>> {
    let Some(Value::Array(pair)) = master.answer("CONFIG GET cluster-node-timeout")? else {
        return Ok(None);
    };
    let millis = pair.get(1).and_then(text_of);
    let millis = millis.and_then(|millis| millis.parse().ok());
    Ok(millis.map(Duration::from_millis))
}

/// The slots that come or go at the node that answered CLUSTER NODES.
fn on_their_way(nodes: &str) -> Vec<u16> {
    let own = node_lines(nodes).filter(NodeLine::is_own);
    own.flat_map(|line| line.on_their_way().collect::<Vec<_>>())
        .collect()
}

fn slots(covered: Option<u64>, moving: Option<Vec<u16>>) -> Finding {
    let (Some(covered), Some(mut moving)) = (covered, moving) else {
        let found = "this user isn't allowed to see the state of the cluster";
        let advice = "allow this user CLUSTER INFO and CLUSTER NODES (ACL SETUSER: +cluster|info +cluster|nodes)";
        return Finding::unknown(COVERAGE, found, advice);
    };
    moving.sort_unstable();
    moving.dedup();
    let missing = u64::from(SLOTS).saturating_sub(covered);
    if missing > 0 {
        return Finding::weak(
            COVERAGE,
            format!("{missing} of {SLOTS} slots have no master that answers"),
            "names in these slots can't be locked; with cluster-require-full-coverage, no name can",
            "give them a master with redis-cli --cluster check and --cluster fix",
        );
    }
    if moving.is_empty() {
        return Finding::fine(COVERAGE, format!("each of the {SLOTS} slots has a master"));
    }
    let shown: Vec<_> = moving.iter().take(5).map(u16::to_string).collect();
    let more = if moving.len() > shown.len() {
        ", …"
    } else {
        ""
    };
    Finding::weak(
        COVERAGE,
        format!("{} migrating: {}{more}", moving.len(), shown.join(", ")),
        "while a slot migrates, no lock in it can be taken or released, and migrated locks are lost if a node fails \
         over",
        "finish the migration, if necessary with redis-cli --cluster fix, before you fail a node over",
    )
}

/// A lease has to outlive the time without a master: it was renewed an interval before it, at worst.
fn failover(timeout: Option<Duration>, options: &Options) -> Finding {
    let Some(timeout) = timeout else {
        let found = "this user isn't allowed to see cluster-node-timeout";
        let advice = "allow this user CONFIG GET (ACL SETUSER: +config|get)";
        return Finding::unknown(FAILOVER, found, advice);
    };
    let found = format!(
        "a failed master is replaced after about {:?}",
        timeout + ELECTION
    );
    let (ttl, every) = (options.ttl, options.renew_every());
    if timeout + ELECTION < ttl.saturating_sub(every) {
        return Finding::fine(FAILOVER, found);
    }
    Finding::weak(
        FAILOVER,
        found,
        format!(
            "leases of {ttl:?}, renewed every {every:?}, end before that, so holders lose their locks; a master that \
             is cut off grants locks for {timeout:?}"
        ),
        "use a longer ttl or a smaller cluster-node-timeout",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_without_a_master_and_those_between_two_are_weak() {
        let all = Some(u64::from(SLOTS));
        for (covered, moving, verdict, words) in [
            (all, Some(vec![]), "fine", "each of the 16384 slots"),
            (all, Some(vec![9, 3, 9]), "weak", "2 migrating: 3, 9"),
            (Some(16_000), Some(vec![]), "weak", "384 of 16384"),
            (None, Some(vec![]), "unknown", "isn't allowed to see"),
            (all, None, "unknown", "isn't allowed to see"),
        ] {
            let finding = slots(covered, moving);
            assert_eq!(finding.verdict.to_string(), verdict);
            assert!(finding.found.contains(words), "{finding:?}");
        }
    }

    #[test]
    fn failover_has_to_be_shorter_than_a_lease_that_is_not_renewed() {
        let options = |seconds| Options {
            ttl: Duration::from_secs(seconds),
            ..Options::default()
        };
        let verdict = |timeout, ttl| {
            let timeout = Some(Duration::from_millis(timeout));
            failover(timeout, &options(ttl)).verdict.to_string()
        };
        assert_eq!(verdict(15_000, 30), "fine");
        assert_eq!(verdict(15_000, 20), "weak");
        assert_eq!(verdict(1_000, 6), "fine");
        assert_eq!(failover(None, &options(30)).verdict.to_string(), "unknown");
    }
}
