//! Servers that know nothing of each other.

use super::member::Member;
use super::setup::{Setup, hosts};

/// Independent servers, of which a majority decides; dropping it kills all.
#[derive(Debug)]
pub struct Quorum {
    setup: Setup,
    servers: Vec<Member>,
}

impl Quorum {
    pub(super) fn start_with(setup: Setup, servers: usize) -> Self {
        let servers = (0..servers).map(|index| setup.server(index, |builder| builder));
        let servers = servers.collect();
        Self { setup, servers }
    }

    pub fn server(&self, index: usize) -> &Member {
        &self.servers[index]
    }

    /// The URL with that `rejoin`: 0s where no server is started anew.
    pub fn url(&self, rejoin: &str) -> String {
        let (scheme, hosts) = (self.setup.scheme("+quorum"), hosts(&self.servers));
        let parameters = self.setup.parameters(&self.servers[0]);
        let first = if parameters.contains('?') { '&' } else { '?' };
        format!("{scheme}{hosts}{parameters}{first}rejoin={rejoin}")
    }
}
