//! What is refused, and by which words.

use crosslock_servers::etcd::Etcd;
use serde_json::{Value, json};
use support::EtcdCluster;

use crate::peers::{Peer, Real, Simulated, request, with_headers};
use crate::random::encoded;
use crate::same::setup;

fn puts(count: usize) -> Vec<Value> {
    let put = |number: usize| json!({ "request_put": { "key": encoded(&format!("k{number}")) } });
    (0..count).map(put).collect()
}

fn range(revision: &str) -> Value {
    json!({ "key": encoded("a"), "revision": revision })
}

fn large(size: usize) -> Value {
    json!({ "key": encoded("a"), "value": encoded(&"x".repeat(size)) })
}

/// Transactions that are wrong in themselves, and some on the edge of it.
fn strange_transactions() -> Vec<Value> {
    let put = json!({ "request_put": { "key": encoded("a") } });
    let delete = json!({ "request_delete_range": { "key": encoded("a") } });
    let of_unknown = json!({ "request_put": { "key": encoded("a"), "lease": "404" } });
    let inner = |success: Vec<Value>, failure: Vec<Value>| {
        let txn = json!({ "success": success, "failure": failure });
        json!({ "request_txn": txn })
    };
    let one = || vec![put.clone()];
    vec![
        json!({}),
        json!({ "success": [{}] }),
        json!({ "compare": [{ "target": "MOD" }] }),
        json!({ "success": [of_unknown] }),
        json!({ "failure": [of_unknown] }),
        json!({ "success": [put, put] }),
        json!({ "success": [put, delete] }),
        json!({ "success": [put, inner(vec![], one())] }),
        json!({ "success": [inner(one(), one())] }),
        json!({ "success": puts(128) }),
        json!({ "success": puts(129) }),
        json!({ "failure": puts(129) }),
        json!({ "success": [inner(puts(127), vec![])] }),
        json!({ "success": [inner(puts(128), vec![])] }),
    ]
}

fn strange_leases() -> Vec<(&'static str, Value)> {
    let unknown = || json!({ "ID": "404" });
    vec![
        ("/v3/lease/grant", json!({ "ID": "5", "TTL": "9000000001" })),
        ("/v3/lease/grant", json!({ "ID": "5", "TTL": "50" })),
        ("/v3/lease/grant", json!({ "ID": "5", "TTL": "50" })),
        ("/v3/lease/leases", json!({})),
        ("/v3/lease/revoke", unknown()),
        ("/v3/lease/keepalive", unknown()),
        ("/v3/lease/timetolive", unknown()),
    ]
}

fn strange() -> Vec<(&'static str, Value)> {
    let txns = strange_transactions().into_iter();
    let mut all: Vec<_> = txns.map(|txn| ("/v3/kv/txn", txn)).collect();
    all.extend(strange_leases());
    all.extend([
        ("/v3/kv/put", json!({})),
        ("/v3/kv/range", json!({})),
        ("/v3/kv/deleterange", json!({})),
        ("/v3/kv/put", json!({ "key": encoded("a"), "lease": "404" })),
        ("/v3/kv/put", large(1_500_000)),
        ("/v3/kv/put", large(1_600_000)),
        ("/v3/kv/range", range("99")),
        ("/v3/kv/compaction", json!({ "revision": "99" })),
        ("/v3/kv/compaction", json!({ "revision": "3" })),
        ("/v3/kv/compaction", json!({ "revision": "3" })),
        ("/v3/kv/range", range("2")),
        (
            "/v3/auth/authenticate",
            json!({ "name": "a", "password": "b" }),
        ),
        ("/v3/nowhere", json!({})),
    ]);
    all
}

#[test]
fn strange_requests_have_the_same_answers() {
    let server = setup().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let mut simulated = Simulated::new(Etcd::new(1), 1);
    let (theirs, ours) = (real.connect(0), simulated.connect(0));
    for (path, body) in strange() {
        let (theirs, ours) = (
            real.ask(theirs, path, &body),
            simulated.ask(ours, path, &body),
        );
        let body: String = body.to_string().chars().take(200).collect();
        assert_eq!(theirs, ours, "{path} {body}");
    }
}

