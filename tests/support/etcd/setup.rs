//! What servers of etcd are configured to be.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::{Etcd, EtcdCluster, calls};
use crate::certificates;
use crate::frames::Protocol;
use crate::peers::Peers;
use crate::proxy::Proxy;
use crate::server::free_port;

/// A user who may do everything, and one who may do everything with keys; name and password.
pub(super) const ROOT: (&str, &str) = ("root", "root-3f1a");
pub(super) const USER: (&str, &str) = ("locker", "swordfish-7c1d");
const ATTEMPTS: usize = 30;

/// Configures an [`Etcd`] or an [`EtcdCluster`].
#[derive(Clone, Debug, Default)]
pub struct EtcdSetup {
    pub(super) login: bool,
    pub(super) tls: bool,
    pub(super) client_certificates: bool,
    proxied: bool,
    flags: Vec<(String, String)>,
}

/// The ports of one server, and the proxies in front of them.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) client: u16,
    pub(super) tls: Option<u16>,
    pub(super) peer: u16,
    pub(super) clients: Option<Proxy>,
    pub(super) peers: Option<Proxy>,
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

    /// Lets the tokens of users end after so many seconds without use.
    pub fn token_ttl(self, seconds: u32) -> Self {
        self.login().flag("auth-token-ttl", &seconds.to_string())
    }

    /// Speaks TLS with clients.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The same, and lets in nobody without a certificate.
    pub fn client_certificates(mut self) -> Self {
        self.client_certificates = true;
        self.tls()
    }

    /// Puts a proxy in front of each server for its clients, and one for the other servers.
    pub fn proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds a flag of the program, without its dashes; it wins over what was there before.
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts one server and waits until it answers.
    ///
    /// # Panics
    ///
    /// If there is no program to start, or it doesn't start; the message has its log.
    pub fn start(self) -> Etcd {
        let [server] = <[_; 1]>::try_from(self.start_members(1)).expect("one");
        server
    }

    /// Starts so many, and waits until they have a leader.
    pub fn cluster(self, members: usize) -> EtcdCluster {
        EtcdCluster::of_members(self.start_members(members))
    }

    fn start_members(self, count: usize) -> Vec<Etcd> {
        let setup = Arc::new(self);
        let members = (0..ATTEMPTS).find_map(|_| setup.try_start(count));
        let members = members.expect("free ports");
        if setup.login {
            calls::demand_login(&members[0]);
        }
        members
    }

    /// Starts all, or none if a port is taken meanwhile.
    fn try_start(self: &Arc<Self>, count: usize) -> Option<Vec<Etcd>> {
        let peers = Arc::new(Peers::of(count));
        let certificates = self.tls.then(|| {
            let dir = tempfile::tempdir().expect("make a directory");
            certificates::write(dir.path());
            dir
        });
        let fronts: Vec<_> = (0..count).map(|_| Front::new(self, &peers)).collect();
        // So that none takes another test's for one of its own.
        let token = format!("{:016x}", RandomState::new().hash_one(0));
        let members = fronts.iter().enumerate();
        let members = members.map(|(index, front)| format!("{token}-{index}={}", front.peer_url()));
        let cluster: Vec<_> = members.collect();
        let cluster = cluster.join(",");
        let servers: Vec<_> = fronts
            .into_iter()
            .enumerate()
            .map(|(index, front)| {
                let member = format!("{token}-{index}");
                let server = Etcd::launch(self, (index, &member), &cluster, front, &peers, |dir| {
                    if let Some(made) = &certificates {
                        certificates::copy(made.path(), dir);
                    }
                });
                peers.started(index, server.pid());
                server
            })
            .collect();
        let all = servers.iter().all(|server| server.wait().is_ok());
        all.then_some(servers)
    }

    /// Returns the arguments of a member.
    pub(super) fn arguments(&self, name: &str, cluster: &str, front: &Front) -> Vec<String> {
        let flags = [
            ("name", name),
            ("data-dir", "data"),
            ("initial-cluster", cluster),
            (
                "initial-cluster-token",
                name.split('-').next().unwrap_or_default(),
            ),
            ("listen-peer-urls", &http(front.peer)),
            ("initial-advertise-peer-urls", &front.peer_url()),
            ("listen-client-urls", &front.client_urls()),
            ("advertise-client-urls", &http(front.client)),
            // Half a second longer, and the shortest ttl of a lease would be two seconds.
            ("heartbeat-interval", "100"),
            ("election-timeout", "600"),
        ];
        let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut all = flags.to_vec();
        if self.tls {
            for (name, file) in [("cert-file", "server.pem"), ("key-file", "server.key")] {
                all.push((name.into(), file.into()));
            }
        }
        if self.client_certificates {
            all.push(("client-cert-auth".into(), "true".into()));
            all.push(("trusted-ca-file".into(), "ca.pem".into()));
        }
        all.extend(self.flags.iter().cloned());
        all.iter()
            .map(|(name, value)| format!("--{name}={value}"))
            .collect()
    }
}

impl Front {
    fn new(setup: &EtcdSetup, peers: &Arc<Peers>) -> Self {
        let (client, peer) = (free_port(), free_port());
        let tls = setup.tls.then(free_port);
        let protocol = if setup.tls {
            Protocol::Raw
        } else {
            Protocol::Http
        };
        let clients = setup
            .proxied
            .then(|| Proxy::speaking(protocol, local(tls.unwrap_or(client))));
        let between = setup.proxied.then(|| Proxy::between(peers, local(peer)));
        Self {
            client,
            tls,
            peer,
            clients,
            peers: between,
        }
    }

    fn peer_url(&self) -> String {
        let proxy = self.peers.as_ref();
        proxy.map_or_else(|| http(self.peer), |proxy| http(proxy.addr().port()))
    }

    fn client_urls(&self) -> String {
        let plain = http(self.client);
        let tls = self.tls;
        tls.map_or(plain.clone(), |port| {
            format!("{plain},https://{}", local(port))
        })
    }
}

pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn http(port: u16) -> String {
    format!("http://{}", local(port))
}
