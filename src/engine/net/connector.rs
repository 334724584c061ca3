//! Makes streams to one server, and looks its name up by a deadline: the system's own look-up has none.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::{path::PathBuf, sync::Arc};

use super::address::{Endpoint, HostPort};
use super::tls::{TlsConfig, Trust};
use super::{socket::Socket, stream::Stream};
use crate::base::Deadline;
use crate::base::sys;
use crate::base::sys::sync::{Condvar, Mutex};

/// Makes streams to one server.
#[derive(Debug)]
pub(crate) struct Connector {
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
    pub(crate) fn new(endpoint: Endpoint, tls: Option<TlsConfig>) -> Self {
        let target = match endpoint {
            Endpoint::Tcp(server) => Target::Tcp(Resolver::new(server)),
            Endpoint::Unix(path) => Target::Unix(path),
        };
        Connector { target, tls }
    }

    /// The same for a child that was forked off, which trusts whom its parent does.
    pub(crate) fn after_fork(&self, trust: Option<&Trust>) -> Self {
        let target = match &self.target {
            Target::Tcp(resolver) => Target::Tcp(resolver.after_fork()),
            Target::Unix(path) => Target::Unix(path.clone()),
        };
        let tls = self.tls.as_ref().zip(trust);
        let tls = tls.map(|(tls, trust)| tls.after_fork(trust));
        Connector { target, tls }
    }

    /// A stream, with name lookup and the handshake of TLS done by `deadline`.
    pub(crate) fn connect(&self, deadline: &Deadline) -> io::Result<Stream> {
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
    pub(crate) fn is_plain_tcp(&self) -> bool {
        self.tls.is_none() && matches!(self.target, Target::Tcp(_))
    }
}

/// Looks one host up, in a thread that callers share: a lookup that hangs is joined, not repeated.
///
/// The thread ends when the system's lookup does, which nothing can hurry.
#[derive(Debug)]
pub(crate) struct Resolver {
    server: HostPort,
    lookup: Mutex<Option<Arc<Lookup>>>,
}

#[derive(Debug, Default)]
struct Lookup {
    found: Mutex<Option<Found>>,
    done: Condvar,
}

/// An error is kept by its parts: several callers may have to be told.
type Found = Result<Vec<SocketAddr>, (ErrorKind, String)>;

impl Resolver {
    pub(crate) fn new(server: HostPort) -> Self {
        let lookup = Mutex::default();
        Resolver { server, lookup }
    }

    /// The same for a child that was forked off: the parent's thread isn't there.
    pub(crate) fn after_fork(&self) -> Self {
        Resolver::new(self.server.clone())
    }

    pub(crate) fn resolve(&self, deadline: &Deadline) -> io::Result<Vec<SocketAddr>> {
        let HostPort { host, port } = &self.server;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, *port).into()]);
        }
        let lookup = self.join_or_start()?;
        let mut found = lookup.found.lock();
        while found.is_none() {
            if deadline.is_over() {
                let text = format!("looking up {host} took too long");
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            found = lookup.done.wait_for(found, super::slice(deadline));
        }
        match found.as_ref() {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            Some(Err((kind, text))) => Err(io::Error::new(*kind, text.clone())),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn join_or_start(&self) -> io::Result<Arc<Lookup>> {
        let mut current = self.lookup.lock();
        let running = current.as_ref();
        if let Some(running) = running.filter(|lookup| lookup.found.lock().is_none()) {
            return Ok(running.clone());
        }
        let lookup = Arc::new(Lookup::default());
        let (theirs, HostPort { host, port }) = (lookup.clone(), self.server.clone());
        sys::spawn("crosslock-dns", move || {
            let found = sys::net::look_up(&host, port);
            let found = found.map_err(|e| (e.kind(), format!("can't look up {host}: {e}")));
            *theirs.found.lock() = Some(found);
            theirs.done.notify_all();
        })?;
        *current = Some(lookup.clone());
        Ok(lookup)
    }
}

#[cfg(test)]
mod tests;
