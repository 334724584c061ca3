//! What a proxy does to connections from different addresses of this host.
//!
//! Servers of a set that have a proxy each connect to one another from addresses of their own, and through the same
//! proxies as clients. So a test cuts off clients, or one server from another.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frames::Protocol;
use super::proxy::Shared;

#[derive(Debug)]
pub(super) struct Lanes {
    clients: Arc<Shared>,
    others: Mutex<HashMap<IpAddr, Arc<Shared>>>,
}

impl Lanes {
    pub(super) fn new(protocol: Protocol, upstream: SocketAddr) -> Self {
        Self {
            clients: Arc::new(Shared::new(protocol, upstream)),
            others: Mutex::default(),
        }
    }

    pub(super) fn clients(&self) -> Arc<Shared> {
        Arc::clone(&self.clients)
    }

    /// Returns what connections from `source` share.
    pub(super) fn of(&self, source: IpAddr) -> Arc<Shared> {
        if source == Ipv4Addr::LOCALHOST {
            return self.clients();
        }
        let mut others = self.others();
        let lane = others
            .entry(source)
            .or_insert_with(|| Arc::new(self.clients.raw()));
        if self.clients.is_stopping() {
            lane.stop();
        }
        Arc::clone(lane)
    }

    pub(super) fn stop(&self) {
        let others = self.others();
        self.clients.stop();
        others.values().for_each(|lane| lane.stop());
    }

    fn others(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Shared>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
