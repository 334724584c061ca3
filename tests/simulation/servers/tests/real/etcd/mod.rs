//! etcd.

mod answers;
mod random;

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use crosslock_world::service::Fault;
use serde_json::{Value, json};
use support::{EtcdCluster, EtcdSetup};

use self::answers::{Answer, Asked as _, encoded};
use crate::peers::Both;

/// A real server with etcd's own times, by which the shortest ttl is that of the simulated one.
fn setup() -> EtcdSetup {
    EtcdSetup::new().flag("election-timeout", "1000")
}

/// The revision that an answer tells of.
fn revision(answer: &Answer) -> Option<u64> {
    let header = &answer.as_ref().ok()?.first()?["header"];
    header["revision"].as_str()?.parse().ok()
}

/// Of each watch: how it began, and all events in their order.
fn by_watch(messages: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut watches = BTreeMap::<_, Vec<_>>::new();
    for result in messages.iter().map(|message| &message["result"]) {
        let id = result["watch_id"].as_str().unwrap_or("0").to_owned();
        let told = watches.entry(id).or_default();
        match result["events"].as_array() {
            Some(events) => told.extend(events.iter().cloned()),
            None => told.push(result.clone()),
        }
    }
    watches
}

#[test]
fn random_requests_have_the_same_answers() {
    let server = setup().start();
    let mut both = Both::new(vec![server.own_addr()], Etcd::new(1));
    let mut random = both.simulated.random.fork();
    let writer = both.connect(0);
    let mut now = 1;
    let wait = Duration::from_millis(150);
    for round in 0..20 {
        let stream = both.connect(0);
        let watched = random::watches(&mut random);
        both.each(|peer, _| {
            peer.begin(stream, "/v3/watch", &watched);
            peer.wait(wait);
        });
        for _ in 0..75 {
            let (path, body) = random::asked(&mut random, now);
            let answer = both.alike(format_args!("{path} {body}"), |peer, _| {
                peer.ask(writer, path, &body)
            });
            now = revision(&answer).unwrap_or(now);
        }
        both.alike(format_args!("round {round}: {watched}"), |peer, _| {
            by_watch(&peer.told(stream, wait))
        });
    }
    assert!(now > 200, "only {now} changes");
}

fn put(key: &str, lease: &str) -> Value {
    let put = json!({ "request_put": { "key": encoded(key), "lease": lease } });
    json!({ "success": [put] })
}

/// A lease is kept alive, ends, and is asked for: so many milliseconds after the step before.
#[test]
fn leases_end_in_their_time() {
    let server = setup().start();
    let mut both = Both::new(vec![server.own_addr()], Etcd::new(1));
    let (to, watch) = (both.connect(0), both.connect(0));
    let lease = json!({ "ID": "7" });
    let everything = json!({ "key": encoded("a"), "range_end": encoded("b") });
    let create = json!({ "create_request": everything }).to_string();
    let steps = [
        (200, "lease/grant", json!({ "ID": "7", "TTL": "2" })),
        (0, "kv/txn", put("a/2", "7")),
        (0, "kv/txn", put("a/1", "7")),
        (0, "kv/txn", put("a/3", "7")),
        // It leaves the lease.
        (0, "kv/txn", put("a/3", "0")),
        (1000, "lease/keepalive", lease.clone()),
        (1500, "lease/timetolive", lease.clone()),
        (2500, "lease/timetolive", lease.clone()),
        (0, "lease/keepalive", lease.clone()),
        (0, "lease/revoke", lease),
        (
            0,
            "kv/txn",
            json!({ "success": [{ "request_range": everything }] }),
        ),
    ];
    both.each(|peer, _| peer.begin(watch, "/v3/watch", &create));
    for (millis, path, body) in steps {
        let _ = both.alike(format_args!("{path} {body}"), |peer, _| {
            peer.wait(Duration::from_millis(millis));
            peer.ask(to, &format!("/v3/{path}"), &body)
        });
    }
    let told = both.alike("what the watch told", |peer, _| {
        by_watch(&peer.told(watch, Duration::from_millis(100)))
    });
    // It began, four keys were put and two ended.
    assert_eq!(told["0"].len(), 7, "{told:?}");
}

#[test]
fn members_without_a_leader_refuse_alike() {
    let cluster = EtcdCluster::of(3);
    let members = cluster.members();
    let addrs = members.iter().map(|member| member.own_addr()).collect();
    let mut both = Both::new(addrs, Etcd::new(3));
    let watch = json!({ "create_request": { "key": encoded("a") } });
    let stream = both.connect(0);
    both.each(|peer, _| peer.begin(stream, "/v3/watch", &watch.to_string()));
    both.simulated.wait(Duration::from_secs(1));
    for at in [1, 2] {
        members[at].kill();
        both.simulated.fault(at, Fault::Kill);
    }
    let _ = both.alike("a stream ends", |peer, _| peer.answer(stream));
    let lease = json!({ "ID": "5" });
    for (path, body) in [
        ("kv/txn", put("a", "0")),
        ("lease/grant", json!({ "ID": "5", "TTL": "50" })),
        ("lease/keepalive", lease.clone()),
        ("lease/timetolive", lease),
        ("maintenance/status", json!({})),
        ("watch", watch),
    ] {
        let to = both.connect(0);
        let _ = both.alike(path, |peer, _| peer.ask(to, &format!("/v3/{path}"), &body));
    }
}
