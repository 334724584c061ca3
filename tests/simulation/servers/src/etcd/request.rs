//! What a request asks for, as the library asks. What else etcd knows is refused.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Value, from_slice};

use super::http::Refusal;

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Status,
    Write(Command),
    /// A transaction that changes nothing.
    Read(Txn),
    KeepAlive(i64),
    TimeToLive(i64),
    Watch(Vec<Create>),
}

/// What changes something, once it is agreed on.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Txn(Txn),
    Grant(Lease),
    Revoke(i64),
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lease {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub(super) id: i64,
    /// In seconds.
    #[serde(rename = "TTL", deserialize_with = "number", default)]
    pub(super) ttl: i64,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct Txn {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Op>,
    pub(super) failure: Vec<Op>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum Op {
    #[serde(rename = "request_put")]
    Put(Put),
    #[serde(rename = "request_delete_range")]
    Delete(Range),
    #[serde(rename = "request_range")]
    Range(Range),
    #[serde(rename = "request_txn")]
    Txn(Txn),
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes", default)]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number", default)]
    pub(super) lease: i64,
}

/// A key, or without an empty end all keys before that one. In the order of creation, or the newest first, or in that
/// of keys.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct Range {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    pub(super) range_end: Vec<u8>,
    /// 0: none.
    #[serde(deserialize_with = "number")]
    pub(super) limit: i64,
    pub(super) sort_target: Option<Target>,
    pub(super) sort_order: Option<Order>,
    pub(super) keys_only: bool,
    /// 0: created at any revision, else at that at the latest.
    #[serde(deserialize_with = "number")]
    pub(super) max_create_revision: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Target {
    Create,
    Mod,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Order {
    Ascend,
    Descend,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Wanted {
    Equal,
    Greater,
    Less,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compare {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes", default)]
    pub(super) range_end: Vec<u8>,
    pub(super) target: Target,
    pub(super) result: Wanted,
    #[serde(deserialize_with = "number", default)]
    pub(super) create_revision: i64,
    #[serde(deserialize_with = "number", default)]
    pub(super) mod_revision: i64,
    #[serde(deserialize_with = "bytes", default)]
    pub(super) value: Vec<u8>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    create_request: Create,
}

/// One watch of a stream.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    #[serde(deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "bytes", default)]
    pub(super) range_end: Vec<u8>,
    #[serde(default)]
    pub(super) filters: Vec<Filter>,
}

#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub(super) enum Filter {
    #[serde(rename = "NOPUT")]
    NoPut,
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    BASE64.decode(text).map_err(D::Error::custom)
}

/// A large number is a text.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let digits = String::deserialize(from)?;
    digits.parse().map_err(D::Error::custom)
}

/// What one transaction may have, in each of its lists.
const MOST_OPS: usize = 128;

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, Refusal> {
        let parsed = Request::of(path, body).map_err(|_| Refusal::MALFORMED)?;
        match &parsed {
            Request::Write(Command::Txn(txn)) => txn.check(MOST_OPS).map(|()| parsed),
            _ => Ok(parsed),
        }
    }

    fn of(path: &str, body: &[u8]) -> serde_json::Result<Self> {
        let lease = || from_slice::<Lease>(body);
        Ok(match path {
            "/v3/maintenance/status" => from_slice::<Value>(body).map(|_| Request::Status)?,
            "/v3/kv/txn" => {
                let txn: Txn = from_slice(body)?;
                // One with another inside counts as one that writes, also if none does.
                let mut ops = txn.success.iter().chain(&txn.failure);
                match ops.all(|op| matches!(op, Op::Range(_))) {
                    true => Request::Read(txn),
                    false => Request::Write(Command::Txn(txn)),
                }
            }
            "/v3/lease/grant" => Request::Write(Command::Grant(lease()?)),
            "/v3/lease/revoke" => Request::Write(Command::Revoke(lease()?.id)),
            "/v3/lease/keepalive" => Request::KeepAlive(lease()?.id),
            "/v3/lease/timetolive" => Request::TimeToLive(lease()?.id),
            "/v3/watch" => {
                let lines = serde_json::Deserializer::from_slice(body).into_iter::<Watch>();
                let creates = lines.map(|line| Ok(line?.create_request));
                Request::Watch(creates.collect::<serde_json::Result<_>>()?)
            }
            _ => return Err(serde_json::Error::custom("there is nothing")),
        })
    }
}

/// Whether a key is that one, or one of those up to the end.
pub(super) fn contains(key: &[u8], end: &[u8], it: &[u8]) -> bool {
    match end.is_empty() {
        true => key == it,
        false => key <= it && it < end,
    }
}

/// The keys that a branch puts, and the ranges that it deletes.
type Touched<'a> = (BTreeSet<&'a [u8]>, Vec<&'a Range>);

impl Txn {
    /// Refuses one with longer lists, together with those around it; and one that puts a key twice, or puts and
    /// deletes it, in one branch.
    fn check(&self, most: usize) -> Result<(), Refusal> {
        self.check_length(most)?;
        touched(&self.success)?;
        touched(&self.failure).map(drop)
    }

    fn check_length(&self, most: usize) -> Result<(), Refusal> {
        let (then, otherwise) = (&self.success, &self.failure);
        let longest = self.compare.len().max(then.len()).max(otherwise.len());
        let left = most.checked_sub(longest).ok_or(Refusal::TOO_MANY)?;
        then.iter().chain(otherwise).try_for_each(|op| match op {
            Op::Txn(txn) => txn.check_length(left),
            _ => Ok(()),
        })
    }
}

fn touched(branch: &[Op]) -> Result<Touched<'_>, Refusal> {
    let deleted = branch.iter().filter_map(|op| match op {
        Op::Delete(range) => Some(range),
        _ => None,
    });
    let (mut puts, mut deletes) = (BTreeSet::new(), deleted.collect::<Vec<_>>());
    let is_deleted = |key: &[u8], deletes: &[&Range]| {
        let mut deletes = deletes.iter();
        deletes.any(|range| contains(&range.key, &range.range_end, key))
    };
    for op in branch {
        let Op::Txn(txn) = op else { continue };
        let (then, otherwise) = (touched(&txn.success)?, touched(&txn.failure)?);
        // One key may be in both branches: only one is carried out.
        let inner: BTreeSet<_> = then.0.union(&otherwise.0).copied().collect();
        let is_known = |key: &&[u8]| puts.contains(*key) || is_deleted(key, &deletes);
        if inner.iter().any(is_known) {
            return Err(Refusal::TWICE);
        }
        puts.extend(inner);
        deletes.extend(then.1.into_iter().chain(otherwise.1));
    }
    for op in branch {
        let Op::Put(put) = op else { continue };
        if is_deleted(&put.key, &deletes) || !puts.insert(&put.key) {
            return Err(Refusal::TWICE);
        }
    }
    Ok((puts, deletes))
}
