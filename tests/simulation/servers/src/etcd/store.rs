//! What a member stores: keys with their revisions, and leases.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::http::Refusal;
use super::request::{self, Command, Compare, Op, Order, Put, Range, Target, Txn, Wanted};
use super::strangers::is_stranger;

/// What a member stores. The same commands make the same of it at each.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) revision: i64,
    keys: BTreeMap<Vec<u8>, KeyValue>,
    pub(super) leases: BTreeMap<i64, Lease>,
    /// What the last command has changed.
    pub(super) events: Vec<Event>,
    /// Keys of other programs that were deleted, and not by the end of their lease.
    pub(super) put_out: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct KeyValue {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    created: i64,
    modified: i64,
    version: i64,
    pub(super) lease: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// In seconds.
    pub(super) ttl: i64,
    keys: BTreeSet<Vec<u8>>,
}

/// A key was put or deleted: of one that was deleted there is no more than the key and the revision.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) now: KeyValue,
    pub(super) is_delete: bool,
}

/// By etcd's default, which follows from its timeout of elections.
const SHORTEST_TTL: i64 = 2;

/// What a transaction does: one branch, and one branch of each transaction in it.
struct Chosen<'a> {
    holds: bool,
    ops: Vec<(&'a Op, Option<Chosen<'a>>)>,
}

impl State {
    pub(super) fn new() -> Self {
        State {
            revision: 1,
            ..State::default()
        }
    }

    /// Carries out what was agreed on. Its header has no more than the revision.
    pub(super) fn apply(&mut self, command: &Command) -> Result<Value, Refusal> {
        self.events.clear();
        let answer = match command {
            Command::Txn(txn) => self.transact(txn),
            Command::Grant(lease) => self.grant(lease),
            Command::Revoke(id) => self.revoke(*id),
        };
        self.revision = self.revision();
        answer
    }

    /// That of what is under way.
    fn revision(&self) -> i64 {
        let has_changed = self
            .events
            .first()
            .is_some_and(|one| one.now.modified > self.revision);
        self.revision + i64::from(has_changed)
    }

    fn header(&self) -> Value {
        header(self.revision())
    }

