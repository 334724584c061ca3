//! Who is told when something happens to a node.

use std::collections::BTreeSet;

use crosslock_world::service::Connection;

use super::change::{Event, Happened};
use super::jute::{Writer, answer};

/// What of a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watched {
    Data,
    Children,
}

/// The watches that one server has. Each is over when it has told.
#[derive(Debug, Default)]
pub(super) struct Watches(BTreeSet<(Watched, String, Connection)>);

impl Watches {
    pub(super) fn watch(&mut self, what: Watched, path: &str, connection: Connection) {
        self.0.insert((what, path.to_owned(), connection));
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, connection: Connection) {
        self.0.retain(|(.., of)| *of != connection);
    }

    fn take(&mut self, what: Watched, path: &str) -> BTreeSet<Connection> {
        let is_it =
            |(watched, of, _): &&(Watched, String, Connection)| *watched == what && of == path;
        let all = self.0.range((what, path.to_owned(), 0)..).take_while(is_it);
        let all: BTreeSet<_> = all.map(|(.., connection)| *connection).collect();
        for connection in &all {
            self.0.remove(&(what, path.to_owned(), *connection));
        }
        all
    }

    /// What is sent, and to whom.
    pub(super) fn tell(&mut self, (happened, path): &Event) -> (Vec<u8>, BTreeSet<Connection>) {
        const CONNECTED: i32 = 3;
        let mut told = match happened {
            Happened::ChildrenChanged => BTreeSet::new(),
            _ => self.take(Watched::Data, path),
        };
        if matches!(happened, Happened::Deleted | Happened::ChildrenChanged) {
            // Whoever watches both is told once.
            told.extend(self.take(Watched::Children, path));
        }
        let mut record = Writer::default();
        let code = *happened as i32;
        record.int(code).int(CONNECTED).text(path);
        (answer(-1, -1, 0, &record.take()), told)
    }
}
