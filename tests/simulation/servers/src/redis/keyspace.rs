//! The keys of a server, and how long each lasts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::reply::Reply;
use super::slots::slot_of;
use super::sorted::Sorted;

pub(super) type Bytes = Vec<u8>;

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(Bytes),
    List(VecDeque<Bytes>),
    Hash(Hash),
    Sorted(Sorted),
}

/// Fields and their values, in the order in which the fields have come.
pub(super) type Hash = Vec<(Bytes, Bytes)>;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// In milliseconds since 1970.
    pub(super) ends: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Keyspace {
    entries: BTreeMap<Bytes, Entry>,
    /// When keys end.
    ends: BTreeSet<(i64, Bytes)>,
    /// The time since 1970, which stands still while a command is carried out.
    pub(super) wall: Duration,
    /// Whether keys that are over are left to another, which says when they are gone.
    pub(super) is_copy: bool,
    /// The keys that were written since this was taken last, if anybody takes it.
    pub(super) changed: Option<BTreeSet<Bytes>>,
}

pub(super) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/// One of the kinds of values.
pub(super) trait Kind: Sized {
    fn empty() -> Value;
    fn of(value: &mut Value) -> Option<&mut Self>;
}

macro_rules! kind {
    ($type:ty, $variant:ident) => {
        impl Kind for $type {
            fn empty() -> Value {
                Value::$variant(Default::default())
            }

            fn of(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(held) => Some(held),
                    _ => None,
                }
            }
        }
    };
}

kind!(Bytes, Text);
kind!(VecDeque<Bytes>, List);
kind!(Hash, Hash);
kind!(Sorted, Sorted);

impl Value {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::List(_) => "list",
            Value::Hash(_) => "hash",
            Value::Sorted(_) => "zset",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Value::Text(_) => false,
            Value::List(list) => list.is_empty(),
            Value::Hash(hash) => hash.is_empty(),
            Value::Sorted(sorted) => sorted.is_empty(),
        }
    }
}

impl Keyspace {
    pub(super) fn now(&self) -> i64 {
        i64::try_from(self.wall.as_millis()).unwrap_or(i64::MAX)
    }

    fn is_over(&self, entry: &Entry) -> bool {
        entry.ends.is_some_and(|ends| ends <= self.now())
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !self.is_over(entry))
    }

    /// What a key holds, if it is of that kind.
    pub(super) fn held<K: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut K>, Reply> {
        let now = self.now();
        let entry = self.entries.get_mut(key);
        let entry = entry.filter(|entry| entry.ends.is_none_or(|ends| ends > now));
        match entry.map(|entry| K::of(&mut entry.value)) {
            None => Ok(None),
            Some(Some(held)) => Ok(Some(held)),
            Some(None) => Err(Reply::error(WRONG_TYPE)),
        }
    }

    /// The same; a key that isn't there is made.
    pub(super) fn held_or_new<K: Kind>(&mut self, key: &[u8]) -> Result<&mut K, Reply> {
        if !self.entries.contains_key(key) {
            let (value, ends) = (K::empty(), None);
            self.entries.insert(key.to_vec(), Entry { value, ends });
        }
        let held = self.held(key)?;
        held.ok_or_else(|| Reply::error("ERR the key is over"))
    }

    pub(super) fn insert(&mut self, key: &[u8], value: Value, ends: Option<i64>) {
        self.remove(key);
        if let Some(ends) = ends {
            self.ends.insert((ends, key.to_vec()));
        }
        self.entries.insert(key.to_vec(), Entry { value, ends });
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        if let Some(ends) = entry.ends {
            self.ends.remove(&(ends, key.to_vec()));
        }
        Some(entry)
    }

    /// Says when a key ends; a time that is over removes it.
    pub(super) fn set_end(&mut self, key: &[u8], ends: Option<i64>) {
        if let Some(entry) = self.remove(key)
            && ends.is_none_or(|ends| ends > self.now())
        {
            self.insert(key, entry.value, ends);
        }
    }

    /// Removes a key that is over.
    pub(super) fn expire(&mut self, key: &[u8]) {
        let is_over = self
            .entries
            .get(key)
            .is_some_and(|entry| self.is_over(entry));
        if is_over && !self.is_copy {
            self.remove(key);
            self.note(key);
        }
    }

    /// Removes all that are over.
    pub(super) fn expire_all(&mut self) {
        while let Some((ends, key)) = self.ends.first().cloned()
            && ends <= self.now()
            && !self.is_copy
        {
            self.expire(&key);
        }
    }

    /// When the next key ends.
    pub(super) fn next_end(&self) -> Option<i64> {
        let (ends, _) = self.ends.first().filter(|_| !self.is_copy)?;
        Some(*ends)
    }

    /// A key was written: one that holds nothing any more is removed.
    pub(super) fn written(&mut self, key: &[u8]) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.value.is_empty())
        {
            self.remove(key);
        }
        self.note(key);
    }

    fn note(&mut self, key: &[u8]) {
        if let Some(changed) = self.changed.as_mut().filter(|all| !all.contains(key)) {
            changed.insert(key.to_vec());
        }
    }

    /// A key as it is, also if it is over: for a copy.
    pub(super) fn raw(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// What a copy is told that a key holds.
    pub(super) fn put(&mut self, key: &[u8], entry: Option<Entry>) {
        match entry {
            Some(entry) => self.insert(key, entry.value, entry.ends),
            None => drop(self.remove(key)),
        }
    }

    /// All that aren't over, in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        let all = self.entries.iter();
        all.filter(|(_, entry)| !self.is_over(entry))
    }

    /// All, for a copy.
    pub(super) fn all(&self) -> &BTreeMap<Bytes, Entry> {
        &self.entries
    }

    pub(super) fn replace_all(&mut self, entries: BTreeMap<Bytes, Entry>) {
        let ends = entries.iter();
        let ends = ends.filter_map(|(key, entry)| Some((entry.ends?, key.clone())));
        self.ends = ends.collect();
        self.entries = entries;
    }

    pub(super) fn clear(&mut self) {
        for key in self.entries.keys().cloned().collect::<Vec<_>>() {
            self.note(&key);
        }
        self.replace_all(BTreeMap::new());
    }

    /// Removes the keys of slots that are another's now.
    pub(super) fn drop_slots(&mut self, slots: &BTreeSet<u16>) {
        let all = self.entries.keys();
        let all = all.filter(|key| slots.contains(&slot_of(key)));
        for key in all.cloned().collect::<Vec<_>>() {
            self.remove(&key);
            self.note(&key);
        }
    }

    /// The keys that have an end.
    pub(super) fn volatile(&self) -> impl Iterator<Item = &Bytes> {
        self.ends.iter().map(|(_, key)| key)
    }
}
