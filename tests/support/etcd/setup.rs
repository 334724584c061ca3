//! What servers of etcd are configured to be.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::{Etcd, EtcdCluster, calls};
use crate::consensus::{self, Front, local};
use crate::frames::Protocol;

/// A user who may do everything, and one who may do everything with keys; name and password.
pub(super) const ROOT: (&str, &str) = ("root", "root-3f1a");
pub(super) const USER: (&str, &str) = ("locker", "swordfish-7c1d");

#[derive(Clone, Debug, Default)]
pub struct EtcdSetup {
    pub(super) login: bool,
    pub(super) tls: bool,
    pub(super) client_certificates: bool,
    proxied: bool,
    flags: Vec<String>,
}

impl EtcdSetup {
    /// Servers that let everyone in, and reach one another without proxies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets nobody in without a password. [`Etcd::url`] has a user's who may read and write all keys.
    pub fn login(mut self) -> Self {
        self.login = true;
        // The default costs 80 ms of a processor for each login.
        self.flag("bcrypt-cost", "4")
    }

    pub fn token_ttl(self, seconds: u32) -> Self {
        self.login().flag("auth-token-ttl", &seconds.to_string())
    }

    /// Each server has an authority of its own.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The same, and lets in nobody without a certificate.
    pub fn client_certificates(mut self) -> Self {
        self.client_certificates = true;
        self.tls()
    }

    /// Puts a proxy in front of each server for its clients.
    pub fn proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds a flag of the program, without its dashes; it wins over what was there before.
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }

    pub fn start(self) -> Etcd {
        let [server] = <[_; 1]>::try_from(self.start_members(1)).expect("one");
        server
    }

    pub fn cluster(self, members: usize) -> EtcdCluster {
        EtcdCluster::of_members(self.start_members(members))
    }

    fn start_members(self, count: usize) -> Vec<Etcd> {
        let setup = Arc::new(self);
        let members = consensus::start(|| setup.launch(count));
        if setup.login {
            calls::demand_login(&members[0]);
        }
        members
    }

    fn launch(self: &Arc<Self>, count: usize) -> Vec<Etcd> {
        let front = |_| Front::new(1, Protocol::Http, self.tls, self.proxied);
        let fronts: Vec<_> = (0..count).map(front).collect();
        // So that none takes another test's for one of its own.
        let token = format!("{:016x}", RandomState::new().hash_one(0));
        let name = |index: usize| format!("{token}-{index}");
        let members = fronts.iter().enumerate();
        let members = members.map(|(index, front)| format!("{}={}", name(index), told(front)));
        let cluster = members.collect::<Vec<_>>().join(",");
        let launch =
            |(index, front): (usize, Front)| Etcd::launch(self, (&name(index), &cluster), front);
        fronts.into_iter().enumerate().map(launch).collect()
    }

    pub(super) fn arguments(&self, name: &str, cluster: &str, front: &Front) -> Vec<String> {
        let token = name.split('-').next().unwrap_or_default();
        let clients = client_urls(front);
        let mut all = vec![
            format!("--name={name}"),
            "--data-dir=data".to_owned(),
            format!("--initial-cluster={cluster}"),
            format!("--initial-cluster-token={token}"),
            format!("--listen-peer-urls={}", told(front)),
            format!("--initial-advertise-peer-urls={}", told(front)),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={}", http(front.own)),
            // Half a second longer, and the shortest ttl of a lease would be two seconds.
            "--heartbeat-interval=100".to_owned(),
            "--election-timeout=600".to_owned(),
        ];
        if self.tls {
            all.extend(["--cert-file=server.pem", "--key-file=server.key"].map(str::to_owned));
        }
        if self.client_certificates {
            all.extend(["--client-cert-auth=true", "--trusted-ca-file=ca.pem"].map(str::to_owned));
        }
        all.extend(self.flags.iter().cloned());
        all
    }
}

fn told(front: &Front) -> String {
    front.between.iter().copied().map(http).collect()
}

fn client_urls(front: &Front) -> String {
    let plain = http(front.own);
    if front.served == front.own {
        return plain;
    }
    format!("{plain},https://{}", local(front.served))
}

fn http(port: u16) -> String {
    format!("http://{}", local(port))
}