#[test]
fn what_is_not_json_is_refused_alike() {
    let server = setup().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let mut simulated = Simulated::new(Etcd::new(1), 1);
    let (theirs, ours) = (real.connect(0), simulated.connect(0));
    let bodies = ["{what", "[]", r#"{"key":7}"#, r#"{"key":"*"}"#];
    for (path, body) in bodies
        .iter()
        .map(|body| ("/v3/kv/range", body))
        .chain([("/v3/watch", &bodies[0])])
    {
        let asked = request(path, body);
        real.send(theirs, &asked);
        simulated.send(ours, &asked);
        let (theirs, ours) = (
            real.answers(theirs, 1).remove(0),
            simulated.answers(ours, 1).remove(0),
        );
        // The words are those of Go.
        assert_eq!(
            (theirs.status, theirs.headers),
            (ours.status, ours.headers),
            "{body}"
        );
        assert_eq!(
            theirs.messages[0]["code"], ours.messages[0]["code"],
            "{body}"
        );
    }
}

/// One request of each kind.
pub fn each() -> Vec<(&'static str, Value)> {
    let key = || json!({ "key": encoded("a") });
    let lease = || json!({ "ID": "5" });
    let serializable = json!({ "key": encoded("a"), "serializable": true });
    vec![
        ("/v3/maintenance/status", json!({})),
        ("/v3/kv/range", key()),
        ("/v3/kv/range", serializable.clone()),
        ("/v3/kv/put", key()),
        ("/v3/kv/deleterange", key()),
        ("/v3/kv/txn", json!({})),
        (
            "/v3/kv/txn",
            json!({ "success": [{ "request_range": key() }] }),
        ),
        (
            "/v3/kv/txn",
            json!({ "success": [{ "request_range": serializable }] }),
        ),
        (
            "/v3/kv/txn",
            json!({ "success": [{ "request_put": key() }] }),
        ),
        ("/v3/lease/grant", json!({ "ID": "5", "TTL": "50" })),
        ("/v3/lease/keepalive", lease()),
        ("/v3/lease/timetolive", lease()),
        ("/v3/lease/leases", json!({})),
        ("/v3/lease/revoke", lease()),
        ("/v3/watch", json!({ "create_request": key() })),
    ]
}

#[test]
fn members_without_a_leader_refuse_alike() {
    let cluster = EtcdCluster::of(3);
    let members = cluster.members();
    let mut real = Real::new(members.iter().map(|member| member.own_addr()).collect());
    let mut simulated = Simulated::new(Etcd::new(3), 1);
    let watch = json!({ "create_request": { "key": encoded("a") } }).to_string();
    let streams = (real.connect(0), simulated.connect(0));
    real.send(streams.0, &request("/v3/watch", &watch));
    simulated.send(streams.1, &request("/v3/watch", &watch));
    for at in [1, 2] {
        members[at].kill();
        simulated.fault(at, crosslock_world::service::Fault::Kill);
    }
    // Streams end, too.
    let theirs = real.answers(streams.0, 1);
    assert_eq!(theirs, simulated.answers(streams.1, 1));
    let mut asked = Vec::new();
    for headers in ["Grpc-Metadata-Hasleader: true\r\n", ""] {
        for (path, body) in each() {
            let is_served = path == "/v3/watch" && headers.is_empty();
            if !is_served {
                asked.push((path, with_headers(path, &body.to_string(), headers)));
            }
        }
    }
    // Some have to wait for long, so all are sent first.
    let ask = |(_, bytes): &(_, Vec<u8>)| {
        let pair = (real.connect(0), simulated.connect(0));
        real.send(pair.0, bytes);
        simulated.send(pair.1, bytes);
        pair
    };
    let pairs: Vec<_> = asked.iter().map(ask).collect();
    for ((path, bytes), (theirs, ours)) in asked.iter().zip(pairs) {
        let (theirs, ours) = (real.answers(theirs, 1), simulated.answers(ours, 1));
        assert_eq!(theirs, ours, "{path} {}", String::from_utf8_lossy(bytes));
    }
}
