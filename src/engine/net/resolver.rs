//! Name lookup with a deadline: the system's own has none.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::address::HostPort;
use crate::base::clock::Deadline;
use crate::base::sys;
use crate::base::sys::sync::{Condvar, Mutex};

/// Looks one host up, in a thread that callers share: a lookup that hangs is joined, not repeated.
///
/// The thread ends when the system's lookup does, which nothing can hurry.
#[derive(Debug)]
pub(in crate::engine) struct Resolver {
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
    pub(in crate::engine) fn new(server: HostPort) -> Self {
        let lookup = Mutex::default();
        Resolver { server, lookup }
    }

    /// The same for a child that was forked off: the parent's thread isn't there.
    pub(in crate::engine) fn after_fork(&self) -> Self {
        Resolver::new(self.server.clone())
    }

    pub(in crate::engine) fn resolve(&self, deadline: &Deadline) -> io::Result<Vec<SocketAddr>> {
        let HostPort { host, port } = &self.server;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, *port).into()]);
        }
        let lookup = self.join_or_start()?;
        let mut found = lookup.found.lock();
        while found.is_none() {
            if deadline.is_over() {
                let text = format!("looking up {host} takes too long");
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
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    fn resolver(host: &str) -> Resolver {
        let host = host.to_owned();
        Resolver::new(HostPort { host, port: 7 })
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn addresses_need_no_lookup() {
        for host in ["127.0.0.1", "::1"] {
            let resolver = resolver(host);
            let found = resolver.resolve(&Deadline::after(Duration::ZERO)).unwrap();
            assert_eq!(found, [SocketAddr::new(host.parse().unwrap(), 7)]);
            assert!(resolver.lookup.lock().is_none());
        }
    }

    #[test]
    fn localhost_is_found_again_and_again() {
        let resolver = resolver("localhost");
        for _ in 0..3 {
            let found = resolver.resolve(&soon()).unwrap();
            assert!(
                found.iter().all(|address| address.ip().is_loopback()),
                "{found:?}"
            );
        }
    }

    #[test]
    fn lookup_past_its_deadline_is_left() {
        let resolver = resolver("host.invalid");
        *resolver.lookup.lock() = Some(Arc::new(Lookup::default()));
        let error = resolver
            .resolve(&Deadline::after(Duration::ZERO))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
    #[test]
    fn lookup_that_hangs_is_left_when_the_call_is_cancelled() {
        let resolver = resolver("host.invalid");
        *resolver.lookup.lock() = Some(Arc::new(Lookup::default()));
        let cancel = crate::base::cancel::Cancel::default();
        let deadline = Deadline::NEVER.or(&cancel);
        let error = thread::scope(|scope| {
            let looks = scope.spawn(|| resolver.resolve(&deadline).unwrap_err());
            cancel.set();
            looks.join().unwrap()
        });
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
