//! What servers answer, in the JSON of etcd's gateway: keys and values in base64, large numbers as text, and no field
//! whose value is zero, false or empty. What isn't understood is `None`.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::proof::{MemberTerm, Renewal};
use super::{failure::Failure, txn::LeaseId};
use crate::base::BootInstant;

/// The answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether all compares held.
    pub(crate) succeeded: bool,
    /// The servers' revision after it.
    pub(crate) revision: u64,
    /// The member that has answered, and in which term.
    pub(crate) by: MemberTerm,
    /// Of the operations that were carried out, in their order.
    pub(crate) results: Vec<OpResult>,
    /// How many keys there are in the range that has most of those that were read, whatever was the limit.
    pub(crate) most_keys: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpResult {
    Put,
    /// That many keys were.
    Deleted(u64),
    /// Whether all compares of it held.
    If(bool),
    Got(Vec<KeyValue>),
}

/// A key, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyValue {
    /// What isn't UTF-8 in it is shown by U+FFFD: such a key isn't one of ours.
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    pub(crate) created: u64,
    pub(crate) modified: u64,
    pub(crate) lease: Option<LeaseId>,
}

/// What was found when a lease was kept alive.
#[derive(Clone, Debug)]
pub(crate) struct KeptAlive {
    /// The lease lasts from then on; `None`: it is gone.
    pub(crate) since: Option<BootInstant>,
    /// What was looked at, after it was kept alive.
    pub(crate) answer: Answer,
}

/// A member has said that it has kept a lease alive. If it answers a read in the same term afterwards, the lease
/// lasts from then on: see [`Proof`](super::proof::Proof).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) lease: LeaseId,
    pub(crate) since: BootInstant,
    /// It knew so before, too.
    pub(crate) by: MemberTerm,
}

/// What a host says of itself and its cluster, or why it says nothing.
#[derive(Debug)]
pub(crate) struct Status {
    /// The host that was asked, with its port.
    pub(crate) host: String,
    pub(crate) found: Result<MemberStatus, Failure>,
}

/// What a member says of itself and its cluster.
#[derive(Clone, Debug)]
pub(crate) struct MemberStatus {
    /// Such as `3.5.17`.
    pub(crate) version: String,
    pub(crate) member: u64,
    /// The member that leads, if one does.
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
    pub(crate) revision: u64,
    /// The size of its database, in bytes.
    pub(crate) size: u64,
    pub(crate) is_learner: bool,
    /// Such as that its database is full: the servers' words.
    pub(crate) errors: Vec<String>,
}

/// A key was put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// As in [`KeyValue`].
    pub(crate) key: String,
    /// At which that was.
    pub(crate) revision: u64,
}

/// What one message of a watch tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchMessage {
    /// The watch has begun, and tells what comes after that revision.
    Begun(u64),
    Events(Vec<Event>),
    /// It has ended, for this reason.
    Ended(String),
}

/// The answer to a transaction.
pub(super) fn transaction(answer: &Value) -> Option<Answer> {
    let header = answer.get("header")?;
    Some(Answer {
        succeeded: flag(answer, "succeeded")?,
        revision: revision(header, "revision")?,
        by: member_term(header)?,
        results: list(answer, "responses", result)?,
        most_keys: list(answer, "responses", count)?
            .into_iter()
            .max()
            .unwrap_or(0),
    })
}

/// The number of a lease that was granted, and its seconds.
pub(super) fn lease(answer: &Value) -> Option<(LeaseId, u64)> {
    let granted = (LeaseId(number(answer, "ID")?), number(answer, "TTL")?);
    Some(granted).filter(|(_, seconds)| *seconds > 0)
}

/// For how many seconds a lease was granted that is there.
pub(super) fn granted_for(answer: &Value) -> Option<u64> {
    number(answer, "grantedTTL").filter(|seconds| *seconds > 0)
}

/// What became of a lease that was to be kept alive: one that is gone has no seconds left.
pub(super) fn keep_alive(answer: &Value) -> Option<Renewal> {
    let result = answer.get("result")?;
    Some(Renewal {
        by: Some(member_term(result.get("header")?)?),
        is_there: number::<u64>(result, "TTL")? > 0,
    })
}

/// The seconds that a lease has left; `Some(None)`: it is gone, which is told by -1.
pub(super) fn time_to_live(answer: &Value) -> Option<Option<u64>> {
    answer.get("header")?;
    let left: i64 = number(answer, "TTL")?;
    Some(left.try_into().ok())
}

