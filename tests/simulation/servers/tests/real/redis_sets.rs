//! Several simulated Redis servers, which aren't compared: whatever happens to them, they come to terms when it is
//! over, and a slot moves as in a real cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_servers::redis::Redis;
use crosslock_world::service::{Connection, Fault, Host, Service as _};

use crate::redis::packed;

fn millis(desk: &mut Desk<Redis>, millis: u64) {
    desk.wait(Duration::from_millis(millis));
}

fn send(desk: &mut Desk<Redis>, client: Connection, words: &str) -> String {
    let words: Vec<_> = words.split(' ').collect();
    desk.send(client, &packed(&words));
    heard(desk, client)
}

fn heard(desk: &mut Desk<Redis>, client: Connection) -> String {
    let text = String::from_utf8(desk.take(client)).expect("a text");
    text.replace("\r\n", " ").trim_end().to_owned()
}

/// By a connection of its own.
fn ask(desk: &mut Desk<Redis>, at: Host, words: &str) -> String {
    let client = desk.connect(at);
    let answer = send(desk, client, words);
    desk.hang_up(client);
    answer
}

/// Lets anything happen to any host for a while, and then nothing any more.
fn suffer(desk: &mut Desk<Redis>) {
    let (hosts, own) = (desk.service.hosts(), desk.service.own_faults().len());
    let mut is_down = vec![false; hosts];
    for _ in 0..40 {
        let at = desk.random.usize(..hosts);
        let with_data = desk.random.u8(..4) > 0;
        let fault = match desk.random.u8(..8) {
            0 | 1 if is_down[at] => Fault::Start { with_data },
            0 => Fault::Kill,
            1 => Fault::Cut,
            2 | 3 => Fault::Heal,
            4 if !is_down[at] => Fault::Pause,
            5 if !is_down[at] => Fault::Resume,
            _ => Fault::Own(desk.random.usize(..own)),
        };
        desk.fault(at, fault);
        is_down[at] &= !matches!(fault, Fault::Start { .. });
        is_down[at] |= fault == Fault::Kill;
        let key = desk.random.u8(..20);
        ask(desk, at, &format!("SET {key} x PX 5000"));
        let pause = desk.random.u64(..1_500);
        millis(desk, pause);
    }
    for (at, is_down) in is_down.into_iter().enumerate() {
        let fault = match is_down {
            true => Fault::Start { with_data: true },
            false => Fault::Resume,
        };
        desk.fault(at, fault);
        desk.fault(at, Fault::Heal);
    }
    millis(desk, 60_000);
}

#[test]
fn sentinels_come_to_terms_whatever_happens() {
    for seed in 0..60 {
        let mut desk = Desk::new(Redis::sentinels(2), seed);
        suffer(&mut desk);
        let asked = "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster";
        let told: Vec<_> = (3..6).map(|at| ask(&mut desk, at, asked)).collect();
        assert!(
            told.iter().all(|one| *one == told[0]),
            "seed {seed}: {told:?}"
        );
        let roles: Vec<_> = (0..3).map(|at| ask(&mut desk, at, "ROLE")).collect();
        let masters: Vec<_> = (0..3).filter(|at| roles[*at].contains("master")).collect();
        assert_eq!(masters.len(), 1, "seed {seed}: {roles:?} {:?}", desk.log);
        let address = format!("10.0.0.{}", masters[0] + 1);
        assert!(told[0].contains(&address), "seed {seed}: {told:?}");
        let client = desk.connect(masters[0]);
        send(&mut desk, client, "DEL last");
        send(&mut desk, client, "PUBLISH a b");
        let mut answer = send(&mut desk, client, "WAIT 2 1000");
        millis(&mut desk, 1_000);
        answer += &heard(&mut desk, client);
        assert_eq!(answer, ":2", "seed {seed}");
        assert_eq!(desk.wakes_at(), None, "seed {seed}: it comes to rest");
    }
}

/// `{a}` is in the slot 15495, which node 2 has.
#[test]
fn slot_moves_key_by_key_and_takes_its_channels_along() {
    let mut desk = Desk::new(Redis::cluster(), 1);
    for key in ["{a}1", "{a}2", "{a}3"] {
        ask(&mut desk, 2, &format!("SET {key} x"));
    }
    let mut faults = desk.service.own_faults().iter();
    let moves = faults.position(|name| *name == "move slot");
    let moves = Fault::Own(moves.expect("a fault"));
    let listener = desk.connect(2);
    send(&mut desk, listener, "SSUBSCRIBE {a}");
    let mut seen = BTreeSet::new();
    // Some go on from a master that has no keys.
    while ask(&mut desk, 2, "CLUSTER NODES").contains(" 10924-16383") && desk.now.as_secs() < 100 {
        desk.fault(0, moves);
        for _ in 0..300 {
            for asked in ["GET {a}1", "EXISTS {a}9", "MGET {a}1 {a}9"] {
                let answer = ask(&mut desk, 2, asked);
                seen.extend(answer.split(' ').next().map(str::to_owned));
            }
            millis(&mut desk, 1);
        }
        millis(&mut desk, 2_000);
    }
    for code in ["-ASK", "-TRYAGAIN"] {
        assert!(seen.contains(code), "no {code}: {seen:?}");
    }
    assert!(heard(&mut desk, listener).contains("sunsubscribe $3 {a} :0"));
    let told = ask(&mut desk, 2, "GET {a}1");
    let host = told
        .strip_prefix("-MOVED 15495 10.0.0.")
        .and_then(|rest| rest.split(':').next());
    let host: usize = host.expect("a host").parse().expect("a number");
    let all = ask(&mut desk, host - 1, "MGET {a}1 {a}2 {a}3");
    assert_eq!(all, "*3 $1 x $1 x $1 x");
}

/// Of each node that a node tells of, which slots that has.
fn ranges_of(nodes: &str) -> BTreeMap<&str, &str> {
    let lines = nodes.split('\n');
    let lines = lines.filter_map(|line| line.split_once(" connected"));
    lines
        .filter_map(|(node, ranges)| Some((node.split(' ').nth(1)?, ranges)))
        .collect()
}

#[test]
fn nodes_come_to_terms_whatever_happens() {
    for seed in 0..20 {
        let mut desk = Desk::new(Redis::cluster(), seed);
        suffer(&mut desk);
        let views: Vec<_> = (0..6)
            .map(|at| ask(&mut desk, at, "CLUSTER NODES"))
            .collect();
        for (at, view) in views.iter().enumerate() {
            let known = (seed, at, &desk.log, view);
            assert!(!view.contains("fail") && !view.contains("->-"), "{known:?}");
            assert_eq!(ranges_of(view), ranges_of(&views[0]), "{known:?}");
            assert!(!ranges_of(view).is_empty());
        }
        for at in 0..6 {
            let info = ask(&mut desk, at, "CLUSTER INFO");
            assert!(info.contains("cluster_state:ok"), "seed {seed}: {info}");
        }
        assert_eq!(desk.wakes_at(), None, "seed {seed}: it comes to rest");
    }
}
