//! Name lookup with a deadline: the system's own has none.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::base::clock::Deadline;

/// Looks a host up in a thread of its own, one at a time: a lookup that hangs is joined, not repeated.
///
/// The thread ends when the system's lookup does, which nothing can hurry.
#[derive(Debug, Default)]
pub(in crate::engine) struct Resolver {
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
    pub(in crate::engine) fn resolve(
        &self,
        host: &str,
        port: u16,
        deadline: &Deadline,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let lookup = self.join_or_start(host, port)?;
        let mut found = lookup.found.lock();
        while found.is_none() {
            if deadline.is_over() {
                let text = format!("looking up {host} takes too long");
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            lookup.done.wait_for(&mut found, super::slice(deadline));
        }
        match found.as_ref() {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            Some(Err((kind, text))) => Err(io::Error::new(*kind, text.clone())),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn join_or_start(&self, host: &str, port: u16) -> io::Result<Arc<Lookup>> {
        let mut current = self.lookup.lock();
        let running = current.as_ref();
        if let Some(running) = running.filter(|lookup| lookup.found.lock().is_none()) {
            return Ok(running.clone());
        }
        let lookup = Arc::new(Lookup::default());
        let (theirs, host) = (lookup.clone(), host.to_owned());
        thread::Builder::new()
            .name("crosslock-dns".into())
            .spawn(move || {
                let found = (host.as_str(), port)
                    .to_socket_addrs()
                    .map(Iterator::collect);
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
    use std::time::Duration;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn addresses_need_no_lookup() {
        let resolver = Resolver::default();
        for host in ["127.0.0.1", "::1"] {
            let found = resolver
                .resolve(host, 7, &Deadline::after(Duration::ZERO))
                .unwrap();
            assert_eq!(found, [SocketAddr::new(host.parse().unwrap(), 7)]);
        }
        assert!(resolver.lookup.lock().is_none());
    }

    #[test]
    fn localhost_is_found_again_and_again() {
        let resolver = Resolver::default();
        for _ in 0..3 {
            let found = resolver.resolve("localhost", 7, &soon()).unwrap();
            assert!(
                found.iter().all(|address| address.ip().is_loopback()),
                "{found:?}"
            );
        }
    }

    #[test]
    fn lookup_past_its_deadline_is_left() {
        let resolver = Resolver::default();
        *resolver.lookup.lock() = Some(Arc::new(Lookup::default()));
        let error = resolver
            .resolve("host.invalid", 7, &Deadline::after(Duration::ZERO))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
