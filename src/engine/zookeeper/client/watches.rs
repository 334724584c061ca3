//! Who watches which node on a connection.

use std::collections::HashMap;

use super::answer::{Event, EventKind};
use super::watcher::Listening;

/// Who watches which node on a connection. A server sends one event for all watches of a kind on a node.
#[derive(Debug, Default)]
pub(super) struct Watches {
    nodes: HashMap<String, Vec<Watch>>,
    /// How many nodes there are when those are forgotten for which nobody listens any more.
    full: usize,
}

/// What of a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Data,
    Children,
}

#[derive(Clone, Debug)]
struct Watch {
    watched: Watched,
    listening: Listening,
}

/// With fewer nodes it isn't worth to look who still listens.
const FEW: usize = 64;

impl Watches {
    pub(super) fn add(&mut self, path: String, watched: Watched, listening: Listening) {
        listening.set();
        if self.nodes.len() >= self.full.max(FEW) {
            self.nodes.retain(|_, watches| {
                watches.retain(|watch| watch.listening.is_alive());
                !watches.is_empty()
            });
            self.full = self.nodes.len() * 2;
        }
        let watches = self.nodes.entry(path).or_default();
        watches.retain(|watch| watch.listening.is_alive());
        watches.push(Watch { watched, listening });
    }

    /// Who is to be told of an event, which ends their watches.
    pub(super) fn take(&mut self, event: &Event) -> Vec<Listening> {
        let is_told = |watched| match event.kind {
            EventKind::Data => watched == Watched::Data,
            EventKind::Children => watched == Watched::Children,
            EventKind::Deleted => true,
            EventKind::Other => false,
        };
        let Some(watches) = self.nodes.get_mut(&event.path) else {
            return Vec::new();
        };
        let told = watches.extract_if(.., |watch| is_told(watch.watched));
        let told = told.map(|watch| watch.listening).collect();
        if watches.is_empty() {
            self.nodes.remove(&event.path);
        }
        told
    }

    /// All that watch anything: the connection is lost.
    pub(super) fn take_all(&mut self) -> Vec<Listening> {
        let all = std::mem::take(&mut self.nodes).into_values().flatten();
        all.map(|watch| watch.listening).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::watcher::{Told, Watcher};
    use super::*;

    fn event(kind: EventKind) -> Event {
        let path = "/a".to_owned();
        Event { kind, path }
    }

    #[test]
    fn event_is_for_those_that_watch_just_that() {
        for (kind, data, children) in [
            (EventKind::Data, true, false),
            (EventKind::Children, false, true),
            (EventKind::Deleted, true, true),
            (EventKind::Other, false, false),
        ] {
            let mut watches = Watches::default();
            let watchers = [Watched::Data, Watched::Children].map(|watched| {
                let watcher = Watcher::new();
                watches.add("/a".to_owned(), watched, watcher.listening());
                watcher
            });
            let other = Watcher::new();
            watches.add("/b".to_owned(), Watched::Data, other.listening());
            let tell = |told: Vec<Listening>| told.iter().for_each(|one| one.tell(Told::Changed));
            tell(watches.take(&event(kind)));
            let told = watchers.map(|watcher| watcher.told() == Told::Changed);
            assert_eq!(told, [data, children], "{kind:?}");
            assert_eq!(other.told(), Told::Nothing);
            assert!(watches.take(&event(kind)).is_empty());
        }
    }

    #[test]
    fn those_that_left_are_forgotten() {
        let mut watches = Watches::default();
        let stays = Watcher::new();
        watches.add("/stays".to_owned(), Watched::Data, stays.listening());
        for number in 0..10_000 {
            let leaves = Watcher::new();
            watches.add(format!("/{number}"), Watched::Data, leaves.listening());
            watches.add("/a".to_owned(), Watched::Data, leaves.listening());
        }
        assert!(watches.nodes.len() <= 2 * FEW);
        assert_eq!(watches.nodes["/a"].len(), 1);
        let all = watches.take_all();
        all.iter().for_each(|one| one.tell(Told::ConnectionLost));
        assert_eq!(stays.told(), Told::ConnectionLost);
    }
}
