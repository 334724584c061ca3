//! A private server of etcd.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::setup::{EtcdSetup, Front, USER, local};
use super::{http, program};
use crate::daemon::{Daemon, PortTaken, fast_dir};
use crate::peers::Peers;
use crate::{Fault, Proxy};

/// A server with a directory and ports of its own; dropping it kills it and removes the directory.
#[derive(Debug)]
pub struct Etcd {
    daemon: Daemon,
    name: String,
    index: usize,
    front: Front,
    peers: Arc<Peers>,
    pub(super) setup: Arc<EtcdSetup>,
}

impl Etcd {
    /// Starts a server which lets everyone in.
    pub fn start() -> Self {
        Self::setup().start()
    }

    /// Returns a configuration to change.
    pub fn setup() -> EtcdSetup {
        EtcdSetup::new()
    }

    pub(super) fn launch(
        setup: &Arc<EtcdSetup>,
        (index, name): (usize, &str),
        cluster: &str,
        front: Front,
        peers: &Arc<Peers>,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let dir = fast_dir("etcd");
        prepare(dir.path());
        let arguments = setup.arguments(name, cluster, &front);
        Self {
            daemon: Daemon::launch(dir, program(), arguments),
            name: name.to_owned(),
            index,
            front,
            peers: Arc::clone(peers),
            setup: Arc::clone(setup),
        }
    }

    /// Waits until it, and no other, answers, and knows a leader.
    pub(super) fn wait(&self) -> Result<(), PortTaken> {
        self.daemon.wait_until(|| {
            let mine = self.status().is_some_and(|status| status.leader != 0);
            mine && http::names(self.own_addr()).contains(&self.name)
        })
    }

    /// Returns where clients find it: its proxy if it has one, otherwise its port.
    pub fn addr(&self) -> SocketAddr {
        let proxy = self.front.clients.as_ref();
        proxy.map_or_else(
            || local(self.front.tls.unwrap_or(self.front.client)),
            Proxy::addr,
        )
    }

    /// Returns the port without TLS and without a proxy, at which the tests' own calls arrive.
    pub fn own_addr(&self) -> SocketAddr {
        local(self.front.client)
    }

    /// Returns the URL, with a user's password if it demands one.
    pub fn url(&self) -> String {
        self.url_of(&self.addr().to_string(), "")
    }

    /// Returns the URL of all locks below `root`.
    pub fn url_at(&self, root: &str) -> String {
        self.url_of(&self.addr().to_string(), root)
    }

    /// Returns the URL with these hosts.
    pub(super) fn url_of(&self, hosts: &str, root: &str) -> String {
        let tls = self.setup.tls;
        let (scheme, ca) = if tls {
            ("etcds", format!("?ca={}", self.ca_file().display()))
        } else {
            ("etcd", String::new())
        };
        let certificate = match self.setup.client_certificates {
            true => {
                let [pem, key] = ["client.pem", "client.key"].map(|file| self.dir().join(file));
                format!("&cert={}&key={}", pem.display(), key.display())
            }
            false => String::new(),
        };
        let (user, password) = USER;
        let login = match self.setup.login {
            true => format!("{user}:{password}@"),
            false => String::new(),
        };
        format!("{scheme}://{login}{hosts}/{root}{ca}{certificate}")
    }

    /// Returns the file with the certificate of the authority.
    pub fn ca_file(&self) -> PathBuf {
        self.dir().join("ca.pem")
    }

    /// Returns the proxy that its clients connect to.
    ///
    /// # Panics
    ///
    /// If it was started without [`EtcdSetup::proxies`].
    #[track_caller]
    pub fn proxy(&self) -> &Proxy {
        self.front.clients.as_ref().expect("started with proxies()")
    }

    /// Returns its directory.
    pub fn dir(&self) -> &Path {
        self.daemon.dir()
    }

    /// Returns what it has logged, in all its lives.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Kills it with SIGKILL and reaps it.
    pub fn kill(&self) {
        self.daemon.kill();
    }

    /// Stops it with SIGSTOP: clients can connect, but nothing answers.
    pub fn stop(&self) {
        self.daemon.stop();
    }

    /// Continues it after [`Etcd::stop`].
    pub fn go_on(&self) {
        self.daemon.cont();
    }

    /// Returns whether it has neither ended nor been stopped.
    pub fn is_running(&self) -> bool {
        self.daemon.is_running()
    }

    /// Starts it again with what it has on disk, and waits until it answers and knows a leader; kills it before if it
    /// runs.
    ///
    /// # Panics
    ///
    /// If it doesn't answer, also because too many others are down.
    pub fn restart(&self) {
        self.launch_again();
        self.wait().expect("its ports are still free");
    }

    /// The same without waiting, for one of several that are down.
    pub fn launch_again(&self) {
        self.daemon.relaunch();
        self.peers.started(self.index, self.pid());
    }

    /// Does `fault` to what `self` hears from `other`.
    pub(super) fn hears(&self, other: &Self, fault: Fault) {
        let proxy = self.front.peers.as_ref().expect("started with proxies()");
        proxy.set_from(Peers::address(other.index), fault);
    }
}
