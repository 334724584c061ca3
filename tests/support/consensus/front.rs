//! The ports of a server, and the proxy in front of it.

use std::net::{Ipv4Addr, SocketAddr};

use crate::Proxy;
use crate::frames::Protocol;
use crate::server::free_port;

#[derive(Debug)]
pub(crate) struct Front {
    /// At which the tests' own calls arrive, without TLS and without a proxy.
    pub(crate) own: u16,
    /// That of clients: another one where they speak TLS.
    pub(crate) served: u16,
    pub(super) clients: Option<Proxy>,
    /// For the other servers.
    pub(crate) between: Vec<u16>,
}

impl Front {
    /// Free ports, of which so many are for the other servers. With TLS clients arrive at a port of their own.
    pub(crate) fn new(ports_between: usize, protocol: Protocol, tls: bool, proxied: bool) -> Self {
        let own = free_port();
        let (served, protocol) = match tls {
            true => (free_port(), Protocol::Raw),
            false => (own, protocol),
        };
        Self {
            own,
            served,
            between: (0..ports_between).map(|_| free_port()).collect(),
            clients: proxied.then(|| Proxy::speaking(protocol, local(served))),
        }
    }
}

pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
