//! Who is told when something happens to a node.

use std::collections::{BTreeMap, BTreeSet};

use crosslock_world::service::Connection;

use super::change::{Event, Happened};
use super::jute::{Writer, answer};

type Watchers = BTreeMap<String, BTreeSet<Connection>>;

/// The watches that one server has. Each is over when it has told.
#[derive(Debug, Default)]
pub(super) struct Watches {
    data: Watchers,
    children: Watchers,
}

impl Watches {
    pub(super) fn watch_data(&mut self, path: &str, connection: Connection) {
        self.data
            .entry(path.to_owned())
            .or_default()
            .insert(connection);
    }

    pub(super) fn watch_children(&mut self, path: &str, connection: Connection) {
        self.children
            .entry(path.to_owned())
            .or_default()
            .insert(connection);
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, connection: Connection) {
        for watchers in [&mut self.data, &mut self.children] {
            watchers.retain(|_, of| {
                of.remove(&connection);
                !of.is_empty()
            });
        }
    }

    /// What is sent, and to whom.
    pub(super) fn tell(&mut self, event: &Event) -> (Vec<u8>, BTreeSet<Connection>) {
        let (code, of) = match event.happened {
            Happened::Created => (1, &mut self.data),
            Happened::Deleted => (2, &mut self.data),
            Happened::Changed => (3, &mut self.data),
            Happened::ChildrenChanged => (4, &mut self.children),
        };
        let mut told = of.remove(&event.path).unwrap_or_default();
        if event.happened == Happened::Deleted {
            // Whoever watches both is told once.
            told.extend(self.children.remove(&event.path).unwrap_or_default());
        }
        const CONNECTED: i32 = 3;
        let mut record = Writer::default();
        record.int(code).int(CONNECTED).text(&event.path);
        (answer(-1, -1, 0, &record.take()), told)
    }
}