    fn within(&self, key: &[u8], end: &[u8]) -> impl Iterator<Item = &KeyValue> {
        let last = match end.is_empty() {
            true => Included(key),
            false => Excluded(end),
        };
        let is_any = end.is_empty() || key < end;
        let found = is_any.then(|| self.keys.range::<[u8], _>((Included(key), last)));
        found.into_iter().flatten().map(|(_, one)| one)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &KeyValue> {
        self.keys.values()
    }

    fn grant(&mut self, request::Lease { id, ttl }: &request::Lease) -> Result<Value, Refusal> {
        let (id, ttl) = (*id, *ttl);
        if self.leases.contains_key(&id) {
            return Err(Refusal::LEASE_EXISTS);
        }
        let (ttl, keys) = (ttl.max(SHORTEST_TTL), BTreeSet::new());
        self.leases.insert(id, Lease { ttl, keys });
        Ok(json!({ "header": self.header(), "ID": id.to_string(), "TTL": ttl.to_string() }))
    }

    fn revoke(&mut self, id: i64) -> Result<Value, Refusal> {
        let lease = self.leases.remove(&id).ok_or(Refusal::NO_LEASE)?;
        for key in lease.keys {
            self.delete(&Range {
                key,
                ..Range::default()
            });
        }
        Ok(json!({ "header": self.header() }))
    }

    /// Carries out a transaction, or refuses all of it. Its compares see nothing of what it writes.
    pub(super) fn transact(&mut self, txn: &Txn) -> Result<Value, Refusal> {
        let chosen = self.choose(txn);
        self.check(&chosen)?;
        let mut answer = self.carry_out(&chosen);
        answer["header"] = self.header();
        Ok(answer)
    }

    fn choose<'a>(&self, txn: &'a Txn) -> Chosen<'a> {
        let holds = txn.compare.iter().all(|compare| self.holds(compare));
        let branch = if holds { &txn.success } else { &txn.failure };
        let ops = branch.iter().map(|op| match op {
            Op::Txn(txn) => (op, Some(self.choose(txn))),
            _ => (op, None),
        });
        Chosen {
            holds,
            ops: ops.collect(),
        }
    }

    fn holds(&self, compare: &Compare) -> bool {
        let holds = |one: &KeyValue| {
            let order = match compare.target {
                Target::Create => one.created.cmp(&compare.create_revision),
                Target::Mod => one.modified.cmp(&compare.mod_revision),
                Target::Value => one.value.cmp(&compare.value),
            };
            match compare.result {
                Wanted::Equal => order.is_eq(),
                Wanted::Greater => order.is_gt(),
                Wanted::Less => order.is_lt(),
            }
        };
        let mut there = self.within(&compare.key, &compare.range_end).peekable();
        if there.peek().is_some() {
            return there.all(holds);
        }
        // What isn't there has no value, and 0 for its numbers.
        compare.target != Target::Value && holds(&KeyValue::default())
    }

    fn check(&self, chosen: &Chosen<'_>) -> Result<(), Refusal> {
        chosen.ops.iter().try_for_each(|(op, inner)| match op {
            Op::Put(put) if put.lease != 0 && !self.leases.contains_key(&put.lease) => {
                Err(Refusal::NO_LEASE)
            }
            _ => inner.iter().try_for_each(|inner| self.check(inner)),
        })
    }

    fn carry_out(&mut self, chosen: &Chosen<'_>) -> Value {
        let mut responses = Vec::new();
        for (op, inner) in &chosen.ops {
            responses.push(match op {
                Op::Put(put) => json!({ "response_put": self.put(put) }),
                Op::Delete(range) => {
                    let keys = self.within(&range.key, &range.range_end);
                    let strangers = keys.filter(|one| is_stranger(&one.key));
                    let strangers: Vec<_> = strangers.map(|one| one.key.clone()).collect();
                    self.put_out.extend(strangers);
                    json!({ "response_delete_range": self.delete(range) })
                }
                Op::Range(range) => json!({ "response_range": self.range(range) }),
                Op::Txn(_) => {
                    let told = inner.as_ref().map(|inner| self.carry_out(inner));
                    json!({ "response_txn": told })
                }
            });
        }
        // A transaction inside another has nothing in its header.
        let mut answer = json!({ "header": {} });
        if chosen.holds {
            answer["succeeded"] = true.into();
        }
        if !responses.is_empty() {
            answer["responses"] = responses.into();
        }
        answer
    }

    fn put(&mut self, put: &Put) -> Value {
        let at = self.revision + 1;
        let (created, version) = match self.keys.get(&put.key) {
            None => (at, 0),
            Some(before) => (before.created, before.version),
        };
        self.detach(&put.key);
        if let Some(lease) = self.leases.get_mut(&put.lease) {
            lease.keys.insert(put.key.clone());
        }
        let now = KeyValue {
            key: put.key.clone(),
            value: put.value.clone(),
            created,
            modified: at,
            version: version + 1,
            lease: put.lease,
        };
        self.keys.insert(put.key.clone(), now.clone());
        self.happened(now, false);
        json!({ "header": self.header() })
    }

    /// Takes a key from the lease that has it.
    fn detach(&mut self, key: &[u8]) {
        let lease = self.keys.get(key).map(|one| one.lease);
        if let Some(lease) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.keys.remove(key);
        }
    }

    fn delete(&mut self, range: &Range) -> Value {
        let deleted: Vec<_> = self
            .within(&range.key, &range.range_end)
            .map(|one| one.key.clone())
            .collect();
        let (count, modified) = (deleted.len(), self.revision + 1);
        for key in deleted {
            self.detach(&key);
            self.keys.remove(&key);
            let now = KeyValue {
                key,
                modified,
                ..KeyValue::default()
            };
            self.happened(now, true);
        }
        let mut fields = Map::new();
        fields.insert("header".into(), self.header());
        put_number(&mut fields, "deleted", count);
        fields.into()
    }

    fn happened(&mut self, now: KeyValue, is_delete: bool) {
        self.events.push(Event { now, is_delete });
    }

    fn range(&self, range: &Range) -> Value {
        let mut found: Vec<_> = self.within(&range.key, &range.range_end).collect();
        let mut fields = Map::new();
        fields.insert("header".into(), self.header());
        put_number(&mut fields, "count", found.len());
        let last = range.max_create_revision;
        found.retain(|one| last == 0 || one.created <= last);
        if range.sort_target == Some(Target::Create) {
            let sign = match range.sort_order {
                Some(Order::Descend) => -1,
                _ => 1,
            };
            found.sort_by_key(|one| sign * one.created);
        }
        let limit = usize::try_from(range.limit).unwrap_or(0);
        if limit > 0 && found.len() > limit {
            found.truncate(limit);
            fields.insert("more".into(), true.into());
        }
        if !found.is_empty() {
            let found = found.iter().map(|one| one.to_json(!range.keys_only));
            fields.insert("kvs".into(), found.collect());
        }
        fields.into()
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

pub(super) fn header(revision: i64) -> Value {
    json!({ "revision": revision.to_string() })
}

/// Leaves out zero, as etcd does.
pub(super) fn put_number<T>(fields: &mut Map<String, Value>, field: &str, number: T)
where
    T: ToString + Default + PartialEq,
{
    if number != T::default() {
        fields.insert(field.into(), number.to_string().into());
    }
}
