//! What a server has written, for those that copy it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::about::Role;
use super::channels::{Sort, deliver};
use super::keyspace::{Bytes, Entry};
use super::node::Node;
use super::reply::Reply;

/// What one command has written and published: others see all of it, or nothing.
#[derive(Debug)]
pub(super) struct Record {
    changes: Vec<(Bytes, Option<Entry>)>,
    published: Vec<(Sort, Bytes, Bytes)>,
}

/// The newest records, of a server that others may copy.
#[derive(Debug, Default)]
pub(super) struct Log {
    records: VecDeque<Arc<Record>>,
    /// Of which line of masters its data is: a copy with another one is copied anew.
    pub(super) history: u64,
}

/// More than are on their way at once. A copy that is further behind is copied anew.
const MOST_RECORDS: usize = 20_000;

impl Node {
    /// Makes it one that others may copy.
    pub(super) fn keep_log(&mut self) {
        self.state.keys.changed = Some(BTreeSet::new());
    }

    /// Makes a record of what was written since the last one.
    pub(super) fn commit(&mut self) {
        let published = std::mem::take(&mut self.state.published);
        let keys = &mut self.state.keys;
        let Some(changed) = keys.changed.as_mut() else {
            return;
        };
        let changed = std::mem::take(changed);
        if keys.is_copy || changed.is_empty() && published.is_empty() {
            return;
        }
        let changes = changed.into_iter();
        let changes = changes.map(|key| (keys.raw(&key).cloned(), key));
        let changes = changes.map(|(entry, key)| (key, entry)).collect();
        self.log
            .records
            .push_back(Arc::new(Record { changes, published }));
        if self.log.records.len() > MOST_RECORDS {
            self.log.records.pop_front();
        }
        self.state.about.offset += 1;
    }

    /// The records behind `from`, up to `end`; `None` if some aren't kept any more.
    pub(super) fn records(&self, from: u64, end: u64) -> Option<Vec<Arc<Record>>> {
        let first = self.state.about.offset - self.log.records.len() as u64;
        let skipped = usize::try_from(from.checked_sub(first)?).ok()?;
        let length = usize::try_from(end.saturating_sub(from)).ok()?;
        let records = self.log.records.iter().skip(skipped).take(length);
        Some(records.cloned().collect())
    }

    /// Forgets the records up to there: all that copy it have them.
    pub(super) fn forget_records(&mut self, end: u64) {
        let kept = usize::try_from(self.state.about.offset.saturating_sub(end)).unwrap_or(0);
        let all = self.log.records.len();
        self.log.records.drain(..all - kept.min(all));
    }

    /// Takes over what the server has written that it copies.
    pub(super) fn apply(&mut self, records: &[Arc<Record>]) {
        for record in records {
            for (key, entry) in &record.changes {
                self.state.keys.put(key, entry.clone());
            }
            for (sort, channel, message) in &record.published {
                deliver(&mut self.state, *sort, channel, message);
            }
            self.state.about.offset += 1;
        }
    }

    /// Takes over all that it has.
    pub(super) fn copy_all(&mut self, master: &Node) {
        self.state.keys.replace_all(master.state.keys.all().clone());
        self.state.about.offset = master.state.about.offset;
        self.log.history = master.log.history;
    }

    /// Becomes a master, with what it has.
    pub(super) fn promote(&mut self, history: u64) {
        let replicas = Vec::new();
        self.state.about.role = Role::Master { replicas };
        self.state.keys.is_copy = false;
        self.log = Log {
            history,
            ..Log::default()
        };
    }

    /// Becomes a copy of another.
    pub(super) fn follow(&mut self, master: (String, u16)) {
        let is_linked = false;
        self.state.about.role = Role::Replica { master, is_linked };
        self.state.keys.is_copy = true;
        self.log.records.clear();
        self.acks.clear();
        let error = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
        for client in self.waiting() {
            self.end_wait(client, &Reply::error(error));
        }
    }
}
