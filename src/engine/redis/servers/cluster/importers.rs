//! The nodes that take slots over, as look-ups have found them.

use std::sync::Arc;

use crate::engine::redis::server::Server;

/// The nodes that take slots over, and these slots.
#[derive(Debug, Default)]
pub(super) struct Importers(Vec<(Arc<Server>, Vec<u16>)>);

impl Importers {
    /// Those of a slot, but for the one that is asked anyway.
    pub(super) fn of(&self, slot: u16, asked: &Arc<Server>) -> Vec<Arc<Server>> {
        let all = self.0.iter().filter(|(_, slots)| slots.contains(&slot));
        let others = all.filter(|(node, _)| !Arc::ptr_eq(node, asked));
        others.map(|(node, _)| node.clone()).collect()
    }

    /// Notes which slots a node takes over, by its own word.
    pub(super) fn set(&mut self, node: &Arc<Server>, slots: &[u16]) {
        self.0.retain(|(one, _)| !Arc::ptr_eq(one, node));
        if !slots.is_empty() {
            self.0.push((node.clone(), slots.to_vec()));
        }
    }

    /// Notes that a node doesn't take that slot over any more.
    pub(super) fn remove(&mut self, slot: u16, node: &Arc<Server>) {
        let of_node = self.0.iter_mut().filter(|(one, _)| Arc::ptr_eq(one, node));
        of_node.for_each(|(_, slots)| slots.retain(|one| *one != slot));
    }

    /// Forgets nodes that are others now, or gone.
    pub(super) fn forget(&mut self, gone: &[Arc<Server>]) {
        let is_gone = |node: &Arc<Server>| gone.iter().any(|gone| Arc::ptr_eq(gone, node));
        self.0.retain(|(node, _)| !is_gone(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Options;
    use crate::engine::net::address::Endpoint;
    use crate::engine::redis::address::{self, At};
    use crate::engine::redis::settings::Settings;

    #[test]
    fn node_takes_a_slot_over_until_it_says_otherwise_or_is_gone() {
        let address = address::parse("redis+cluster://a:1,a:2").unwrap();
        let settings = Arc::new(Settings::new(&address, &Options::default()).unwrap());
        let At::Cluster { hosts } = address.at else {
            panic!("it is one")
        };
        let server = |at| Arc::new(Server::new(Endpoint::Tcp(at), settings.clone()).unwrap());
        let nodes: Vec<_> = hosts.into_iter().map(server).collect();
        let mut importers = Importers::default();
        importers.set(&nodes[1], &[5, 6, 7]);
        let count = |importers: &Importers, slot| importers.of(slot, &nodes[0]).len();
        assert_eq!(count(&importers, 5), 1);
        assert!(importers.of(5, &nodes[1]).is_empty());
        importers.remove(5, &nodes[1]);
        assert_eq!((count(&importers, 5), count(&importers, 6)), (0, 1));
        importers.set(&nodes[1], &[7]);
        assert_eq!((count(&importers, 6), count(&importers, 7)), (0, 1));
        importers.forget(&nodes[1..]);
        assert_eq!(count(&importers, 7), 0);
    }
}
