//! The ports of a server, and the proxies in front of them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::frames::Protocol;
use crate::peers::Peers;
use crate::server::free_port;
use crate::{Fault, Proxy};

/// The ports of one server, and the proxies in front of them.
#[derive(Debug)]
pub(crate) struct Front {
    /// At which the tests' own calls arrive, without TLS and without a proxy.
    pub(crate) own: u16,
    /// That of clients: another one where they speak TLS.
    pub(crate) served: u16,
    pub(super) clients: Option<Proxy>,
    between: Vec<Between>,
}

#[derive(Debug)]
struct Between {
    port: u16,
    proxy: Option<Proxy>,
}

impl Front {
    /// Free ports, of which so many are for the other servers, with a proxy in front of each if there are `peers` to
    /// tell apart. With TLS clients arrive at a port of their own.
    pub(crate) fn new(
        ports_between: usize,
        protocol: Protocol,
        tls: bool,
        peers: Option<&Arc<Peers>>,
    ) -> Self {
        let own = free_port();
        let (served, protocol) = match tls {
            true => (free_port(), Protocol::Raw),
            false => (own, protocol),
        };
        let between = (0..ports_between).map(|_| {
            let port = free_port();
            let proxy = peers.map(|peers| Proxy::between(peers, local(port)));
            Between { port, proxy }
        });
        Self {
            own,
            served,
            between: between.collect(),
            clients: peers.map(|_| Proxy::speaking(protocol, local(served))),
        }
    }

    pub(crate) fn listens(&self) -> impl Iterator<Item = u16> {
        self.between.iter().map(|between| between.port)
    }

    pub(crate) fn told(&self) -> impl Iterator<Item = u16> {
        self.between.iter().map(|Between { port, proxy }| {
            let proxy = proxy.as_ref();
            proxy.map_or(*port, |proxy| proxy.addr().port())
        })
    }

    #[track_caller]
    pub(super) fn hears(&self, index: usize, fault: Fault) {
        for between in &self.between {
            let proxy = between.proxy.as_ref().expect("started with proxies()");
            proxy.set_from(Peers::address(index), fault);
        }
    }
}

pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
