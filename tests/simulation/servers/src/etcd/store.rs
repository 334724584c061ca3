//! What a member stores: keys with their revisions, leases, and what has happened since the last compaction.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::http::{NOT_FOUND, OUT_OF_RANGE, PRECONDITION, Refusal};
use super::request::{Bounds, Command, Order, Put, Range, Target};

/// What a member stores. The same commands make the same of it at each.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) revision: i64,
    /// The last revision that is still known, once there was a compaction.
    pub(super) compacted: i64,
    keys: BTreeMap<Vec<u8>, Arc<KeyValue>>,
    pub(super) leases: BTreeMap<i64, Lease>,
    /// What has happened at this revision and later: that of the last compaction.
    events: Vec<Event>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct KeyValue {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) created: i64,
    pub(super) modified: i64,
    pub(super) version: i64,
    pub(super) lease: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// In seconds.
    pub(super) ttl: i64,
    pub(super) keys: BTreeSet<Vec<u8>>,
}

/// A key was put or deleted.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// What is there since; of one that was deleted no more than the key and the revision.
    pub(super) now: Arc<KeyValue>,
    pub(super) is_delete: bool,
    before: Option<Arc<KeyValue>>,
}

/// Changes at one revision.
#[derive(Debug)]
pub(super) struct Write<'a> {
    state: &'a mut State,
    has_changed: bool,
}

/// By etcd's default, which follows from its timeout of elections.
const SHORTEST_TTL: i64 = 2;

