//! Makes streams to one server.

use std::io;
use std::path::PathBuf;

use super::address::Endpoint;
use super::resolver::Resolver;
use super::socket::Socket;
use super::stream::Stream;
use super::tls::{TlsConfig, Trust};
use crate::base::clock::Deadline;

/// Makes streams to one server.
#[derive(Debug)]
pub(in crate::engine) struct Connector {
    target: Target,
    /// `None`: its streams are plain.
    tls: Option<TlsConfig>,
}

#[derive(Debug)]
enum Target {
    Tcp(Resolver),
    Unix(PathBuf),
}

impl Connector {
    pub(in crate::engine) fn new(endpoint: Endpoint, tls: Option<TlsConfig>) -> Self {
        let target = match endpoint {
            Endpoint::Tcp(server) => Target::Tcp(Resolver::new(server)),
            Endpoint::Unix(path) => Target::Unix(path),
        };
        Connector { target, tls }
    }

    /// The same for a child that was forked off, which trusts whom its parent does.
    pub(in crate::engine) fn after_fork(&self, trust: Option<&Trust>) -> Self {
        let target = match &self.target {
            Target::Tcp(resolver) => Target::Tcp(resolver.after_fork()),
            Target::Unix(path) => Target::Unix(path.clone()),
        };
        let tls = self.tls.as_ref().zip(trust);
        let tls = tls.map(|(tls, trust)| tls.after_fork(trust));
        Connector { target, tls }
    }

    /// A stream, with name lookup and the handshake of TLS done by `deadline`.
    pub(in crate::engine) fn connect(&self, deadline: &Deadline) -> io::Result<Stream> {
        let mut socket = match &self.target {
            Target::Tcp(resolver) => Socket::connect_tcp(&resolver.resolve(deadline)?, deadline)?,
            Target::Unix(path) => Socket::connect_unix(path, deadline)?,
        };
        let session = match &self.tls {
            Some(tls) => Some(tls.shake_hands(&mut socket)?),
            None => None,
        };
        Ok(Stream::new(socket, session))
    }

    /// Whether its server may be one that speaks TLS on this port, and gets plain text.
    pub(in crate::engine) fn is_plain_tcp(&self) -> bool {
        self.tls.is_none() && matches!(self.target, Target::Tcp(_))
    }
}
