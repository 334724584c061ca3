//! What stands in the way of an owner in line, and how it is watched.

use super::client::failure::Failure;
use super::client::txn::Range;
use super::client::watch::Watch;
use super::client::{Client, Event};
use super::keys::Keys;
use super::place::{Line, Place};
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::engine::line::Standing;

/// Those in the way, of whom one has to go before it is the owner's turn; and the owner's own place, which somebody may delete.
#[derive(Clone, Debug)]
pub(super) struct Blocker {
    keys: Vec<String>,
    /// What is watched, which may be more than their keys.
    ranges: Vec<Range>,
    /// Whether they may also make way without leaving.
    puts: bool,
    /// They were there then.
    pub(super) revision: u64,
}

/// More keys aren't watched one by one, but with all of their line.
const MOST_WATCHED: usize = 32;

impl Blocker {
    /// What keeps the owner at that place from holding; `None`: nothing.
    pub(super) fn of(
        line: &Line,
        (at, standing): (usize, Standing),
        keys: &Keys,
        revision: u64,
    ) -> Option<Self> {
        let in_way: Vec<&Place> = match standing {
            Standing::Holds => return None,
            Standing::Behind(other) => vec![&line.0[other]],
            Standing::BehindSome => line.in_way_of(at).collect(),
        };
        let places = in_way.into_iter().chain([&line.0[at]]);
        let watched: Vec<_> = places.map(|place| place.key.clone()).collect();
        let ranges = match watched.len() {
            ..=MOST_WATCHED => watched.iter().cloned().map(Range::Key).collect(),
            _ => vec![keys.line()],
        };
        Some(Blocker {
            keys: watched,
            ranges,
            // A writer that goes on as a reader makes way for readers, and for nobody else.
            puts: line.0[at].mode() == Mode::Shared,
            revision,
        })
    }

    pub(super) fn watch(&self, client: &Client, until: &Deadline) -> Result<Watch, Failure> {
        client.watch(&self.ranges, self.puts, until)
    }

    /// Whether a watch of the other tells of this one, too.
    pub(super) fn is_watched_as(&self, other: &Self) -> bool {
        self.ranges == other.ranges && self.puts == other.puts
    }

    /// Whether events tell of one of them. A watch that goes on may tell of what is over.
    pub(super) fn is_changed_by(&self, events: &[Event]) -> bool {
        let is_one = |key: &[u8]| self.keys.iter().any(|one| one.as_bytes() == key);
        let mut new = events.iter().filter(|one| self.revision < one.revision);
        new.any(|event| is_one(&event.key))
    }
}
