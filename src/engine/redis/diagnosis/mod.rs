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
mod timing;
mod version;

/// All findings, of several servers one for each check. The first command that gets no answer ends it.
pub(super) fn diagnose(
    (servers, commands): (&[Arc<Server>], &Commands),
    namespace: &Namespace,
    options: &Options,
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    let probe = |server| Probe {
        server,
        commands,
        deadline,
    };
    let mut found = Vec::new();
    for server in servers {
        found.push((
            server.address(),
            of_one(&probe(server), namespace, options)?,
        ));
    }
    let mut findings = merged::merged(found);
    let probes: Vec<_> = servers.iter().map(probe).collect();
    let is_cluster = |probe: &Probe<'_>| probe.server.settings().kind == Kind::Cluster;
    if probes.iter().any(is_cluster) {
        findings.extend(cluster::cluster(&probes, options)?);
    }
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
