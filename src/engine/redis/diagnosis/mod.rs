//! What a server is like, and which promise doesn't hold there.
//!
//! Each module here looks at one side of the server. What the server doesn't show to this user is told as unknown. The
//! answers are those of one moment, and each command stands alone.

use std::sync::Arc;

use self::facts::Facts;
use self::probe::Probe;
use super::commands::Commands;
use super::server::Server;
use super::settings::Kind;
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::name::Namespace;
use crate::base::options::Options;

mod cluster;
mod facts;
mod memory;
mod merged;
mod network;
mod persistence;
mod probe;
mod replication;
mod rights;
mod silent;
mod timing;
mod version;

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
    let mut silent = silent::silent(without_locks, deadline);
    let (mut found, mut probes, mut failed) = (Vec::new(), Vec::new(), None);
    for server in servers {
        match of_one(&probe(server), namespace, options) {
            Ok(findings) => {
                found.push((server.address(), findings));
                probes.push(probe(server));
            }
            Err(e) => {
                silent.push(silent::unanswered(server, &e));
                failed.get_or_insert(e);
            }
        }
    }
    if let Some(e) = failed.filter(|_| found.is_empty()) {
        return Err(e);
    }
    let mut findings = merged::merged(found);
    let is_cluster = |probe: &Probe<'_>| probe.server.settings().kind == Kind::Cluster;
    if probes.iter().any(is_cluster) {
        findings.extend(cluster::cluster(&probes, options)?);
    }
    let all = servers.len() + without_locks.len();
    findings.extend((all > 1).then(|| silent::finding(all, &silent)));
    Ok(findings)
}

fn of_one(probe: &Probe<'_>, namespace: &Namespace, options: &Options) -> Result<Vec<Finding>> {
    let facts = Facts::ask(probe)?;
    let mut findings = vec![version::version(probe, &facts)?, network::network(probe)?];
    findings.push(persistence::persistence(probe, &facts)?);
    findings.extend(memory::memory(&facts));
    findings.push(replication::replication(probe, &facts)?);
    findings.extend(rights::rights(probe, namespace)?);
    findings.extend(timing::timing(probe, options)?);
    Ok(findings)
}
