//! What a server is like, and which promise doesn't hold there.
//!
//! Each module here looks at one side of the server. What the server doesn't show to this user is told as unknown. The
//! answers are those of one moment, and each command stands alone.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;

use ::redis::{Cmd, Value};

use crate::base::clock::Deadline;
use crate::base::diagnosis::{Finding, Verdict};
use crate::base::error::{Error, Result};
use crate::base::name::Namespace;
use crate::base::options::Options;
use crate::engine::redis::commands::Commands;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::ask_all::ask_all;
use crate::engine::redis::settings::Kind;

mod failover;
mod rights;
mod server;
mod storage;

/// All findings, of several servers one for each check: `servers` are those that have locks, and those that don't. One that
/// gives no answer is a finding itself, unless nobody else has locks.
///
/// # Errors
///
/// When no server that has locks answers.
pub(super) fn diagnose(
    (servers, without_locks): (&[Arc<Server>], &[Arc<Server>]),
    commands: &Commands,
    (namespace, options): (&Namespace, &Options),
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    let probe = |server| Probe {
        server,
        commands,
        deadline,
    };
    let mut down = silent(without_locks, deadline);
    let (mut found, mut probes, mut failed) = (Vec::new(), Vec::new(), None);
    for server in servers {
        match of_one(&probe(server), namespace) {
            Ok(findings) => {
                found.push((server.address(), findings));
                probes.push(probe(server));
            }
            Err(e) => {
                down.push(unanswered(server, &e));
                failed.get_or_insert(e);
            }
        }
    }
    if let Some(e) = failed.filter(|_| found.is_empty()) {
        return Err(e);
    }
    let mut findings = weakest(&found);
    let is_cluster = |probe: &Probe<'_>| probe.server.settings().kind == Kind::Cluster;
    if probes.iter().any(is_cluster) {
        findings.extend(failover::cluster(&probes, options)?);
    }
    let all = servers.len() + without_locks.len();
    findings.extend((all > 1).then(|| finding(all, &down)));
    Ok(findings)
}

fn of_one(probe: &Probe<'_>, namespace: &Namespace) -> Result<Vec<Finding>> {
    let facts = Facts::ask(probe)?;
    let mut findings = vec![server::version(probe, &facts)?];
    findings.push(storage::persistence(probe, &facts)?);
    findings.extend(storage::memory(&facts));
    findings.push(failover::replication(probe, &facts)?);
    findings.extend(rights::rights(probe, namespace)?);
    Ok(findings)
}

/// What would show the facts that INFO has.
const ALLOW_INFO: &str = "allow this user INFO (ACL SETUSER: +info)";

/// The fields of INFO; none, if the server doesn't show them.
#[derive(Debug, Default)]
struct Facts(HashMap<String, String>);

impl Facts {
    fn ask(probe: &Probe<'_>) -> Result<Self> {
        let text = probe.text(&::redis::cmd("INFO"))?;
        Ok(Facts::of(&text.unwrap_or_default()))
    }

    fn of(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Facts(pairs.collect())
    }

    fn get(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    fn number(&self, field: &str) -> Option<u64> {
        self.get(field)?.parse().ok()
    }
}

/// Asks the server one thing at a time.
struct Probe<'a> {
    server: &'a Arc<Server>,
    commands: &'a Commands,
    deadline: &'a Deadline,
}

/// What the server made of a question.
enum Asked {
    Answer(Value),
    /// This user may not ask it.
    Denied,
    /// It fails for another reason, such as a command that a managed server doesn't have.
    Failed,
}

