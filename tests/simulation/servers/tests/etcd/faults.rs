//! What faults do to a simulated ensemble.

use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use crosslock_world::service::{Connection, Fault, Host, Service};
use serde_json::{Value, json};

use crate::answers::Answer;
use crate::peers::{Peer, Simulated, request, with_headers};
use crate::random::encoded;

const SECOND: Duration = Duration::from_secs(1);
/// In this time there is another leader.
const ELECTED: Duration = Duration::from_secs(2);

fn three(seed: u64) -> Simulated {
    Simulated::new(Etcd::new(3), seed)
}

fn ask(simulated: &mut Simulated, at: Host, path: &str, body: &Value) -> Answer {
    let to = simulated.connect(at);
    simulated.ask(to, path, body)
}

fn put(simulated: &mut Simulated, at: Host, value: &str) -> Answer {
    let body = json!({ "key": encoded("a"), "value": encoded(value) });
    ask(simulated, at, "/v3/kv/put", &body)
}

/// Sends a put, and doesn't wait for its answer.
fn begin_put(simulated: &mut Simulated, at: Host, value: &str) -> Connection {
    let to = simulated.connect(at);
    let body = json!({ "key": encoded("a"), "value": encoded(value) });
    simulated.send(to, &request("/v3/kv/put", &body.to_string()));
    to
}

/// What a member says is there, or why it says nothing.
fn get(simulated: &mut Simulated, at: Host, is_serializable: bool) -> Value {
    let body = json!({ "key": encoded("a"), "serializable": is_serializable });
    let answer = ask(simulated, at, "/v3/kv/range", &body);
    let message = &answer.messages[0];
    match answer.status {
        200 => message["kvs"][0]["value"].clone(),
        _ => message["message"].clone(),
    }
}

fn grant(simulated: &mut Simulated, at: Host, seconds: u64) {
    let body = json!({ "ID": "7", "TTL": seconds.to_string() });
    assert_eq!(ask(simulated, at, "/v3/lease/grant", &body).status, 200);
}

/// The seconds for which a member says that it has kept the lease alive.
fn kept(simulated: &mut Simulated, at: Host) -> Option<String> {
    let answer = ask(simulated, at, "/v3/lease/keepalive", &json!({ "ID": "7" }));
    let ttl = answer.messages[0]["result"]["TTL"].as_str();
    ttl.map(str::to_owned)
}

/// Who leads, as each says that has a leader.
fn leader(simulated: &mut Simulated) -> Host {
    let leads = |at: &Host| simulated.leads(*at);
    let leaders: Vec<_> = (0..3).filter(leads).collect();
    assert_eq!(leaders.len(), 1, "{leaders:?}");
    leaders[0]
}

fn others(leader: Host) -> [Host; 2] {
    [(leader + 1) % 3, (leader + 2) % 3]
}

#[test]
fn a_killed_leader_is_replaced_and_nothing_is_lost() {
    for seed in 0..20 {
        let mut all = three(seed);
        let old = leader(&mut all);
        grant(&mut all, old, 4);
        assert_eq!(put(&mut all, others(old)[0], "1").status, 200);
        all.pass(3 * SECOND);
        all.fault(old, Fault::Kill);
        all.pass(ELECTED);
        let new = leader(&mut all);
        assert_ne!(old, new);
        assert_eq!(get(&mut all, others(old)[1], false), encoded("1"));
        // It has its whole time once more.
        all.pass(2 * SECOND);
        assert_eq!(kept(&mut all, new).as_deref(), Some("4"), "seed {seed}");
        all.fault(
            old,
            Fault::Start {
                with_data: seed % 2 == 0,
            },
        );
        all.pass(SECOND);
        assert_eq!(get(&mut all, old, false), encoded("1"));
        assert_eq!(kept(&mut all, old).as_deref(), Some("4"));
        all.pass(6 * SECOND);
        assert_eq!(kept(&mut all, old), None);
    }
}

#[test]
fn what_is_decided_as_its_answer_is_lost_is_chance() {
    let outcomes = (0..40).map(|seed| {
        let mut all = three(seed);
        let old = leader(&mut all);
        let to = begin_put(&mut all, old, "1");
        all.pass(Duration::from_millis(2));
        all.fault(old, Fault::Kill);
        assert!(seed > 0 || all.taken(to).is_none());
        all.pass(ELECTED);
        get(&mut all, others(old)[0], false) == encoded("1")
    });
    let done = outcomes.filter(|done| *done).count();
    assert!((5..35).contains(&done), "{done} of 40");
}

#[test]
fn a_leader_that_goes_on_believes_for_a_moment_that_it_leads() {
    let mut believed = 0;
    for seed in 0..20 {
        let mut all = three(seed);
        let old = leader(&mut all);
        grant(&mut all, old, 10);
        all.fault(old, Fault::Pause);
        all.pass(ELECTED + SECOND);
        let new = others(old)[0];
        assert_eq!(put(&mut all, new, "1").status, 200);
        all.fault(old, Fault::Resume);
        believed += u32::from(all.leads(old));
        let is_kept = kept(&mut all, old);
        assert_eq!(
            is_kept.as_deref(),
            Some("10"),
            "by itself, or by the new one"
        );
        // Of the past it reads nothing.
        let read = get(&mut all, old, false);
        assert!(
            read == encoded("1") || read == "etcdserver: leader changed",
            "{read}"
        );
        all.pass(SECOND);
        assert_ne!(leader(&mut all), old);
    }
    assert!(believed > 15, "{believed}");
}

