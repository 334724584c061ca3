//! What the servers of a set are configured to be.

use std::time::Duration;

use tempfile::TempDir;

use super::member::{Kind, Member};
use super::{Cluster, Quorum, Replicated, SentinelSet};
use crate::builder::Builder;
use crate::{admin, certificates};

#[derive(Debug, Default)]
pub struct Setup {
    server: Builder,
    sentinel: Builder,
    pub(super) password: Option<String>,
    pub(super) sentinel_password: Option<String>,
    /// Of all servers, which copy them when they start.
    certificates: Option<TempDir>,
    pub(super) proxied: bool,
    down_after: Option<Duration>,
    node_timeout: Option<Duration>,
}

impl Setup {
    /// Servers that let everyone in, keep nothing on disk, and reach one another without proxies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Is of this server program, such as [`valkey`](super::valkey()).
    pub fn program(mut self, program: &str) -> Self {
        self.server = self.server.program(program);
        self.sentinel = self.sentinel.program(program);
        self
    }

    /// Demands `password` of the default user, also between servers. Sentinels have one of their own.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.server = self.server.password(password);
        self
    }

    pub fn acl(mut self, rules: &[&str]) -> Self {
        self.server = self.server.acl(rules);
        self
    }

    pub fn sentinel_password(mut self, password: &str) -> Self {
        self.sentinel_password = Some(password.to_owned());
        self.sentinel = self.sentinel.password(password);
        self
    }

    pub fn sentinel_acl(mut self, rules: &[&str]) -> Self {
        self.sentinel = self.sentinel.acl(rules);
        self
    }

    /// Speaks TLS at all public addresses, and between servers. Each has a port without TLS, too, for the test.
    pub fn tls(mut self) -> Self {
        let dir = tempfile::tempdir().expect("make a directory");
        certificates::write(dir.path());
        self.certificates = Some(dir);
        self
    }

    /// Puts a proxy in front of each server, and of each sentinel, at the address that it tells everyone.
    pub fn proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds a line to the configuration of each server, but not of sentinels.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.server = self.server.config(name, value);
        self
    }

    /// For how long a sentinel lets a server be silent before it takes it for down; 600 ms if it isn't called.
    pub fn down_after(mut self, time: Duration) -> Self {
        self.down_after = Some(time);
        self
    }

    /// The `cluster-node-timeout`; 1500 ms if it isn't called.
    pub fn node_timeout(mut self, time: Duration) -> Self {
        self.node_timeout = Some(time);
        self
    }

    /// Lets nobody take over because a busy machine stood still: only those do that are told to.
    ///
    /// Nodes of a cluster tell each other news the more seldom the longer their timeout is, and a replica that didn't
    /// get its votes tries again after four times as long.
    pub fn calm(self) -> Self {
        const OF_SENTINELS: Duration = Duration::from_secs(30);
        const OF_NODES: Duration = Duration::from_secs(4);
        self.down_after(OF_SENTINELS).node_timeout(OF_NODES)
    }

    pub fn replicated(self, replicas: usize) -> Replicated {
        Replicated::start_with(self, replicas)
    }

    pub fn sentinels(self) -> SentinelSet {
        SentinelSet::start_with(self)
    }

    pub fn cluster(self) -> Cluster {
        Cluster::start_with(self)
    }

    /// So many servers that know nothing of each other.
    pub fn quorum(self, servers: usize) -> Quorum {
        Quorum::start_with(self, servers)
    }

    pub(super) fn has_tls(&self) -> bool {
        self.certificates.is_some()
    }

    fn with_tls(&self, builder: &Builder) -> Builder {
        let builder = builder.clone();
        match &self.certificates {
            Some(dir) => builder.tls_of(dir.path()).config("tls-replication", "yes"),
            None => builder,
        }
    }

    pub(super) fn servers(&self, replicas: usize) -> Vec<Member> {
        let mut servers = vec![self.server(0, |builder| builder)];
        let port = servers[0].public_port();
        for index in 1..=replicas {
            servers.push(self.server(index, |builder| builder.replica_of(port)));
        }
        servers
    }

    /// Starts the server `index`, with `more` in its configuration.
    pub(super) fn server(&self, index: usize, more: impl FnOnce(Builder) -> Builder) -> Member {
        let mut builder = self.with_tls(&self.server);
        if builder.guarded {
            let (user, password) = admin::LOGIN;
            builder = builder
                .config("masteruser", user)
                .config("masterauth", password);
        }
        builder = more(builder);
        let kind = if builder.cluster {
            Kind::Node
        } else {
            Kind::Replicated
        };
        Member::start(self, kind, index, builder)
    }

    /// Starts the sentinel `index`, which watches the server at `port`.
    pub(super) fn sentinel(&self, index: usize, port: u16) -> Member {
        let down_after = self.down_after.unwrap_or(Duration::from_millis(600));
        let down_after = down_after.as_millis();
        let mut builder = self
            .with_tls(&self.sentinel)
            .sentinel()
            .config("sentinel monitor", &format!("mymaster 127.0.0.1 {port} 2"))
            .config(
                "sentinel down-after-milliseconds",
                &format!("mymaster {down_after}"),
            )
            .config("sentinel failover-timeout", "mymaster 3000")
            .config("sentinel parallel-syncs", "mymaster 2");
        if self.server.guarded {
            let (user, password) = admin::LOGIN;
            builder = builder
                .config("sentinel auth-user", &format!("mymaster {user}"))
                .config("sentinel auth-pass", &format!("mymaster {password}"));
        }
        if self.sentinel.guarded {
            let (user, password) = admin::LOGIN;
            builder = builder
                .config("sentinel sentinel-user", user)
                .config("sentinel sentinel-pass", password);
        }
        Member::start(self, Kind::Sentinel, index, builder)
    }

    /// Starts the node `index` of a cluster.
    pub(super) fn node(&self, index: usize) -> Member {
        let timeout = self.node_timeout.unwrap_or(Duration::from_millis(1500));
        let timeout = timeout.as_millis().to_string();
        self.server(index, |builder| {
            let builder = builder.cluster().config("cluster-node-timeout", &timeout);
            if self.has_tls() {
                builder.config("tls-cluster", "yes")
            } else {
                builder
            }
        })
    }

    pub(super) fn scheme(&self, topology: &str) -> String {
        let tls = if self.has_tls() { "s" } else { "" };
        let password = self.password.as_ref();
        let login = password.map_or_else(String::new, |password| format!(":{password}@"));
        format!("redis{tls}{topology}://{login}")
    }

    pub(super) fn parameters(&self, first: &Member) -> String {
        let ca = self
            .has_tls()
            .then(|| format!("ca={}", first.ca_file().display()));
        let sentinel = self.sentinel_password.as_ref();
        let sentinel = sentinel.map(|password| format!("sentinel_password={password}"));
        let all: Vec<_> = [ca, sentinel].into_iter().flatten().collect();
        if all.is_empty() {
            return String::new();
        }
        format!("?{}", all.join("&"))
    }
}

pub(super) fn hosts(members: &[Member]) -> String {
    let hosts: Vec<_> = members
        .iter()
        .map(|member| member.public_addr().to_string())
        .collect();
    hosts.join(",")
}
