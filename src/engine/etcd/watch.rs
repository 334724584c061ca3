//! How a waiter watches those in its way, and its own entry.

use super::client::Event;
use super::client::txn::Range;
use super::client::watch::Watch;
use super::keys::Keys;
use super::store::EtcdStore;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::Request;
use crate::engine::line::{Blocker, LineWatch, Watched};

/// A watch of some keys of one line, or of all of it.
#[derive(Debug)]
pub(super) struct EtcdWatch {
    watch: Watch,
    names: Vec<Keys>,
    ranges: Vec<Range>,
    has_puts: bool,
    /// Those that count.
    keys: Vec<String>,
    /// What happened later than this is news.
    revision: u64,
    endpoint: String,
}

/// More keys aren't watched one by one, but with all of their line.
const MOST_WATCHED: usize = 32;

impl EtcdWatch {
    pub(super) fn begin(
        store: &EtcdStore,
        request: Request<'_>,
        blocker: &Blocker,
        deadline: &Deadline,
    ) -> Result<Watched<Self>> {
        let names = store.keys(request.claim);
        let (keys, ranges) = watched(&names[blocker.name], blocker);
        let watch = store.client.watch(&ranges, blocker.heeds_changes, deadline);
        let watch = watch.map_err(|e| store.error(Some(request.key().name()), e))?;
        Ok(Watched {
            // Not also when it begins earlier: after data was restored the revisions that come are smaller.
            is_current: watch.begins_after() == blocker.revision,
            watch: EtcdWatch {
                watch,
                names,
                ranges,
                has_puts: blocker.heeds_changes,
                keys,
                revision: blocker.revision,
                endpoint: store.client.place().to_owned(),
            },
            holder: None,
        })
    }

    /// Whether events tell of one that counts. A watch that goes on may tell of what is over.
    fn is_news(&self, events: &[Event]) -> bool {
        let counts = |key: &[u8]| self.keys.iter().any(|one| one.as_bytes() == key);
        let mut new = events.iter().filter(|one| self.revision < one.revision);
        new.any(|event| counts(&event.key))
    }
}

/// The keys that count, and what is watched for them.
fn watched(name: &Keys, blocker: &Blocker) -> (Vec<String>, Vec<Range>) {
    let ids = blocker.ahead.iter().chain([&blocker.own]);
    let keys: Vec<_> = ids.map(|id| name.place(id)).collect();
    let ranges = match keys.len() {
        ..=MOST_WATCHED => keys.iter().cloned().map(Range::Key).collect(),
        _ => vec![name.line()],
    };
    (keys, ranges)
}

impl LineWatch for EtcdWatch {
    fn goes_on_for(&mut self, blocker: &Blocker) -> bool {
        let (keys, ranges) = watched(&self.names[blocker.name], blocker);
        let is_it = ranges == self.ranges && blocker.heeds_changes == self.has_puts;
        if is_it {
            (self.keys, self.revision) = (keys, blocker.revision);
        }
        is_it
    }

    fn wait(&mut self, until: &Deadline) -> Result<bool> {
        loop {
            let events = self.watch.next(until);
            let events = events.map_err(|e| e.into_error(None, &self.endpoint))?;
            if self.is_news(&events) {
                return Ok(true);
            }
            if events.is_empty() {
                return Ok(false);
            }
        }
    }
}
