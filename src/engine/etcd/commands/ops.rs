//! Parts of transactions, and of their answers.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::value::Stored;
use crate::engine::etcd::client::txn::{Answer, Entry, Op, OpResult, Range, Txn};

/// A transaction that only reads.
pub(super) fn look(then: Vec<Op>) -> Txn {
    Txn {
        compares: Vec::new(),
        then,
        otherwise: Vec::new(),
    }
}

pub(super) fn get(key: String) -> Op {
    Op::Get(Range::Key(key))
}

pub(super) fn delete(key: String) -> Op {
    Op::Delete(Range::Key(key))
}

/// The entries of each range that was asked for, in order.
pub(super) fn got(answer: Answer) -> impl Iterator<Item = Vec<Entry>> {
    answer
        .results
        .into_iter()
        .filter_map(|result| match result {
            OpResult::Got(entries) => Some(entries),
            _ => None,
        })
}

/// A value among the entries of its key.
pub(super) fn value_of(entries: Vec<Entry>) -> Stored {
    entries.into_iter().next().map(|entry| entry.value.into())
}

/// The time of this host, for those who look: nothing depends on it.
pub(super) fn host_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .unwrap_or_default()
        .as_millis()
        .try_into()
        .unwrap_or(0)
}