pub(super) fn status(answer: &Value) -> Option<MemberStatus> {
    let header = answer.get("header")?;
    let leader = number(answer, "leader")?;
    Some(MemberStatus {
        version: answer.get("version")?.as_str()?.to_owned(),
        member: number(header, "member_id")?,
        leader: (leader > 0).then_some(leader),
        term: number(answer, "raftTerm")?,
        revision: revision(header, "revision")?,
        size: number(answer, "dbSize")?,
        is_learner: flag(answer, "isLearner")?,
        errors: list(answer, "errors", |error| Some(error.as_str()?.to_owned()))?,
    })
}

/// One message of a watch.
pub(super) fn watch_message(message: &Value) -> Option<WatchMessage> {
    let result = message.get("result")?;
    if flag(result, "canceled")? {
        let reason = result
            .get("cancel_reason")
            .map_or(Some("no reason is given"), Value::as_str);
        return Some(WatchMessage::Ended(reason?.to_owned()));
    }
    if flag(result, "created")? {
        return revision(result.get("header")?, "revision").map(WatchMessage::Begun);
    }
    list(result, "events", event).map(WatchMessage::Events)
}

fn event(event: &Value) -> Option<Event> {
    let entry = event.get("kv")?;
    Some(Event {
        key: text(entry, "key")?,
        revision: revision(entry, "mod_revision")?,
    })
}

fn result(response: &Value) -> Option<OpResult> {
    let (kind, of) = response.as_object()?.iter().next()?;
    match kind.as_str() {
        "response_put" => Some(OpResult::Put),
        "response_delete_range" => number(of, "deleted").map(OpResult::Deleted),
        "response_txn" => flag(of, "succeeded").map(OpResult::If),
        "response_range" => list(of, "kvs", key_value).map(OpResult::Got),
        _ => None,
    }
}

/// How many keys there are in a range.
fn count(response: &Value) -> Option<u64> {
    number(response.get("response_range").unwrap_or(response), "count")
}

fn key_value(entry: &Value) -> Option<KeyValue> {
    let lease = number(entry, "lease")?;
    Some(KeyValue {
        key: text(entry, "key")?,
        value: bytes(entry, "value")?,
        created: revision(entry, "create_revision")?,
        modified: revision(entry, "mod_revision")?,
        lease: (lease != 0).then_some(LeaseId(lease)),
    })
}

fn member_term(header: &Value) -> Option<MemberTerm> {
    Some(MemberTerm {
        member: number(header, "member_id")?,
        term: number(header, "raft_term")?,
    })
}

/// A number, as text or as such.
fn number<T: TryFrom<i128>>(of: &Value, field: &str) -> Option<T> {
    let number = match of.get(field) {
        None => 0,
        Some(Value::String(digits)) => digits.parse().ok()?,
        Some(number) => number.as_number()?.as_i128()?,
    };
    number.try_into().ok()
}

/// It is counted from: one that etcd can't have isn't understood.
fn revision(of: &Value, field: &str) -> Option<u64> {
    number(of, field).filter(|revision| i64::try_from(*revision).is_ok())
}

fn flag(of: &Value, field: &str) -> Option<bool> {
    of.get(field).map_or(Some(false), Value::as_bool)
}

fn text(of: &Value, field: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(of, field)?).into_owned())
}

fn bytes(of: &Value, field: &str) -> Option<Vec<u8>> {
    match of.get(field) {
        None => Some(Vec::new()),
        Some(text) => BASE64.decode(text.as_str()?).ok(),
    }
}

/// What each of a list means.
fn list<T>(of: &Value, field: &str, understand: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match of.get(field) {
        None => Some(Vec::new()),
        Some(list) => list.as_array()?.iter().map(understand).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn header() -> Value {
        json!({ "cluster_id": "3", "member_id": "10619753999200686632", "revision": "2", "raft_term": "4" })
    }

    #[test]
    fn what_is_not_of_etcd_is_not_understood() {
        for answer in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "header": { "member_id": "x" } }),
            json!({ "header": { "revision": u64::MAX.to_string() } }),
            json!({ "header": header(), "responses": [{}] }),
            json!({ "header": header(), "responses": [{ "response_what": {} }] }),
            json!({ "header": header(), "succeeded": "yes" }),
        ] {
            assert_eq!(transaction(&answer), None, "{answer}");
            assert!(
                keep_alive(&answer).is_none() && watch_message(&answer).is_none(),
                "{answer}"
            );
            assert!(
                status(&answer).is_none() && lease(&answer).is_none(),
                "{answer}"
            );
        }
    }
}
