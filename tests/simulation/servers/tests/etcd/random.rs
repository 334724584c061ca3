//! Random requests, as the library makes them and as it doesn't.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A path, and what is asked there.
pub type Asked = (&'static str, Value);

pub fn encoded(text: &str) -> Value {
    BASE64.encode(text).into()
}

fn key(random: &mut Rng) -> String {
    let line = ["a/", "b/"][random.usize(..2)];
    format!("{line}{}", random.u8(..6))
}

fn lease(random: &mut Rng) -> i64 {
    [0, 0, 1, 2, 3, 4][random.usize(..6)]
}

/// One key or several, or by chance none that there can be.
fn bounds(random: &mut Rng) -> Map<String, Value> {
    let (start, end) = match random.u8(..10) {
        0..4 => (key(random), None),
        4..7 => ("a/".to_owned(), Some("a0")),
        7 => ("b/".to_owned(), Some("b0")),
        8 => ("a/3".to_owned(), Some("\0")),
        _ => ("b".to_owned(), Some("a")),
    };
    let mut fields = Map::new();
    fields.insert("key".into(), encoded(&start));
    fields.extend(end.map(|end| ("range_end".to_owned(), encoded(end))));
    fields
}

fn put(random: &mut Rng) -> Value {
    let value = ["", "1", "2", "some longer text"][random.usize(..4)];
    json!({ "key": encoded(&key(random)), "value": encoded(value), "lease": lease(random).to_string() })
}

fn range(random: &mut Rng, revision: u64) -> Value {
    let mut fields = bounds(random);
    let mut add = |name: &str, value: Value| _ = fields.insert(name.into(), value);
    if random.bool() {
        let target = ["KEY", "VERSION", "CREATE", "MOD", "VALUE"][random.usize(..5)];
        add("sort_target", target.into());
        add(
            "sort_order",
            ["NONE", "ASCEND", "DESCEND"][random.usize(..3)].into(),
        );
    }
    if random.bool() {
        add("limit", random.u8(..4).to_string().into());
    }
    for name in ["keys_only", "count_only", "serializable"] {
        if random.u8(..8) == 0 {
            add(name, true.into());
        }
    }
    for name in [
        "min_mod_revision",
        "max_mod_revision",
        "min_create_revision",
        "max_create_revision",
    ] {
        if random.u8(..8) == 0 {
            add(name, random.u64(..=revision).to_string().into());
        }
    }
    if random.u8(..12) == 0 {
        // Of now, the future or the past, which may be forgotten.
        let at = random.u64(revision.saturating_sub(20).max(1)..revision + 3);
        add("revision", at.to_string().into());
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
    let (target, field, value) = match random.u8(..6) {
        0 => ("CREATE", "create_revision", number.to_string().into()),
        1 => ("MOD", "mod_revision", number.to_string().into()),
        2 => ("VERSION", "version", random.u8(..4).to_string().into()),
        3 => ("LEASE", "lease", lease(random).to_string().into()),
        4 => ("VALUE", "value", encoded("1")),
        _ => ("VALUE", "value", encoded("")),
    };
    let result = ["EQUAL", "GREATER", "LESS", "NOT_EQUAL"][random.usize(..4)];
    fields.insert("target".into(), target.into());
    fields.insert("result".into(), result.into());
    fields.insert(field.into(), value);
    fields.into()
}

fn op(random: &mut Rng, revision: u64, depth: u8) -> Value {
    match random.u8(..10) {
        0..4 => json!({ "request_put": put(random) }),
        4..6 => json!({ "request_delete_range": bounds(random) }),
        6 if depth < 2 => json!({ "request_txn": txn(random, revision, depth + 1) }),
        _ => json!({ "request_range": range(random, revision) }),
    }
}

fn txn(random: &mut Rng, revision: u64, depth: u8) -> Value {
    let compares: Vec<_> = (0..random.u8(..3))
        .map(|_| compare(random, revision))
        .collect();
    let mut branch = || {
        (0..random.u8(..4))
            .map(|_| op(random, revision, depth))
            .collect::<Vec<_>>()
    };
    json!({ "compare": compares, "success": branch(), "failure": branch() })
}

/// One that only reads.
fn look(random: &mut Rng, revision: u64) -> Value {
    let count = random.u8(..4);
    let ranges = (0..count).map(|_| json!({ "request_range": range(random, revision) }));
    let success: Vec<_> = ranges.collect();
    json!({ "compare": [compare(random, revision)], "success": success })
}

/// What is asked when the servers have about that revision.
pub fn asked(random: &mut Rng, revision: u64) -> Asked {
    let of_lease = |lease: i64| json!({ "ID": lease.to_string() });
    match random.u8(..24) {
        0..3 => ("/v3/kv/put", put(random)),
        3 => ("/v3/kv/deleterange", bounds(random).into()),
        4..6 => ("/v3/kv/range", range(random, revision)),
        6..13 => ("/v3/kv/txn", txn(random, revision, 0)),
        13..15 => ("/v3/kv/txn", look(random, revision)),
        15..18 => {
            let ttl = ["0", "1", "60", "100"][random.usize(..4)];
            // The short ones are never used: when they end isn't the same.
            let id = if ttl.len() == 1 {
                random.i64(1000..)
            } else {
                random.i64(1..5)
            };
            (
                "/v3/lease/grant",
                json!({ "ID": id.to_string(), "TTL": ttl }),
            )
        }
        18 => ("/v3/lease/revoke", of_lease(random.i64(1..5))),
        19..21 => ("/v3/lease/keepalive", of_lease(random.i64(1..5))),
        21 => {
            let mut asked = of_lease(random.i64(1..5));
            asked["keys"] = random.bool().into();
            ("/v3/lease/timetolive", asked)
        }
        22 if random.u8(..4) == 0 => {
            let at = random.u64(revision.saturating_sub(10)..revision + 3);
            (
                "/v3/kv/compaction",
                json!({ "revision": at.to_string(), "physical": true }),
            )
        }
        _ => ("/v3/maintenance/status", json!({})),
    }
}

/// Watches that begin now, or a little earlier.
pub fn watches(random: &mut Rng, revision: u64) -> String {
    let mut lines = String::new();
    for _ in 0..random.u8(1..4) {
        let mut fields = bounds(random);
        let filters = ["NOPUT", "NODELETE"];
        if random.bool() {
            fields.insert("filters".into(), json!([filters[random.usize(..2)]]));
        }
        if random.u8(..3) == 0 {
            let from = random.u64(revision.saturating_sub(30).max(1)..revision + 4);
            fields.insert("start_revision".into(), from.to_string().into());
        }
        lines += &format!("{}\n", json!({ "create_request": fields }));
    }
    lines
}
