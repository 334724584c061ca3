//! Whom to ask which server has a name: sentinels, or the nodes of a cluster.

use super::heard::Heard;
use super::nodes::Nodes;
use super::sentinel::Sentinels;
use crate::engine::net::address::HostPort;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::settings::Settings;

/// Who is asked which server has a name.
#[derive(Debug)]
pub(super) enum Ask {
    Sentinels(Sentinels),
    /// The nodes themselves.
    Nodes(Nodes),
}

impl Ask {
    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self, settings: &Settings) -> Self {
        match self {
            Ask::Sentinels(sentinels) => Ask::Sentinels(sentinels.after_fork(settings)),
            Ask::Nodes(nodes) => Ask::Nodes(nodes.after_fork()),
        }
    }

    pub(super) fn seeds(&self) -> &[HostPort] {
        match self {
            Ask::Sentinels(_) => &[],
            Ask::Nodes(nodes) => nodes.seeds(),
        }
    }

    /// Why nothing of use was said.
    pub(super) fn failure(&self, heard: Heard) -> Failure {
        match self {
            Ask::Sentinels(_) => Sentinels::failure(heard),
            Ask::Nodes(_) => Nodes::failure(heard),
        }
    }
}
