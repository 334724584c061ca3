//! A master and its replicas.

use super::PATIENCE;
use super::member::Member;
use super::setup::Setup;
use crate::wait_until;

/// A master, which is member 0, and replicas; dropping it kills all of them.
#[derive(Debug)]
pub struct Replicated {
    setup: Setup,
    members: Vec<Member>,
}

impl Replicated {
    pub fn start(replicas: usize) -> Self {
        Setup::new().replicated(replicas)
    }

    pub(super) fn start_with(setup: Setup, replicas: usize) -> Self {
        let members = setup.servers(replicas);
        wait_until_caught_up(&members);
        wait_until("the replicas to confirm", PATIENCE, || {
            members[0].is_confirmed_by(replicas).unwrap_or(false)
        });
        Self { setup, members }
    }

    /// Returns the server `index`; 0 was started as the master.
    pub fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn url(&self, index: usize) -> String {
        let member = &self.members[index];
        let (scheme, host) = (self.setup.scheme(""), member.public_addr());
        format!("{scheme}{host}/{}", self.setup.parameters(member))
    }
}

fn role(member: &Member) -> Option<String> {
    if !member.is_running() {
        return None;
    }
    let replication: String = member.try_query(&["INFO", "replication"]).ok()?;
    field(&replication, "role")
}

#[track_caller]
pub(super) fn wait_until_caught_up(members: &[Member]) {
    wait_until("the replicas to catch up", PATIENCE, || {
        have_caught_up(members).unwrap_or(false)
    });
}

fn have_caught_up(members: &[Member]) -> Option<bool> {
    let running: Vec<_> = members
        .iter()
        .filter(|member| member.is_running())
        .collect();
    let mut states = Vec::new();
    for member in &running {
        states.push(member.try_query::<String>(&["INFO", "replication"]).ok()?);
    }
    let is_master = |state: &&String| field(state, "role").as_deref() == Some("master");
    let masters: Vec<_> = states.iter().filter(is_master).collect();
    let [master] = masters[..] else {
        return Some(false);
    };
    let offset = field(master, "master_repl_offset")?;
    let online = master.matches("state=online").count();
    let follow = |state: &&String| {
        field(state, "master_link_status").as_deref() == Some("up")
            && field(state, "slave_repl_offset") == Some(offset.clone())
    };
    let replicas = running.len() - 1;
    Some(online >= replicas && states.iter().filter(follow).count() == replicas)
}

fn field(info: &str, name: &str) -> Option<String> {
    let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned())
}

#[track_caller]
pub(super) fn wait_until_master(member: &Member) {
    wait_until("a server to be the master", PATIENCE, || {
        role(member).as_deref() == Some("master")
    });
}
