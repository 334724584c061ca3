//! What faults do to a simulated ensemble.

use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_servers::etcd::Etcd;
use crosslock_world::service::{Fault, Host};
use fastrand::Rng;
use serde_json::{Value, json};

use super::answers::{Answer, Asked as _, encoded};

type Simulated = Desk<Etcd>;

const SECOND: Duration = Duration::from_secs(1);
/// In this time there is another leader.
const ELECTED: Duration = Duration::from_secs(2);

fn three(seed: u64) -> Simulated {
    Simulated::new(Etcd::new(3), seed)
}

fn ask(all: &mut Simulated, at: Host, path: &str, body: &Value) -> Answer {
    let to = all.connect(at);
    all.ask(to, path, body)
}

fn put_of(value: &str) -> Value {
    json!({ "success": [{ "request_put": { "key": encoded("a"), "value": encoded(value) } }] })
}

fn put(all: &mut Simulated, at: Host, value: &str) -> Answer {
    ask(all, at, "/v3/kv/txn", &put_of(value))
}

/// What a member says is there, or why it says nothing.
fn get(all: &mut Simulated, at: Host) -> Value {
    let look = json!({ "success": [{ "request_range": { "key": encoded("a") } }] });
    match ask(all, at, "/v3/kv/txn", &look) {
        Ok(told) => told[0]["responses"][0]["response_range"]["kvs"][0]["value"].clone(),
        Err((_, why)) => why.into(),
    }
}

fn grant(all: &mut Simulated, at: Host, seconds: u64) {
    let body = json!({ "ID": "7", "TTL": seconds.to_string() });
    ask(all, at, "/v3/lease/grant", &body).expect("granted");
}

/// The seconds for which a member says that it has kept the lease alive.
fn kept(all: &mut Simulated, at: Host) -> Option<String> {
    let answer = ask(all, at, "/v3/lease/keepalive", &json!({ "ID": "7" }));
    let ttl = &answer.ok()?[0]["result"]["TTL"];
    ttl.as_str().map(str::to_owned)
}

/// Whether it takes itself for the leader.
fn leads(all: &mut Simulated, at: Host) -> bool {
    if !all.is_up(at) {
        return false;
    }
    let to = all.connect(at);
    all.begin(to, "/v3/maintenance/status", "{}");
    let text = String::from_utf8(all.take(to)).expect("a text");
    let (_, body) = text.split_once("\r\n\r\n").expect("it answers at once");
    let status: Value = serde_json::from_str(body).expect("JSON");
    status["header"]["member_id"] == status["leader"]
}

fn leader(all: &mut Simulated) -> Host {
    let leaders: Vec<_> = (0..3).filter(|at| leads(all, *at)).collect();
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
        put(&mut all, others(old)[0], "1").expect("a majority is there");
        all.wait(3 * SECOND);
        all.fault(old, Fault::Kill);
        all.wait(ELECTED);
        let new = leader(&mut all);
        assert_ne!(old, new);
        assert_eq!(get(&mut all, others(old)[1]), encoded("1"));
        // It has its whole time once more.
        all.wait(2 * SECOND);
        assert_eq!(kept(&mut all, new).as_deref(), Some("4"), "seed {seed}");
        all.fault(old, Fault::Start { with_data: true });
        all.wait(SECOND);
        assert_eq!(get(&mut all, old), encoded("1"));
        assert_eq!(kept(&mut all, old).as_deref(), Some("4"));
        all.wait(6 * SECOND);
        assert_eq!(kept(&mut all, old), None);
    }
}

#[test]
fn a_leader_that_goes_on_believes_for_a_moment_that_it_leads() {
    let mut believed = 0;
    for seed in 0..20 {
        let mut all = three(seed);
        let old = leader(&mut all);
        grant(&mut all, old, 10);
        all.fault(old, Fault::Pause);
        all.wait(ELECTED + SECOND);
        put(&mut all, others(old)[0], "1").expect("a majority is there");
        all.fault(old, Fault::Resume);
        believed += u32::from(leads(&mut all, old));
        // By itself, or by the new one.
        assert_eq!(kept(&mut all, old).as_deref(), Some("10"));
        // Of the past it reads nothing.
        let read = get(&mut all, old);
        assert!(
            read == encoded("1") || read == "etcdserver: leader changed",
            "{read}"
        );
        all.wait(SECOND);
        assert_ne!(leader(&mut all), old);
    }
    assert!(believed > 15, "{believed}");
}

/// Has one member after the other stand still, be gone or be cut off, and puts and reads values at others. Values that
/// were acknowledged stay. Returns what was read, and how many were acknowledged.
fn storm(seed: u64) -> (Vec<Value>, usize) {
    let (mut all, mut random) = (three(seed), Rng::with_seed(seed));
    let (mut least, mut done, mut reads) = (0, 0, Vec::new());
    for last in 1..=30 {
        let at = random.usize(..3);
        let (fault, mended) = match random.u8(..4) {
            0 => (Fault::Kill, Fault::Start { with_data: true }),
            1 => (Fault::Pause, Fault::Resume),
            2 => (Fault::Cut, Fault::Heal),
            _ => (Fault::Own(0), Fault::StepClock { micros: 1 }),
        };
        all.fault(at, fault);
        all.wait(Duration::from_millis(random.u64(..3000)));
        let asked = (at + random.usize(1..3)) % 3;
        if put(&mut all, asked, &last.to_string()).is_ok() {
            (least, done) = (last, done + 1);
        }
        all.fault(at, mended);
        all.wait(Duration::from_millis(random.u64(..200)));
        let read = get(&mut all, random.usize(..3));
        let value = (least..=last).find(|value| read == encoded(&value.to_string()));
        let text = read.as_str().unwrap_or_default();
        let is_refused = text.starts_with("etcdserver");
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
    assert_eq!(storm(7), storm(7));
    assert_ne!(storm(7), storm(8));
}
