//! Several servers that are one.

use std::time::Duration;

use super::{Kind, Server};
use crate::eventually;

const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// Several servers that are one; dropping it kills all of them.
#[derive(Debug)]
pub struct ServerSet<K> {
    members: Vec<Server<K>>,
}

impl<K: Kind> ServerSet<K> {
    pub(crate) fn of_members(members: Vec<Server<K>>) -> Self {
        Self { members }
    }

    pub fn url(&self) -> String {
        self.url_at("")
    }

    pub fn url_at(&self, root: &str) -> String {
        let hosts = self.members.iter().map(|member| member.addr().to_string());
        let hosts: Vec<_> = hosts.collect();

        K::url(&self.members[0], &hosts.join(","), root)
    }

    pub fn members(&self) -> &[Server<K>] {
        &self.members
    }

    /// Returns the server `index`, counted from 0.
    pub fn member(&self, index: usize) -> &Server<K> {
        &self.members[index]
    }

    /// Waits until most of the servers say that one of them leads, also by what it says itself; returns which.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        eventually(SETTLES_WITHIN, || {
            leader = self.leader_now();
            leader.is_some()
        });
        leader.expect("a leader within a minute")
    }

    /// Waits until another than `old` leads; returns which.
    #[track_caller]
    pub fn wait_for_other_leader(&self, old: usize) -> usize {
        let mut leader = None;
        eventually(SETTLES_WITHIN, || {
            leader = self.leader_now().filter(|new| *new != old);
            leader.is_some()
        });
        leader.expect("another leader within a minute")
    }

    fn leader_now(&self) -> Option<usize> {
        K::leader(&self.members)
    }
}
