//! Random requests, as the library makes them.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::answers::encoded;

fn key(random: &mut Rng) -> String {
    let line = ["a/", "b/"][random.usize(..2)];
    format!("{line}{}", random.u8(..6))
}

/// One key, or all that begin alike.
fn bounds(random: &mut Rng) -> Map<String, Value> {
    let (start, end) = match random.u8(..8) {
        0..4 => (key(random), None),
        4..7 => ("a/".to_owned(), Some("a0")),
        _ => ("b/".to_owned(), Some("b0")),
    };
    let mut fields = Map::new();
    fields.insert("key".into(), encoded(&start));
    fields.extend(end.map(|end| ("range_end".to_owned(), encoded(end))));
    fields
}

fn range(random: &mut Rng, revision: u64) -> Value {
    let mut fields = bounds(random);
    let mut add = |name: &str, value: Value| _ = fields.insert(name.into(), value);
    if random.bool() {
        add("sort_target", "CREATE".into());
        add(
            "sort_order",
            ["ASCEND", "DESCEND"][random.usize(..2)].into(),
        );
    }
    if random.bool() {
        add("limit", random.u8(..4).to_string().into());
    }
    if random.u8(..8) == 0 {
        add("keys_only", true.into());
    }
    if random.u8(..4) == 0 {
        add(
            "max_create_revision",
            random.u64(..=revision).to_string().into(),
        );
    }
    fields.into()
}

fn compare(random: &mut Rng, revision: u64) -> Value {
    let mut fields = bounds(random);
    let number = if random.bool() {
        0
    } else {
        random.u64(..=revision)
    };
    let (target, field, value) = match random.u8(..4) {
        0 => ("CREATE", "create_revision", number.to_string().into()),
        1 => ("MOD", "mod_revision", number.to_string().into()),
        2 => ("VALUE", "value", encoded("1")),
        _ => ("VALUE", "value", encoded("")),
    };
    let result = ["EQUAL", "GREATER", "LESS"][random.usize(..3)];
    fields.insert("target".into(), target.into());
    fields.insert("result".into(), result.into());
    fields.insert(field.into(), value);
    fields.into()
}

fn op(random: &mut Rng, revision: u64, depth: u8) -> Value {
    match random.u8(..10) {
        0..4 => {
            let value = encoded(["", "1", "2", "some longer text"][random.usize(..4)]);
            let lease = [0, 0, 1, 2, 3, 4][random.usize(..6)].to_string();
            json!({ "request_put": { "key": encoded(&key(random)), "value": value, "lease": lease } })
        }
        4..6 => json!({ "request_delete_range": bounds(random) }),
        6 if depth < 2 => json!({ "request_txn": txn(random, revision, depth + 1) }),
        _ => json!({ "request_range": range(random, revision) }),
    }
}

fn txn(random: &mut Rng, revision: u64, depth: u8) -> Value {
    let compares = (0..random.u8(..3)).map(|_| compare(random, revision));
    let compares: Vec<_> = compares.collect();
    let mut branch = || {
        let ops = (0..random.u8(..4)).map(|_| op(random, revision, depth));
        ops.collect::<Vec<_>>()
    };
    let (mut success, failure) = (branch(), branch());
    if random.u8(..60) == 0 {
        // About as many as are taken, or as few that their keys are alike.
        let count = [3, 127, 128, 129][random.usize(..4)];
        let put = |number: u8| json!({ "request_put": { "key": encoded(&format!("k{number}")) } });
        success.extend((0..count).map(put));
    }
    json!({ "compare": compares, "success": success, "failure": failure })
}

/// A path, and what is asked there, when the servers have about that revision.
pub fn asked(random: &mut Rng, revision: u64) -> (&'static str, Value) {
    let of_lease = |random: &mut Rng| json!({ "ID": random.i64(1..5).to_string() });
    match random.u8(..20) {
        0..12 => ("/v3/kv/txn", txn(random, revision, 0)),
        12..15 => {
            let ttl = ["0", "1", "60", "100"][random.usize(..4)];
            // The short ones are never used: when they end isn't the same.
            let is_short = ttl.len() == 1;
            let id = if is_short {
                random.i64(1000..)
            } else {
                random.i64(1..5)
            };
            (
                "/v3/lease/grant",
                json!({ "ID": id.to_string(), "TTL": ttl }),
            )
        }
        15 => ("/v3/lease/revoke", of_lease(random)),
        16..18 => ("/v3/lease/keepalive", of_lease(random)),
        18 => ("/v3/lease/timetolive", of_lease(random)),
        _ => ("/v3/maintenance/status", json!({})),
    }
}

pub fn watches(random: &mut Rng) -> String {
    let mut lines = String::new();
    for _ in 0..random.u8(1..4) {
        let mut fields = bounds(random);
        if random.bool() {
            fields.insert("filters".into(), json!(["NOPUT"]));
        }
        lines += &format!("{}\n", json!({ "create_request": fields }));
    }
    lines
}
