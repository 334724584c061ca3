//! What a server is like, and which promise doesn't hold there.
//!
//! Each module here looks at one side of the server. What the server doesn't show to this user is told as unknown. The
//! answers are those of one moment, and each command stands alone.

use std::sync::Arc;

use self::facts::Facts;
use self::probe::Probe;
use super::commands::Commands;
use super::server::Server;
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::name::Namespace;
use crate::base::options::Options;

mod facts;
mod memory;
mod network;
mod persistence;
mod probe;
mod replication;
mod rights;
mod timing;
mod version;

/// All findings. The first command that gets no answer ends it.
pub(super) fn diagnose(
    (server, commands): (&Arc<Server>, &Commands),
    namespace: &Namespace,
    options: &Options,
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    let probe = Probe {
        server,
        commands,
        deadline,
    };
    let facts = Facts::ask(&probe)?;
    let mut findings = vec![version::version(&probe, &facts)?, network::network(&probe)?];
    findings.push(persistence::persistence(&probe, &facts)?);
    findings.extend(memory::memory(&facts));
    findings.push(replication::replication(&facts));
    findings.extend(rights::rights(&probe, namespace)?);
    findings.extend(timing::timing(&probe, options)?);
    Ok(findings)
}
