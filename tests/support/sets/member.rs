//! A server of a set, and the proxies in front of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;

use super::setup::Setup;
use crate::builder::Builder;
use crate::{Proxy, RedisServer};

/// A server of a set; it is a [`RedisServer`] to kill, stop, continue and restart.
#[derive(Debug)]
pub struct Member {
    server: RedisServer,
    front: Option<Front>,
}

/// What stands between a server and all others.
#[derive(Debug)]
struct Front {
    /// The server connects from this address, by which the others' proxies know it.
    source: Ipv4Addr,
    proxy: Proxy,
}

/// How a server tells where it can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Replicated,
    Sentinel,
    Node,
}

impl Member {
    pub(super) fn start(setup: &Setup, kind: Kind, index: usize, builder: Builder) -> Self {
        let front = setup.proxied.then(|| Front::new(kind, index));
        let builder = match &front {
            Some(front) => front.announce(kind, setup.has_tls(), builder),
            None => builder,
        };
        let server = builder.start();
        let member = Self { server, front };
        member.open_front();
        member
    }

    /// Returns where clients and the other servers find it: its proxy if it has one, otherwise its port, with TLS if
    /// the set has TLS.
    pub fn public_addr(&self) -> SocketAddr {
        self.front
            .as_ref()
            .map_or_else(|| self.own_addr(), |front| front.proxy.addr())
    }

    pub fn public_port(&self) -> u16 {
        self.public_addr().port()
    }

    /// Returns the proxy that clients and the other servers connect to. What is [set](Proxy::set) there is for clients.
    #[track_caller]
    pub fn proxy(&self) -> &Proxy {
        &self.front().proxy
    }

    fn front(&self) -> &Front {
        self.front.as_ref().expect("started with proxies()")
    }

    fn own_addr(&self) -> SocketAddr {
        let port = match self.settings.tls {
            true => self.tls_port(),
            false => self.port(),
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The proxies have to be there before the server is configured, and the server has chosen its ports only then.
    fn open_front(&self) {
        let Some(front) = &self.front else { return };
        front.proxy.point_to(self.own_addr());
    }
}

impl Deref for Member {
    type Target = RedisServer;

    fn deref(&self) -> &RedisServer {
        &self.server
    }
}

impl Front {
    fn new(kind: Kind, index: usize) -> Self {
        let nowhere = (Ipv4Addr::LOCALHOST, 1).into();
        // The sentinels of a set aren't its servers.
        let first = if kind == Kind::Sentinel { 100 } else { 2 };
        let last = u8::try_from(first + index).expect("so many servers aren't started");
        Self {
            source: Ipv4Addr::new(127, 0, 0, last),
            proxy: Proxy::start(nowhere),
        }
    }

    fn announce(&self, kind: Kind, tls: bool, builder: Builder) -> Builder {
        let host = Ipv4Addr::LOCALHOST.to_string();
        let port = self.proxy.addr().port().to_string();
        let builder = builder.config("bind-source-addr", &self.source.to_string());
        match kind {
            Kind::Replicated => builder
                .config("replica-announce-ip", &host)
                .config("replica-announce-port", &port),
            Kind::Sentinel => builder
                .config("sentinel announce-ip", &host)
                .config("sentinel announce-port", &port),
            Kind::Node => {
                let name = if tls {
                    "cluster-announce-tls-port"
                } else {
                    "cluster-announce-port"
                };
                builder
                    .config("cluster-announce-ip", &host)
                    .config(name, &port)
            }
        }
    }
}