impl State {
    pub(super) fn new() -> Self {
        Self {
            revision: 1,
            compacted: -1,
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// Carries out what was agreed on. Its header has no more than the revision.
    pub(super) fn apply(&mut self, command: &Command) -> Result<Value, Refusal> {
        match command {
            Command::Put(put) => {
                self.check_lease(put.lease)?;
                Ok(self.write().put(put))
            }
            Command::Delete(bounds) => Ok(self.write().delete(bounds)),
            Command::Txn(txn) => self.transact(txn),
            Command::Grant { id, ttl } => self.grant(*id, *ttl),
            Command::Revoke(id) => self.revoke(*id),
            Command::Compact(revision) => self.compact(*revision),
            Command::Token(token) => Ok(json!({ "header": header(self.revision), "token": token })),
        }
    }

    pub(super) fn write(&mut self) -> Write<'_> {
        Write {
            state: self,
            has_changed: false,
        }
    }

    /// The keys that there are now.
    pub(super) fn within(&self, bounds: &Bounds) -> impl Iterator<Item = &Arc<KeyValue>> {
        within(&self.keys, bounds)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<KeyValue>> {
        self.keys.values()
    }

    /// What has happened from that revision on.
    pub(super) fn events(&self, from: i64) -> &[Event] {
        let first = self
            .events
            .partition_point(|event| event.now.modified < from);
        &self.events[first..]
    }

    fn grant(&mut self, id: i64, ttl: i64) -> Result<Value, Refusal> {
        if self.leases.contains_key(&id) {
            return Err(Refusal::new(PRECONDITION, "lease already exists"));
        }
        let ttl = ttl.max(SHORTEST_TTL);
        let keys = BTreeSet::new();
        self.leases.insert(id, Lease { ttl, keys });
        Ok(json!({ "header": header(self.revision), "ID": id.to_string(), "TTL": ttl.to_string() }))
    }

    fn revoke(&mut self, id: i64) -> Result<Value, Refusal> {
        let Some(lease) = self.leases.remove(&id) else {
            return Err(Refusal::new(NOT_FOUND, "requested lease not found"));
        };
        let mut write = self.write();
        for key in lease.keys {
            write.delete(&Bounds {
                key,
                end: Vec::new(),
            });
        }
        Ok(json!({ "header": write.header() }))
    }

    fn compact(&mut self, revision: i64) -> Result<Value, Refusal> {
        if revision <= self.compacted {
            let why = "mvcc: required revision has been compacted";
            return Err(Refusal::new(OUT_OF_RANGE, why));
        }
        self.check_revision(revision)?;
        self.compacted = revision;
        self.events.retain(|event| event.now.modified >= revision);
        Ok(json!({ "header": header(self.revision) }))
    }

    /// The answer to a range, which isn't part of a transaction that has written.
    pub(super) fn range(&self, range: &Range) -> Result<Value, Refusal> {
        self.check_revision(range.revision)?;
        Ok(self.found(range, self.revision))
    }

    fn found(&self, range: &Range, revision: i64) -> Value {
        let past;
        let keys = match range.revision {
            0 => &self.keys,
            at => {
                past = self.at(at);
                &past
            }
        };
        let all = within(keys, &range.bounds);
        let mut fields = Map::new();
        fields.insert("header".into(), header(revision));
        let mut found: Vec<_> = all.collect();
        put_number(&mut fields, "count", found.len());
        if !range.count_only {
            if range.select(&mut found) {
                fields.insert("more".into(), true.into());
            }
            let kvs: Vec<_> = found
                .iter()
                .map(|one| one.to_json(!range.keys_only))
                .collect();
            if !kvs.is_empty() {
                fields.insert("kvs".into(), kvs.into());
            }
        }
        fields.into()
    }

    /// The keys that there were.
    fn at(&self, revision: i64) -> BTreeMap<Vec<u8>, Arc<KeyValue>> {
        let mut keys = self.keys.clone();
        for event in self.events(revision + 1).iter().rev() {
            match &event.before {
                Some(before) => keys.insert(before.key.clone(), before.clone()),
                None => keys.remove(&event.now.key),
            };
        }
        keys
    }

    /// Takes the key from the lease that has it.
    fn detach(&mut self, one: &KeyValue) {
        if let Some(lease) = self.leases.get_mut(&one.lease) {
            lease.keys.remove(&one.key);
        }
    }
}

impl Write<'_> {
    pub(super) fn header(&self) -> Value {
        header(self.revision())
    }

    fn revision(&self) -> i64 {
        self.state.revision + i64::from(self.has_changed)
    }

    pub(super) fn put(&mut self, put: &Put) -> Value {
        let at = self.state.revision + 1;
        let before = self.state.keys.get(&put.key).cloned();
        let now = Arc::new(KeyValue {
            key: put.key.clone(),
            value: put.value.clone(),
            created: before.as_ref().map_or(at, |before| before.created),
            modified: at,
            version: before.as_ref().map_or(0, |before| before.version) + 1,
            lease: put.lease,
        });
        if let Some(before) = &before {
            self.state.detach(before);
        }
        if let Some(lease) = self.state.leases.get_mut(&put.lease) {
            lease.keys.insert(put.key.clone());
        }
        self.state.keys.insert(put.key.clone(), now.clone());
        self.happened(now, before, false);
        json!({ "header": self.header() })
    }

    pub(super) fn delete(&mut self, bounds: &Bounds) -> Value {
        let deleted: Vec<_> = self.state.within(bounds).cloned().collect();
        let at = self.state.revision + 1;
        for before in &deleted {
            self.state.keys.remove(&before.key);
            self.state.detach(before);
            let now = Arc::new(KeyValue {
                key: before.key.clone(),
                modified: at,
                ..KeyValue::default()
            });
            self.happened(now, Some(before.clone()), true);
        }
        let mut fields = Map::new();
        fields.insert("header".into(), self.header());
        put_number(&mut fields, "deleted", deleted.len());
        fields.into()
    }

    pub(super) fn range(&self, range: &Range) -> Value {
        self.state.found(range, self.revision())
    }

    fn happened(&mut self, now: Arc<KeyValue>, before: Option<Arc<KeyValue>>, is_delete: bool) {
        self.has_changed = true;
        self.state.events.push(Event {
            now,
            is_delete,
            before,
        });
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        self.state.revision = self.revision();
    }
}

impl Range {
    /// Leaves what is asked for, in its order. Says whether there is more.
    fn select(&self, found: &mut Vec<&Arc<KeyValue>>) -> bool {
        let is_in = |at: i64, (least, most): (i64, i64)| least <= at && (most == 0 || at <= most);
        found.retain(|one| is_in(one.modified, self.modified) && is_in(one.created, self.created));
        let is_filtered = self.modified != (0, 0) || self.created != (0, 0);
        // Without an order of its own the limit comes first.
        if self.order == Order::None && !is_filtered && self.limit > 0 {
            found.truncate(self.limit + 1);
        }
        let compare = |a: &KeyValue, b: &KeyValue| match self.target {
            Target::Key => a.key.cmp(&b.key),
            Target::Version => a.version.cmp(&b.version),
            Target::Create => a.created.cmp(&b.created),
            Target::Mod => a.modified.cmp(&b.modified),
            Target::Value => a.value.cmp(&b.value),
            Target::Lease => a.lease.cmp(&b.lease),
        };
        match self.order {
            Order::Descend => found.sort_by(|a, b| compare(b, a)),
            Order::Ascend | Order::None => found.sort_by(|a, b| compare(a, b)),
        }
        let has_more = self.limit > 0 && found.len() > self.limit;
        if has_more {
            found.truncate(self.limit);
        }
        has_more
    }
}

impl KeyValue {
    fn to_json(&self, with_value: bool) -> Value {
        let mut fields = Map::new();
        fields.insert("key".into(), BASE64.encode(&self.key).into());
        put_number(&mut fields, "create_revision", self.created);
        put_number(&mut fields, "mod_revision", self.modified);
        put_number(&mut fields, "version", self.version);
        put_number(&mut fields, "lease", self.lease);
        if with_value && !self.value.is_empty() {
            fields.insert("value".into(), BASE64.encode(&self.value).into());
        }
        fields.into()
    }
}

impl Event {
    pub(super) fn to_json(&self) -> Value {
        let kv = self.now.to_json(true);
        match self.is_delete {
            true => json!({ "type": "DELETE", "kv": kv }),
            false => json!({ "kv": kv }),
        }
    }
}

fn within<'a>(
    keys: &'a BTreeMap<Vec<u8>, Arc<KeyValue>>,
    bounds: &Bounds,
) -> impl Iterator<Item = &'a Arc<KeyValue>> + use<'a> {
    let first = Included(bounds.key.as_slice());
    let last = match bounds.end.as_slice() {
        [] => Included(bounds.key.as_slice()),
        [0] => Unbounded,
        end => Excluded(end),
    };
    let found = (!bounds.is_empty()).then(|| keys.range::<[u8], _>((first, last)));
    found.into_iter().flatten().map(|(_, one)| one)
}

/// The header that an operation has within a transaction.
pub(super) fn header(revision: i64) -> Value {
    json!({ "revision": revision.to_string() })
}

/// Leaves out zero, as etcd does.
pub(super) fn put_number<T: ToString + Default + PartialEq>(
    fields: &mut Map<String, Value>,
    field: &str,
    number: T,
) {
    if number != T::default() {
        fields.insert(field.into(), number.to_string().into());
    }
}