#[test]
fn a_member_that_is_cut_off_answers_from_the_past_only() {
    let mut all = three(1);
    let old = leader(&mut all);
    assert_eq!(put(&mut all, old, "1").status, 200);
    all.pass(SECOND);
    all.fault(old, Fault::Cut);
    let to = begin_put(&mut all, old, "lost");
    all.pass(ELECTED);
    let new = others(old)[0];
    assert_eq!(put(&mut all, new, "2").status, 200);
    all.pass(SECOND);
    assert_eq!(get(&mut all, old, false), "etcdserver: no leader");
    let body = json!({ "key": encoded("a"), "serializable": true }).to_string();
    let reader = all.connect(old);
    all.send(reader, &with_headers("/v3/kv/range", &body, ""));
    let stale = all.answers(reader, 1).remove(0);
    assert_eq!(stale.messages[0]["kvs"][0]["value"], encoded("1"));
    let refused = all.answers(to, 1).remove(0);
    assert_eq!(
        refused.messages[0]["message"],
        "etcdserver: request timed out"
    );
    all.fault(old, Fault::Heal);
    all.pass(SECOND);
    let now = get(&mut all, old, false);
    assert!(now == encoded("2") || now == encoded("lost"), "{now}");
    assert_eq!(get(&mut all, old, true), now);
}

#[test]
fn without_a_majority_nothing_is_decided() {
    let mut all = three(1);
    let old = leader(&mut all);
    others(old)
        .iter()
        .for_each(|at| all.fault(*at, Fault::Kill));
    let refused = put(&mut all, old, "1");
    assert_eq!(
        (refused.status, refused.messages[0]["code"].clone()),
        (503, json!(14))
    );
    all.pass(60 * SECOND);
    assert!(all.etcd.contents().is_empty());
    all.fault(others(old)[0], Fault::Start { with_data: true });
    all.pass(ELECTED);
    assert_eq!(put(&mut all, old, "2").status, 200);
    assert_eq!(all.etcd.contents(), [r#"a "2" no lease"#]);
}

#[test]
fn one_member_has_what_it_had_or_is_new() {
    let mut one = Simulated::new(Etcd::new(1), 1);
    grant(&mut one, 0, 4);
    let body = json!({ "key": encoded("a"), "value": encoded("1"), "lease": "7" });
    assert_eq!(ask(&mut one, 0, "/v3/kv/put", &body).status, 200);
    assert_eq!(one.etcd.contents().len(), 1);
    for with_data in [true, false] {
        let before = one.member(0);
        one.fault(0, Fault::Kill);
        one.pass(10 * SECOND);
        one.fault(0, Fault::Start { with_data });
        assert_eq!(get(&mut one, 0, false), "etcdserver: no leader");
        one.pass(ELECTED);
        let there = get(&mut one, 0, false);
        assert_eq!(there == encoded("1"), with_data, "{there}");
        assert_eq!(one.member(0) == before, with_data);
        assert_eq!(one.etcd.contents().len(), usize::from(with_data));
    }
}

#[test]
fn own_faults_do_what_their_names_say() {
    let mut all = three(1);
    let names = all.etcd.own_faults();
    let own = |name: &str| Fault::Own(names.iter().position(|own| *own == name).expect("known"));
    let old = leader(&mut all);
    all.fault(0, own("election"));
    all.pass(SECOND);
    assert_ne!(leader(&mut all), old);
    for value in ["1", "2", "3"] {
        put(&mut all, 0, value);
    }
    all.fault(0, own("compact"));
    all.pass(SECOND);
    let watch = json!({ "create_request": { "key": encoded("a"), "start_revision": "2" } });
    let to = all.connect(1);
    all.send(to, &request("/v3/watch", &watch.to_string()));
    let told = all.told(to, SECOND);
    assert_eq!(told[1]["result"]["compact_revision"], "4", "{told:?}");
}

/// Has one member after the other stand still, be gone or be cut off, and puts and reads values at others. Values that
/// were acknowledged stay. Returns what was read, and how many were acknowledged.
fn storm(seed: u64) -> (Vec<Value>, usize) {
    let mut all = three(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut least, mut done, mut reads) = (0, 0, Vec::new());
    for last in 1..=30 {
        let at = random.usize(..3);
        let (fault, mended) = match random.u8(..4) {
            0 => (Fault::Kill, Fault::Start { with_data: true }),
            1 => (Fault::Pause, Fault::Resume),
            2 => (Fault::Cut, Fault::Heal),
            _ => (Fault::Own(1), Fault::StepClock { micros: 1 }),
        };
        all.fault(at, fault);
        all.pass(Duration::from_millis(random.u64(..3000)));
        let asked = (at + random.usize(1..3)) % 3;
        if put(&mut all, asked, &last.to_string()).status == 200 {
            (least, done) = (last, done + 1);
        }
        all.fault(at, mended);
        all.pass(Duration::from_millis(random.u64(..200)));
        let read = get(&mut all, random.usize(..3), false);
        let value = (least..=last).find(|value| read == encoded(&value.to_string()));
        let is_refused = read
            .as_str()
            .is_some_and(|text| text.starts_with("etcdserver"));
        assert!(
            value.is_some() || is_refused || least == 0,
            "seed {seed}: {read} after {least}"
        );
        least = value.unwrap_or(least);
        reads.push(read);
    }
    (reads, done)
}

#[test]
fn what_was_acknowledged_stays_whatever_happens() {
    for seed in 0..60 {
        let (_, done) = storm(seed);
        assert!(done > 15, "seed {seed}: {done} of 30");
    }
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(storm(7), storm(7));
    assert_ne!(storm(7), storm(8));
}
