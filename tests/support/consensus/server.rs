//! A private server of its kind.

use std::net::SocketAddr;
use std::ops::Deref;

use super::Kind;
use super::front::{Front, local};
use crate::Proxy;
use crate::daemon::{Daemon, PortTaken};

/// A server with a directory and ports of its own: a [`Daemon`] to kill, stop and continue. Dropping it kills it, and
/// removes the directory.
#[derive(Debug)]
pub struct Server<K> {
    daemon: Daemon,
    front: Front,
    pub(crate) kind: K,
}

impl<K: Kind> Server<K> {
    /// Takes what was just started.
    pub(crate) fn of(kind: K, daemon: Daemon, front: Front) -> Self {
        Self {
            daemon,
            front,
            kind,
        }
    }

    pub(super) fn wait(&self) -> Result<(), PortTaken> {
        self.daemon.wait_until(|| K::is_ready(self))
    }

    /// Returns where clients find it: its proxy if it has one, otherwise its port.
    pub fn addr(&self) -> SocketAddr {
        let proxy = self.front.clients.as_ref();
        proxy.map_or_else(|| local(self.front.served), Proxy::addr)
    }

    /// Returns the port without TLS and without a proxy, at which the tests' own calls arrive.
    pub fn own_addr(&self) -> SocketAddr {
        local(self.front.own)
    }

    /// Returns the port of clients, without a proxy.
    pub(crate) fn served_addr(&self) -> SocketAddr {
        local(self.front.served)
    }

    pub fn url(&self) -> String {
        self.url_at("")
    }

    pub fn url_at(&self, root: &str) -> String {
        K::url(self, &self.addr().to_string(), root)
    }

    /// What a URL says of certificates: that of the authority, and a client's own.
    pub(crate) fn files_of_url(&self, own: bool) -> String {
        let file = |name| self.dir().join(name).display().to_string();
        let own = match own {
            true => format!("&cert={}&key={}", file("client.pem"), file("client.key")),
            false => String::new(),
        };
        format!("?ca={}{own}", file("ca.pem"))
    }

    #[track_caller]
    pub fn proxy(&self) -> &Proxy {
        self.front.clients.as_ref().expect("started with proxies()")
    }

    /// Starts it again with what it has on disk, and waits until it serves clients; kills it before if it runs.
    pub fn restart(&self) {
        self.daemon.relaunch();
        self.wait().expect("its ports are still free");
    }
}

impl<K> Deref for Server<K> {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
