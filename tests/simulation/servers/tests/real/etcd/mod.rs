//! etcd.

mod answers;
mod faults;
mod random;

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_servers::etcd::Etcd;
use crosslock_world::service::Fault;
use fastrand::Rng;
use serde_json::{Value, json};
use support::{EtcdCluster, EtcdSetup};

use self::answers::{Answer, Asked, encoded};
use crate::peers::{Peer, Real};

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
    let mut real = Real::new(vec![server.own_addr()]);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut simulated = Desk::new(Etcd::new(1), seed);
    let (writer, our_writer) = (real.connect(0), simulated.connect(0));
    let mut now = 1;
    let wait = Duration::from_millis(150);
    for round in 0..20 {
        let (stream, our_stream) = (real.connect(0), simulated.connect(0));
        let watched = random::watches(&mut random);
        real.begin(stream, "/v3/watch", &watched);
        simulated.begin(our_stream, "/v3/watch", &watched);
        real.told(stream, wait);
        for _ in 0..75 {
            let (path, body) = random::asked(&mut random, now);
            let theirs = real.ask(writer, path, &body);
            let ours = simulated.ask(our_writer, path, &body);
            assert_eq!(theirs, ours, "round {round}: {path} {body}");
            now = revision(&theirs).unwrap_or(now);
        }
        let (theirs, ours) = (real.told(stream, wait), simulated.told(our_stream, wait));
        assert_eq!(
            by_watch(&theirs),
            by_watch(&ours),
            "round {round}: {watched}"
        );
    }
    assert!(now > 200, "only {now} changes");
}

/// Keeps a lease alive, lets it end, and asks for it; returns the answers, and what a watch told.
fn with_ended_lease(peer: &mut impl Peer) -> (Vec<Answer>, BTreeMap<String, Vec<Value>>) {
    let (to, watch) = (peer.connect(0), peer.connect(0));
    let lease = json!({ "ID": "7" });
    let everything = json!({ "key": encoded("a"), "range_end": encoded("b") });
    let create = json!({ "create_request": everything });
    peer.begin(watch, "/v3/watch", &create.to_string());
    peer.told(watch, Duration::from_millis(200));
    let granted = peer.ask(to, "/v3/lease/grant", &json!({ "ID": "7", "TTL": "2" }));
    assert!(granted.is_ok(), "{granted:?}");
    // The last one leaves it.
    for (key, lease) in [("a/2", "7"), ("a/1", "7"), ("a/3", "7"), ("a/3", "0")] {
        let put = json!({ "request_put": { "key": encoded(key), "lease": lease } });
        let put = peer.ask(to, "/v3/kv/txn", &json!({ "success": [put] }));
        assert!(put.is_ok(), "{put:?}");
    }
    peer.told(watch, Duration::from_millis(1000));
    let mut answers = vec![peer.ask(to, "/v3/lease/keepalive", &lease)];
    peer.told(watch, Duration::from_millis(1500));
    answers.push(peer.ask(to, "/v3/lease/timetolive", &lease));
    let messages = peer.told(watch, Duration::from_millis(2500));
    for path in ["timetolive", "keepalive", "revoke"] {
        answers.push(peer.ask(to, &format!("/v3/lease/{path}"), &lease));
    }
    let look = json!({ "success": [{ "request_range": everything }] });
    answers.push(peer.ask(to, "/v3/kv/txn", &look));
    (answers, by_watch(&messages))
}

#[test]
fn leases_end_in_their_time() {
    let server = setup().start();
    let theirs = with_ended_lease(&mut Real::new(vec![server.own_addr()]));
    let ours = with_ended_lease(&mut Desk::new(Etcd::new(1), 1));
    assert_eq!(theirs, ours);
}

#[test]
fn members_without_a_leader_refuse_alike() {
    let cluster = EtcdCluster::of(3);
    let members = cluster.members();
    let mut real = Real::new(members.iter().map(|member| member.own_addr()).collect());
    let mut simulated = Desk::new(Etcd::new(3), 1);
    let watch = json!({ "create_request": { "key": encoded("a") } }).to_string();
    let streams = (real.connect(0), simulated.connect(0));
    real.begin(streams.0, "/v3/watch", &watch);
    simulated.begin(streams.1, "/v3/watch", &watch);
    simulated.told(streams.1, Duration::from_secs(1));
    for at in [1, 2] {
        members[at].kill();
        simulated.fault(at, Fault::Kill);
    }
    // Streams end, too.
    assert_eq!(real.answer(streams.0), simulated.answer(streams.1));
    let put = json!({ "success": [{ "request_put": { "key": encoded("a") } }] });
    let lease = json!({ "ID": "5" });
    for (path, body) in [
        ("/v3/kv/txn", put),
        ("/v3/lease/grant", json!({ "ID": "5", "TTL": "50" })),
        ("/v3/lease/keepalive", lease.clone()),
        ("/v3/lease/timetolive", lease),
        ("/v3/maintenance/status", json!({})),
        (
            "/v3/watch",
            json!({ "create_request": { "key": encoded("a") } }),
        ),
    ] {
        let (theirs, ours) = (real.connect(0), simulated.connect(0));
        let (theirs, ours) = (
            real.ask(theirs, path, &body),
            simulated.ask(ours, path, &body),
        );
        assert_eq!(theirs, ours, "{path}");
    }
}
