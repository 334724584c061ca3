//! Makes streams to one server.

use std::io;

use super::address::{Endpoint, HostPort};
use super::resolver::Resolver;
use super::socket::Socket;
use super::stream::Stream;
use super::tls::TlsConfig;
use crate::base::clock::Deadline;

/// Makes streams to one server.
#[derive(Debug)]
pub(in crate::engine) struct Connector {
    endpoint: Endpoint,
    resolver: Resolver,
    /// `None`: its streams are plain.
    tls: Option<TlsConfig>,
}

impl Connector {
    pub(in crate::engine) fn new(endpoint: Endpoint, tls: Option<TlsConfig>) -> Self {
        Connector {
            endpoint,
            resolver: Resolver::default(),
            tls,
        }
    }

    /// The same for a child that was forked off: the parent's thread that looks a name up isn't there.
    pub(in crate::engine) fn after_fork(&self) -> Self {
        Connector::new(self.endpoint.clone(), self.tls.clone())
    }

    /// A stream, with name lookup and the handshake of TLS done by `deadline`.
    pub(in crate::engine) fn connect(&self, deadline: &Deadline) -> io::Result<Stream> {
        let mut socket = match &self.endpoint {
            Endpoint::Unix(path) => Socket::connect_unix(path, deadline)?,
            Endpoint::Tcp(HostPort { host, port }) => {
                let addresses = self.resolver.resolve(host, *port, deadline)?;
                Socket::connect_tcp(&addresses, deadline)?
            }
        };
        let session = match &self.tls {
            Some(tls) => Some(tls.shake_hands(&mut socket)?),
            None => None,
        };
        Ok(Stream::new(socket, session))
    }

    /// Whether its server may be one that speaks TLS on this port, and gets plain text.
    pub(in crate::engine) fn is_plain_tcp(&self) -> bool {
        self.tls.is_none() && matches!(self.endpoint, Endpoint::Tcp(_))
    }
}