impl Probe<'_> {
    /// # Errors
    ///
    /// When there is no answer.
    fn ask(&self, command: &Cmd) -> Result<Asked> {
        match self.server.call(command, Manner::Plain, self.deadline) {
            Ok(answer) => Ok(Asked::Answer(answer.value)),
            Err(unanswered) => self.without_answer(unanswered.error),
        }
    }

    fn without_answer(&self, failure: Failure) -> Result<Asked> {
        match failure {
            Failure::Denied(_) => Ok(Asked::Denied),
            Failure::Conflict(_) | Failure::Other(_) => Ok(Asked::Failed),
            failure => Err(self.commands.error(None, failure)),
        }
    }

    /// A text of the server, if it shows it.
    fn text(&self, command: &Cmd) -> Result<Option<String>> {
        Ok(match self.ask(command)? {
            Asked::Answer(answer) => text(&answer).map(str::to_owned),
            Asked::Denied | Asked::Failed => None,
        })
    }

    /// A setting of the server, if it shows it.
    fn setting(&self, name: &str) -> Result<Option<String>> {
        let mut command = ::redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        Ok(match self.ask(&command)? {
            Asked::Answer(Value::Array(pair)) => pair.get(1).and_then(text).map(str::to_owned),
            _ => None,
        })
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

const SERVERS: &str = "servers";

/// Of each that gives no answer within the connect timeout, where it is, and why. All are asked at once.
fn silent(servers: &[Arc<Server>], deadline: &Deadline) -> Vec<String> {
    let Some(first) = servers.first() else {
        return Vec::new();
    };
    let timeout = first.settings().connect_timeout;
    // An answer that comes at the last moment is that of a server that gave none.
    let until = deadline.within(2 * timeout);
    let answers = ask_all(servers, &until, move |server, deadline| {
        let greeted = server.greet_by(&deadline.within(timeout));
        let failed = greeted.err().map(|failure| failure.cause().to_string());
        Ok(failed.map(|why| placed(server, &why)))
    });
    let mut silent = Vec::new();
    while let Some(answer) = answers.next(&until) {
        silent.extend(answer.ok().flatten());
    }
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

/// Of so many servers those give no answer.
fn finding(all: usize, silent: &[String]) -> Finding {
    if silent.is_empty() {
        return Finding::fine(SERVERS, format!("all {all} answer"));
    }
    Finding::weak(
        SERVERS,
        format!(
            "{} of {all} without an answer: {}",
            silent.len(),
            silent.join("; ")
        ),
        "what a master has that is down can't be locked until it is back or replaced, and each sentinel or replica that is \
         down is one less to replace it",
        "start it and look at its log, or take it out of the URL if it is gone for good",
    )
}

/// Of each check the finding that is weakest, with the address of its server where others differ.
fn weakest(found: &[(String, Vec<Finding>)]) -> Vec<Finding> {
    let each = |(address, findings): &'_ (String, Vec<Finding>)| -> Vec<_> {
        let each = findings.iter();
        each.map(|one| (address.clone(), one.clone())).collect()
    };
    let all: Vec<_> = found.iter().flat_map(each).collect();
    let mut weakest: Vec<Finding> = Vec::new();
    for (_, first) in &all {
        if weakest.iter().any(|one| one.check == first.check) {
            continue;
        }
        let same = || all.iter().filter(|(_, one)| one.check == first.check);
        let Some((address, one)) = same().min_by_key(|(_, one)| strength(&one.verdict)) else {
            continue;
        };
        let is_of_all = same().all(|(_, other)| other.found == one.found);
        let mut one = one.clone();
        if !is_of_all {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(findings: [Finding; 2]) -> Finding {
        let addresses = ["a:1", "b:2"].map(str::to_owned).into_iter();
        let found = addresses.zip(findings.map(|finding| vec![finding]));
        let mut found = weakest(&found.collect::<Vec<_>>());
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn same_of_all_is_told_once() {
        let fine = || Finding::fine("version", "redis 7.0.15");
        assert_eq!(found([fine(), fine()]), fine());
    }

    #[test]
    fn weakest_counts_and_is_named() {
        let fine = Finding::fine("memory", "enough");
        let weak = |found: &str| Finding::weak("memory", found, "keys go", "more of it");
        let unknown = Finding::unknown("memory", "not shown", "allow INFO");
        assert_eq!(found([fine.clone(), weak("little")]), weak("b:2: little"));
        assert_eq!(found([weak("x"), weak("y")]), weak("a:1: x"));
        let shown = found([unknown.clone(), fine]);
        assert_eq!(shown.found, "a:1: not shown");
        assert_eq!(shown.verdict, unknown.verdict);
    }
}
