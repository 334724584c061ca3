//! How a waiter watches those in its way, and its own entry.

use std::time::Duration;

use super::client::{Event, Range, Watch};
use super::far::time_to_go_in;
use super::keys::Keys;
use super::store::EtcdStore;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::Request;
use crate::engine::line::{Blocker, LineWatch, Snapshot, Watched};

/// A watch of some keys of one line, or of all of it.
#[derive(Debug)]
pub(super) struct EtcdWatch {
    watch: Watch,
    names: Vec<Keys>,
    ranges: Vec<Range>,
    has_puts: bool,
    /// Those that count.
    keys: Vec<String>,
    /// The one before that in the way, if just one is in the way. When it is gone, that one may have come to the front: it is looked at
    /// if it hasn't gone in soon.
    before: Option<String>,
    time_to_go_in: Duration,
    /// When.
    looks: Option<Deadline>,
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
        (blocker, seen): (&Blocker, &Snapshot),
        deadline: &Deadline,
    ) -> Result<Watched<Self>> {
        let names = store.keys(request.claim);
        let (keys, mut ranges) = watched(&names[blocker.name], blocker);
        let before = one_before(blocker, seen).map(|id| names[blocker.name].place(id));
        ranges.extend(before.clone().map(Range::Key));
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
                before,
                time_to_go_in: time_to_go_in(request.ttl),
                looks: None,
                revision: blocker.revision,
                endpoint: store.client.place().to_owned(),
            },
            holder: None,
        })
    }

    /// Whether events tell of one that counts. A watch that goes on may tell of what is over.
    fn is_news(&self, events: &[Event]) -> bool {
        let mut new = events.iter().filter(|one| self.revision < one.revision);
        new.any(|event| self.keys.contains(&event.key))
    }
}

/// The entry before the one that is in the way.
fn one_before<'a>(blocker: &Blocker, seen: &'a Snapshot) -> Option<&'a str> {
    let line = &seen.lines[blocker.name].0;
    let in_way = blocker.ahead.first().filter(|_| blocker.is_one)?;
    let at = line.iter().position(|entry| entry.id == *in_way)?;
    Some(&line[at.checked_sub(1)?].id)
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
    fn goes_on_for(&mut self, blocker: &Blocker, seen: &Snapshot) -> bool {
        let name = &self.names[blocker.name];
        let (keys, mut ranges) = watched(name, blocker);
        let before = one_before(blocker, seen).map(|id| name.place(id));
        let is_before = before == self.before;
        ranges.extend(before.map(Range::Key));
        let is_it = is_before && ranges == self.ranges && blocker.heeds_changes == self.has_puts;
        if is_it {
            (self.keys, self.revision) = (keys, blocker.revision);
        }
        is_it
    }

    fn wait(&mut self, until: &Deadline) -> Result<bool> {
        loop {
            let next = self
                .looks
                .as_ref()
                .map_or_else(|| until.clone(), |at| until.within(at.remaining()));
            let events = self.watch.next(&next);
            let events = events.map_err(|e| e.into_error(None, &self.endpoint))?;
            if self.is_news(&events) || self.looks.take_if(|at| at.is_over()).is_some() {
                return Ok(true);
            }
            let is_before = |event: &Event| self.before.as_ref() == Some(&event.key);
            if events.iter().any(is_before) {
                self.before = None;
                self.looks = Some(Deadline::after(self.time_to_go_in));
            } else if events.is_empty() {
                return Ok(false);
            }
        }
    }
}
