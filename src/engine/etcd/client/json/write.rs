//! What a transaction looks like in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::engine::etcd::client::txn::{Compare, Op, Range, Txn};

pub(in super::super) fn txn(txn: &Txn) -> Value {
    let compares = txn.compares.iter().map(compare);
    json!({
        "compare": compares.collect::<Vec<_>>(),
        "success": operations(&txn.then),
        "failure": operations(&txn.otherwise),
    })
}

/// The fields that name the keys of a range.
pub(in super::super) fn bounds(range: &Range) -> Map<String, Value> {
    let mut fields = Map::new();
    match range {
        Range::Key(key) => _ = fields.insert("key".into(), text(key)),
        Range::Prefix(prefix) => {
            fields.insert("key".into(), text(prefix));
            fields.insert("range_end".into(), end(prefix));
        }
    }
    fields
}

fn compare(compare: &Compare) -> Value {
    use Compare::{Absent, CreatedAt, CreatedBefore, ModifiedAt, NoneCreatedBefore, Value as Is};
    // What isn't there has 0 for its revisions.
    let of_key = |key: &String| bounds(&Range::Key(key.clone()));
    let (mut fields, target, result, (field, value)) = match compare {
        Absent(range) => (bounds(range), "CREATE", "EQUAL", created(0)),
        CreatedAt(key, at) => (of_key(key), "CREATE", "EQUAL", created(*at)),
        CreatedBefore(range, before) => (bounds(range), "CREATE", "LESS", created(*before)),
        NoneCreatedBefore(range, before) => {
            let last = before.saturating_sub(1);
            (bounds(range), "CREATE", "GREATER", created(last))
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
        Op::Delete(range) => json!({ "request_delete_range": bounds(range) }),
        Op::If(inner) => json!({ "request_txn": txn(inner) }),
        Op::Get(range) => {
            let mut fields = bounds(range);
            fields.insert("sort_target".into(), "CREATE".into());
            fields.insert("sort_order".into(), "ASCEND".into());
            json!({ "request_range": fields })
        }
        Op::Newest {
            range,
            before,
            limit,
        } => {
            let mut fields = bounds(range);
            fields.insert("sort_target".into(), "CREATE".into());
            fields.insert("sort_order".into(), "DESCEND".into());
            if let Some(limit) = limit {
                fields.insert("limit".into(), limit.to_string().into());
            }
            if let Some(before) = before {
                // 0 stands for no limit, and nothing is created before the first revision.
                let last = before.saturating_sub(1).max(1).to_string();
                fields.insert("max_create_revision".into(), last.into());
            }
            json!({ "request_range": fields })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::etcd::client::txn::LeaseId;

    #[test]
    fn compares_say_what_their_names_do() {
        let range = || Range::Prefix("a/".into());
        let compares = vec![
            Compare::Absent(range()),
            Compare::CreatedAt("a".into(), 7),
            Compare::CreatedBefore(range(), 7),
            Compare::NoneCreatedBefore(range(), 7),
            Compare::ModifiedAt("a".into(), 7),
            Compare::Value("a".into(), b"b".to_vec()),
        ];
        let written = txn(&Txn {
            compares,
            ..Txn::default()
        });
        let (key, all) = ("YQ==", json!({ "key": "YS8=", "range_end": "YTA=" }));
        let with = |fields: &Value, more: Value| {
            let mut fields = fields.as_object().unwrap().clone();
            fields.extend(more.as_object().unwrap().clone());
            Value::from(fields)
        };
        let created = |result, at: &str| json!({ "target": "CREATE", "result": result, "create_revision": at });
        assert_eq!(
            written["compare"],
            json!([
                with(&all, created("EQUAL", "0")),
                with(&json!({ "key": key }), created("EQUAL", "7")),
                with(&all, created("LESS", "7")),
                with(&all, created("GREATER", "6")),
                { "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": "7" },
                { "key": key, "target": "VALUE", "result": "EQUAL", "value": "Yg==" },
            ])
        );
    }

    #[test]
    fn operations_name_keys_and_ranges() {
        let list = |from: Option<&str>| Op::List {
            prefix: "a/".into(),
            from: from.map(String::from),
            limit: 3,
            keys_only: true,
        };
        let put = Op::Put {
            key: "a".into(),
            value: b"b".to_vec(),
            lease: Some(LeaseId(9)),
        };
        let inner = Txn {
            compares: vec![Compare::CreatedAt("a".into(), 7)],
            then: vec![Op::Delete(Range::Key("a".into()))],
            otherwise: vec![],
        };
        let then = vec![
            put,
            Op::Delete(Range::Key("a".into())),
            Op::Get(Range::Prefix("a/".into())),
            Op::If(inner.clone()),
        ];
        let otherwise = vec![list(None), list(Some("a/b")), list(Some("A"))];
        let written = txn(&Txn {
            compares: vec![],
            then,
            otherwise,
        });
        let range = |from: &str| json!({ "request_range": { "key": from, "range_end": "YTA=", "limit": "3", "keys_only": true } });
        let sorted = json!({ "key": "YS8=", "range_end": "YTA=", "sort_target": "CREATE", "sort_order": "ASCEND" });
        assert_eq!(
            written["success"],
            json!([
                { "request_put": { "key": "YQ==", "value": "Yg==", "lease": "9" } },
                { "request_delete_range": { "key": "YQ==" } },
                { "request_range": sorted },
                { "request_txn": txn(&inner) },
            ])
        );
        assert_eq!(
            written["failure"],
            json!([range("YS8="), range("YS9i"), range("YS8=")])
        );
    }
}
