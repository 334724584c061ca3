//! What a transaction asks of etcd, and what it answers.

use super::proof::Seen;

use crate::base::sys;

/// A lease at the servers, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::etcd) struct LeaseId(pub(in crate::engine::etcd) i64);

/// This bit of its number says that a lease is a long one.
const LONG: i64 = 1 << 62;

impl LeaseId {
    /// Chosen here, so that a request without an answer can be repeated, or undone. No other process chooses the same: a random number of
    /// 62 bits, which isn't drawn ahead.
    pub(in crate::engine::etcd) fn new() -> Self {
        let (first, second) = sys::random_uuid().as_u64_pair();
        let bits = (first ^ second) >> 2;
        LeaseId(i64::try_from(bits).map_or(1, |bits| bits.max(1)))
    }

    /// The same of a long lease, which every process can tell by its number.
    pub(in crate::engine::etcd) fn new_long() -> Self {
        LeaseId(Self::new().0 | LONG)
    }

    pub(in crate::engine::etcd) fn is_long(self) -> bool {
        self.0 & LONG != 0
    }
}

/// If all of `compares` hold, `then` is carried out, else `otherwise`: at one revision, or not at all.
///
/// A transaction that changes nothing is linearizable as soon as it reads one key: one without any operation isn't, and may be
/// answered from the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Txn {
    pub(in crate::engine::etcd) compares: Vec<Compare>,
    pub(in crate::engine::etcd) then: Vec<Op>,
    /// Each key is put at most once in each branch: the servers refuse another.
    pub(in crate::engine::etcd) otherwise: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) enum Range {
    Key(String),
    /// All keys that begin so. It isn't empty.
    Prefix(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) enum Compare {
    /// There is no such key.
    Absent(Range),
    /// The key was created at that revision.
    CreatedAt(String, u64),
    /// All such keys were created before that revision. Holds if there are none.
    CreatedBefore(Range, u64),
    /// All such keys were created at that revision or later. Doesn't hold if there are none: the servers take a key that
    /// isn't there for one that was created at 0.
    NoneCreatedBefore(Range, u64),
    /// The key was changed last at that revision.
    ModifiedAt(String, u64),
    /// The key is there, and has that value.
    Value(String, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) enum Op {
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

/// The answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Answer {
    /// Whether all compares held.
    pub(in crate::engine::etcd) succeeded: bool,
    /// The servers' revision after it.
    pub(in crate::engine::etcd) revision: u64,
    /// The member that has answered, and in which term.
    pub(in crate::engine::etcd) by: Seen,
    /// Of the operations that were carried out, in their order.
    pub(in crate::engine::etcd) results: Vec<OpResult>,
    /// How many keys there are in the range that has most of those that were read, whatever was the limit.
    pub(in crate::engine::etcd) most_keys: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) enum OpResult {
    Put,
    /// That many keys were.
    Deleted(u64),
    /// Whether all compares of it held.
    If(bool),
    Got(Vec<Entry>),
}

/// A key, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Entry {
    /// What isn't UTF-8 in it is shown by U+FFFD: such a key isn't one of ours.
    pub(in crate::engine::etcd) key: String,
    pub(in crate::engine::etcd) value: Vec<u8>,
    pub(in crate::engine::etcd) created: u64,
    pub(in crate::engine::etcd) modified: u64,
    pub(in crate::engine::etcd) lease: Option<LeaseId>,
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
