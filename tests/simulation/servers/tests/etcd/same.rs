//! Random requests to one member.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use serde_json::{Value, json};
use support::EtcdSetup;

use crate::answers::Answer;
use crate::peers::{Peer, Real, Simulated, request};
use crate::random;

/// A real server with etcd's own times, by which the shortest ttl is that of the simulated one.
pub fn setup() -> EtcdSetup {
    EtcdSetup::new().flag("election-timeout", "1000")
}

/// The revision that an answer tells of.
fn revision(answer: &Answer) -> Option<u64> {
    answer.messages.first()?["header"]["revision"]
        .as_str()?
        .parse()
        .ok()
}

#[test]
fn random_requests_have_the_same_answers() {
    let server = setup().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut simulated = Simulated::new(Etcd::new(1), seed);
    let (mut at_real, mut at_simulated) = (real.connect(0), simulated.connect(0));
    let mut now = 1;
    for round in 0..600 {
        if random.u8(..20) == 0 {
            (at_real, at_simulated) = (real.connect(0), simulated.connect(0));
        }
        // Some are sent at once.
        let asked: Vec<_> = (0..random.usize(1..4))
            .map(|_| random::asked(&mut random, now))
            .collect();
        let bytes = asked
            .iter()
            .map(|(path, body)| request(path, &body.to_string()));
        let bytes = bytes.collect::<Vec<_>>().concat();
        real.send(at_real, &bytes);
        simulated.send(at_simulated, &bytes);
        let theirs = real.answers(at_real, asked.len());
        let ours = simulated.answers(at_simulated, asked.len());
        for ((asked, theirs), ours) in asked.iter().zip(&theirs).zip(&ours) {
            assert_eq!(theirs, ours, "round {round}: {} {}", asked.0, asked.1);
            now = revision(theirs).unwrap_or(now);
        }
    }
    assert!(now > 200, "only {now} changes");
}

/// Whether each member has to answer it as the others do.
fn is_of_the_present(path: &str, body: &Value) -> bool {
    let body = body.to_string();
    let is_linearizable = !body.contains("serializable");
    match path {
        "/v3/kv/range" => is_linearizable,
        // Without an operation it isn't, either.
        "/v3/kv/txn" => is_linearizable && body.contains("request_"),
        "/v3/maintenance/status" | "/v3/lease/keepalive" | "/v3/lease/timetolive" => false,
        _ => true,
    }
}

#[test]
fn members_answer_as_one() {
    let cluster = setup().cluster(3);
    let members = cluster.members();
    let mut real = Real::new(members.iter().map(|member| member.own_addr()).collect());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut simulated = Simulated::new(Etcd::new(3), seed);
    let pairs = [0, 1, 2].map(|at| (real.connect(at), simulated.connect(at)));
    let mut now = 1;
    for round in 0..300 {
        let (path, body) = random::asked(&mut random, now);
        if path == "/v3/kv/txn" && body.to_string().contains("\"revision\"") {
            // Some members would carry it out and some wouldn't: https://github.com/etcd-io/etcd/issues/18667
            continue;
        }
        let (theirs, ours) = pairs[random.usize(..3)];
        let (theirs, ours) = (
            real.ask(theirs, path, &body),
            simulated.ask(ours, path, &body),
        );
        let is_same = theirs == ours || !is_of_the_present(path, &body);
        assert!(
            is_same,
            "round {round}: {path} {body}: {theirs:?}, {ours:?}"
        );
        now = revision(&theirs).unwrap_or(now).max(now);
    }
}

/// Of each watch: how it began, all events in their order, and how it ended.
fn by_watch(messages: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut watches = BTreeMap::<_, Vec<_>>::new();
    for message in messages {
        let result = &message["result"];
        let id = result["watch_id"].as_str().unwrap_or("0").to_owned();
        let told = watches.entry(id).or_default();
        match result["events"].as_array() {
            Some(events) => told.extend(events.iter().cloned()),
            None => told.push(message.clone()),
        }
    }
    watches
}

#[test]
fn watches_tell_of_the_same_events() {
    let server = setup().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut simulated = Simulated::new(Etcd::new(1), seed);
    let mut now = 1;
    for round in 0..12 {
        let (writer, ours) = (real.connect(0), simulated.connect(0));
        let mut pairs = Vec::new();
        for _ in 0..3 {
            let asked = random::watches(&mut random, now);
            let pair = (real.connect(0), simulated.connect(0));
            real.send(pair.0, &request("/v3/watch", &asked));
            simulated.send(pair.1, &request("/v3/watch", &asked));
            pairs.push((pair, asked));
        }
        // Those that begin in the past are told of it, and begin.
        let wait = Duration::from_millis(150);
        for (pair, _) in &pairs {
            real.told(pair.0, wait);
        }
        simulated.pass(wait);
        for _ in 0..30 {
            let (path, body) = random::asked(&mut random, now);
            let (theirs, ours) = (
                real.ask(writer, path, &body),
                simulated.ask(ours, path, &body),
            );
            assert_eq!(theirs, ours, "round {round}: {path} {body}");
            now = revision(&theirs).unwrap_or(now);
        }
        for ((theirs, ours), asked) in pairs {
            let (theirs, ours) = (real.told(theirs, wait), simulated.told(ours, wait));
            assert_eq!(by_watch(&theirs), by_watch(&ours), "round {round}: {asked}");
        }
    }
}

/// Keeps a lease alive, lets it end, and asks for it; returns the answers, and what a watch told.
fn with_ended_lease(peer: &mut dyn Peer) -> (Vec<Answer>, BTreeMap<String, Vec<Value>>) {
    let (to, watch) = (peer.connect(0), peer.connect(0));
    let lease = json!({ "ID": "7", "keys": true });
    let everything = json!({ "key": random::encoded("a"), "range_end": random::encoded("b") });
    let create = json!({ "create_request": everything });
    peer.send(watch, &request("/v3/watch", &create.to_string()));
    peer.told(watch, Duration::from_millis(200));
    peer.ask(to, "/v3/lease/grant", &json!({ "ID": "7", "TTL": "2" }));
    for key in ["a/2", "a/1", "a/3"] {
        let put = json!({ "key": random::encoded(key), "lease": "7" });
        peer.ask(to, "/v3/kv/put", &put);
    }
    // This one leaves it.
    let put = json!({ "key": random::encoded("a/3") });
    peer.ask(to, "/v3/kv/put", &put);
    peer.told(watch, Duration::from_millis(1000));
    let mut answers = vec![peer.ask(to, "/v3/lease/keepalive", &json!({ "ID": "7" }))];
    peer.told(watch, Duration::from_millis(1500));
    answers.push(peer.ask(to, "/v3/lease/timetolive", &lease));
    let messages = peer.told(watch, Duration::from_millis(2500));
    answers.push(peer.ask(to, "/v3/lease/timetolive", &lease));
    for path in ["/v3/lease/keepalive", "/v3/lease/revoke"] {
        answers.push(peer.ask(to, path, &json!({ "ID": "7" })));
    }
    answers.push(peer.ask(to, "/v3/kv/range", &everything));
    (answers, by_watch(&messages))
}

#[test]
fn leases_end_in_their_time() {
    let server = setup().start();
    let mut real = Real::new(vec![server.own_addr()]);
    let mut simulated = Simulated::new(Etcd::new(1), 1);
    assert_eq!(
        with_ended_lease(&mut real),
        with_ended_lease(&mut simulated)
    );
}
