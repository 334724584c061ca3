//! What a transaction asks of etcd, and how that looks in the JSON of its gateway.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value, json};

use crate::base::sys;

/// A lease at the servers, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeaseId(pub(crate) i64);

/// As etcd's own tools write it.
impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// This bit of its number says that a lease is a long one.
const LONG: i64 = 1 << 62;

impl LeaseId {
    /// Chosen here, so that a request without an answer can be repeated, or undone. No other process chooses the
    /// same: a random number of 62 bits, which isn't drawn ahead.
    pub(crate) fn new() -> Self {
        let (first, second) = sys::random_uuid().as_u64_pair();
        let bits = (first ^ second) >> 2;
        LeaseId(i64::try_from(bits).map_or(1, |bits| bits.max(1)))
    }

    /// The same of a long lease, which every process can tell by its number.
    pub(crate) fn new_long() -> Self {
        LeaseId(Self::new().0 | LONG)
    }

    pub(crate) fn is_long(self) -> bool {
        self.0 & LONG != 0
    }
}

/// If all of `compares` hold, `then` is carried out, else `otherwise`: at one revision, or not at all.
///
/// A transaction that changes nothing is linearizable as soon as it reads one key: one without any operation isn't,
/// and may be answered from the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Txn {
    pub(crate) compares: Vec<Compare>,
    pub(crate) then: Vec<Op>,
    /// Each key is put at most once in each branch: the servers refuse another.
    pub(crate) otherwise: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Key(String),
    /// All keys that begin so. It isn't empty.
    Prefix(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// There is no such key.
    Absent(Range),
    /// The key was created at that revision.
    CreatedAt(String, u64),
    /// All such keys were created before that revision. Holds if there are none.
    CreatedBefore(Range, u64),
    /// All such keys were created at that revision or later. Doesn't hold if there are none: the servers take a key
    /// that isn't there for one that was created at 0.
    NoneCreatedBefore(Range, u64),
    /// The key was changed last at that revision.
    ModifiedAt(String, u64),
    /// The key is there, and has that value.
    Value(String, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Without a lease the key has none afterwards.
    Put {
        key: String,
        value: Vec<u8>,
        lease: Option<LeaseId>,
    },
    Delete(Range),
    /// A transaction within this one, which has no operation in its `otherwise`.
    If(Txn),
    /// Reads in the order of creation.
    Get(Range),
    /// Reads those created last, the newest first: of all, or of those created before that revision.
    Newest {
        range: Range,
        before: Option<u64>,
        /// `None`: all.
        limit: Option<u32>,
    },
    /// Reads in the order of keys.
    List {
        prefix: String,
        /// The first key that counts, if it is there. `None`: that with the prefix.
        from: Option<String>,
        limit: u32,
        keys_only: bool,
    },
}

impl Op {
    fn writes(&self) -> bool {
        match self {
            Op::Put { .. } | Op::Delete(_) => true,
            Op::If(txn) => !txn.only_reads(),
            Op::Get(_) | Op::Newest { .. } | Op::List { .. } => false,
        }
    }
}

impl Txn {
    /// In the JSON of etcd's gateway.
    pub(super) fn to_json(&self) -> Value {
        let compares = self.compares.iter().map(compare);
        json!({
            "compare": compares.collect::<Vec<_>>(),
            "success": operations(&self.then),
            "failure": operations(&self.otherwise),
        })
    }

    /// Whether it is harmless to carry it out twice, because it changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        !self.ops().any(Op::writes)
    }

    /// Whether it reads, in one case or the other: the servers then answer from the present in both.
    pub(super) fn reads(&self) -> bool {
        self.ops().any(|op| !op.writes())
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.then.iter().chain(&self.otherwise)
    }
}

impl LeaseId {
    /// That lease, for a request about it alone.
    pub(super) fn to_json(self) -> Value {
        json!({ "ID": self.0.to_string() })
    }
}

impl Range {
    /// The fields that name its keys.
    pub(super) fn bounds(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        match self {
            Range::Key(key) => _ = fields.insert("key".into(), text(key)),
            Range::Prefix(prefix) => {
                fields.insert("key".into(), text(prefix));
                fields.insert("range_end".into(), end(prefix));
            }
        }
        fields
    }
}

fn compare(compare: &Compare) -> Value {
    use Compare::{Absent, CreatedAt, CreatedBefore, ModifiedAt, NoneCreatedBefore, Value as Is};
    // What isn't there has 0 for its revisions.
    let of_key = |key: &String| Range::Key(key.clone()).bounds();
    let (mut fields, target, result, (field, value)) = match compare {
        Absent(range) => (range.bounds(), "CREATE", "EQUAL", created(0)),
        CreatedAt(key, at) => (of_key(key), "CREATE", "EQUAL", created(*at)),
        CreatedBefore(range, before) => (range.bounds(), "CREATE", "LESS", created(*before)),
        NoneCreatedBefore(range, before) => {
            let last = before.saturating_sub(1);
            (range.bounds(), "CREATE", "GREATER", created(last))
        }
        ModifiedAt(key, at) => {
            let at = ("mod_revision", at.to_string().into());
            (of_key(key), "MOD", "EQUAL", at)
        }
        Is(key, value) => (of_key(key), "VALUE", "EQUAL", ("value", bytes(value))),
    };
    fields.insert("target".into(), target.into());
    fields.insert("result".into(), result.into());
    fields.insert(field.into(), value);
    fields.into()
}

fn created(revision: u64) -> (&'static str, Value) {
    ("create_revision", revision.to_string().into())
}

fn operations(ops: &[Op]) -> Vec<Value> {
    ops.iter().map(operation).collect()
}

fn operation(op: &Op) -> Value {
    match op {
        Op::Put { key, value, lease } => {
            let lease = lease.map_or(0, |lease| lease.0).to_string();
            json!({ "request_put": { "key": text(key), "value": bytes(value), "lease": lease } })
        }
        Op::Delete(range) => json!({ "request_delete_range": range.bounds() }),
        Op::If(inner) => json!({ "request_txn": inner.to_json() }),
        Op::Get(range) => by_creation("ASCEND", range.bounds()),
        Op::Newest {
            range,
            before,
            limit,
        } => {
            let mut fields = range.bounds();
            if let Some(limit) = limit {
                fields.insert("limit".into(), limit.to_string().into());
            }
            if let Some(before) = before {
                // 0 stands for no limit, and nothing is created before the first revision.
                let last = before.saturating_sub(1).max(1).to_string();
                fields.insert("max_create_revision".into(), last.into());
            }
            by_creation("DESCEND", fields)
        }
        Op::List {
            prefix,
            from,
            limit,
            keys_only,
        } => json!({ "request_range": {
            "key": text(from.as_ref().filter(|from| *from > prefix).unwrap_or(prefix)),
            "range_end": end(prefix),
            "limit": limit.to_string(),
            "keys_only": keys_only,
        } }),
    }
}

/// A read in the order of creation, or the other way round.
fn by_creation(order: &str, mut fields: Map<String, Value>) -> Value {
    fields.insert("sort_target".into(), "CREATE".into());
    fields.insert("sort_order".into(), order.into());
    json!({ "request_range": fields })
}

/// The first key behind all that begin with the prefix.
fn end(prefix: &str) -> Value {
    let mut end = prefix.as_bytes().to_vec();
    // No byte of UTF-8 is the last that there is.
    match end.last_mut() {
        Some(last) => *last += 1,
        // All keys there are.
        None => end.push(0),
    }
    bytes(&end)
}

fn text(text: &str) -> Value {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> Value {
    BASE64.encode(bytes).into()
}
