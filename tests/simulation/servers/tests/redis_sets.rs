//! Several simulated Redis servers: whatever happens to them, they come to terms when it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_servers::redis::{Cluster, Sentinels, Single};
use crosslock_world::service::{Connection, Done, Fault, Host, Io, Service};

/// A service by a clock that the test moves, with clients that send at once.
struct Desk<S> {
    service: S,
    random: fastrand::Rng,
    now: Duration,
    wakes_at: Option<Duration>,
    clients: Connection,
    answers: BTreeMap<Connection, Vec<u8>>,
    closed: Vec<Connection>,
    log: Vec<String>,
}

const SINCE_1970: Duration = Duration::from_secs(1_700_000_000);

impl<S: Service> Desk<S> {
    fn new(service: S, seed: u64) -> Self {
        let mut desk = Desk {
            service,
            random: fastrand::Rng::with_seed(seed),
            now: Duration::ZERO,
            wakes_at: None,
            clients: 0,
            answers: BTreeMap::new(),
            closed: Vec::new(),
            log: Vec::new(),
        };
        desk.tell(|service, io| service.woken(io));
        desk
    }

    fn tell(&mut self, what: impl FnOnce(&mut S, &mut Io<'_>)) {
        let walls = vec![SINCE_1970 + self.now; self.service.hosts()];
        let mut io = Io {
            now: self.now,
            walls: &walls,
            random: &mut self.random,
            done: Vec::new(),
        };
        what(&mut self.service, &mut io);
        for done in io.done {
            match done {
                Done::Send(client, bytes) => self.answers.entry(client).or_default().extend(bytes),
                Done::Close(client) => self.closed.push(client),
                Done::WakeAt(at) => {
                    self.wakes_at = Some(self.wakes_at.map_or(at, |before| before.min(at)));
                }
                Done::Log(line) => self.log.push(format!("{:?} {line}", self.now)),
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.wakes_at.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.wakes_at = None;
            self.tell(|service, io| service.woken(io));
        }
        self.now = until;
    }

    fn millis(&mut self, millis: u64) {
        self.wait(Duration::from_millis(millis));
    }

    fn fault(&mut self, at: Host, fault: Fault) {
        self.tell(|service, io| service.fault(io, at, fault));
    }

    fn own_fault(&mut self, at: Host, name: &str) {
        let all = self.service.own_faults();
        let which = all.iter().position(|one| *one == name);
        self.fault(at, Fault::Own(which.expect("a fault")));
    }

    fn connect(&mut self, at: Host) -> Connection {
        self.clients += 1;
        let client = self.clients;
        self.tell(|service, io| service.connected(io, at, client));
        client
    }

    fn send(&mut self, (at, client): (Host, Connection), words: &str) -> String {
        let words: Vec<_> = words.split(' ').collect();
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.tell(|service, io| service.received(io, at, client, bytes.as_bytes()));
        self.heard(client)
    }

    fn heard(&mut self, client: Connection) -> String {
        let bytes = self.answers.remove(&client).unwrap_or_default();
        let text = String::from_utf8(bytes).expect("a text");
        text.replace("\r\n", " ").trim_end().to_owned()
    }

    /// By a connection of its own.
    fn ask(&mut self, at: Host, words: &str) -> String {
        let client = self.connect(at);
        let answer = self.send((at, client), words);
        self.tell(|service, io| service.closed(io, at, client));
        answer
    }

    /// Lets anything happen to any host for a while, and then nothing any more.
    fn suffer(&mut self, faults: usize) {
        let (hosts, own) = (self.service.hosts(), self.service.own_faults().len());
        let (mut is_down, mut is_paused) = (vec![false; hosts], vec![false; hosts]);
        for _ in 0..faults {
            let at = self.random.usize(..hosts);
            let fault = match self.random.u8(..8) {
                0 if !is_down[at] => Fault::Kill,
                0 | 1 if is_down[at] => Fault::Start {
                    with_data: self.random.u8(..4) > 0,
                },
                1 => Fault::Cut,
                2 | 3 => Fault::Heal,
                4 if !is_down[at] => Fault::Pause,
                5 if is_paused[at] => Fault::Resume,
                _ => Fault::Own(self.random.usize(..own)),
            };
            (is_down[at], is_paused[at]) = match fault {
                Fault::Kill => (true, false),
                Fault::Start { .. } => (false, false),
                Fault::Pause => (is_down[at], true),
                Fault::Resume => (is_down[at], false),
                _ => (is_down[at], is_paused[at]),
            };
            self.fault(at, fault);
            if !is_down[at] && !is_paused[at] {
                let key = self.random.u8(..20);
                self.ask(at, &format!("SET {key} x PX 5000"));
            }
            let pause = self.random.u64(..1_500);
            self.millis(pause);
        }
        for at in 0..hosts {
            if is_down[at] {
                self.fault(at, Fault::Start { with_data: true });
            }
            if is_paused[at] {
                self.fault(at, Fault::Resume);
            }
            self.fault(at, Fault::Heal);
        }
        self.millis(60_000);
    }
}

#[test]
fn one_server_keeps_what_it_has_through_a_restart_or_loses_it() {
    let mut desk = Desk::new(Single::new(), 1);
    assert_eq!(desk.ask(0, "SET a 1 PX 1000"), "+OK");
    assert_eq!(desk.ask(0, "SET b 1"), "+OK");
    let restart = |desk: &mut Desk<Single>, with_data| {
        desk.fault(0, Fault::Kill);
        desk.fault(0, Fault::Start { with_data });
    };
    restart(&mut desk, true);
    assert_eq!(desk.ask(0, "PTTL a"), ":1000");
    desk.millis(1_500);
    assert_eq!(desk.service.contents(), ["b string 1 no ttl"]);
    restart(&mut desk, false);
    assert_eq!(desk.ask(0, "GET b"), "$-1");
}

#[test]
fn full_server_refuses_what_needs_memory() {
    let mut desk = Desk::new(Single::new(), 1);
    desk.ask(0, "SET a 1");
    desk.own_fault(0, "full");
    assert!(desk.ask(0, "SET b 1").starts_with("-OOM"));
    assert_eq!(desk.ask(0, "PEXPIRE a 5000"), ":1");
    desk.own_fault(0, "evict");
    assert_eq!(desk.ask(0, "GET a"), "$-1");
}

#[test]
fn replica_has_what_was_waited_for_and_refuses_writes() {
    let mut desk = Desk::new(Sentinels::new(2), 1);
    desk.millis(100);
    let client = desk.connect(0);
    assert_eq!(desk.send((0, client), "SET a 1"), "+OK");
    assert_eq!(desk.send((0, client), "WAIT 2 1000"), "");
    desk.millis(20);
    assert_eq!(desk.heard(client), ":2");
    assert_eq!(desk.ask(1, "GET a"), "$1 1");
    assert!(desk.ask(1, "SET a 2").starts_with("-READONLY"));
    // One that is cut off has nothing new, and isn't counted.
    desk.fault(1, Fault::Cut);
    desk.send((0, client), "SET a 2");
    assert_eq!(desk.send((0, client), "WAIT 2 500"), "");
    desk.millis(500);
    assert_eq!(desk.heard(client), ":1");
    assert_eq!(desk.ask(1, "GET a"), "$1 1");
    desk.fault(1, Fault::Heal);
    desk.millis(500);
    assert_eq!(desk.ask(1, "GET a"), "$1 2");
}

#[test]
fn master_that_is_cut_off_is_replaced_and_loses_what_it_went_on_to_write() {
    let mut desk = Desk::new(Sentinels::new(2), 1);
    desk.millis(100);
    desk.ask(0, "SET a 1");
    desk.millis(100);
    desk.fault(0, Fault::Cut);
    desk.millis(3_000);
    assert_eq!(desk.ask(0, "SET a 2"), "+OK");
    let told = desk.ask(3, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
    let master = if told.contains("10.0.0.2") { 1 } else { 2 };
    assert!(!told.contains("10.0.0.1"), "{told}");
    assert!(
        desk.ask(3, "SENTINEL MASTER mymaster")
            .contains("config-epoch $1 1")
    );
    assert_eq!(desk.ask(master, "GET a"), "$1 1");
    desk.fault(0, Fault::Heal);
    desk.millis(10_000);
    assert!(desk.ask(0, "ROLE").contains("slave"));
    assert_eq!(desk.ask(0, "GET a"), "$1 1");
}

#[test]
fn sentinels_come_to_terms_whatever_happens() {
    for seed in 0..60 {
        let mut desk = Desk::new(Sentinels::new(2), seed);
        desk.suffer(40);
        let told = (3..6).map(|at| desk.ask(at, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"));
        let told: Vec<_> = told.collect();
        assert!(
            told.iter().all(|one| *one == told[0]),
            "seed {seed}: {told:?}"
        );
        let roles: Vec<_> = (0..3).map(|at| desk.ask(at, "ROLE")).collect();
        let masters: Vec<_> = (0..3).filter(|at| roles[*at].contains("master")).collect();
        assert_eq!(masters.len(), 1, "seed {seed}: {roles:?} {:?}", desk.log);
        assert!(
            told[0].contains(&format!("10.0.0.{}", masters[0] + 1)),
            "seed {seed}"
        );
        let client = desk.connect(masters[0]);
        desk.send((masters[0], client), "DEL last");
        desk.send((masters[0], client), "PUBLISH a b");
        let mut heard = desk.send((masters[0], client), "WAIT 2 1000");
        desk.millis(1_000);
        heard += &desk.heard(client);
        assert_eq!(heard, ":2", "seed {seed}");
        assert!(
            desk.wakes_at.is_none(),
            "seed {seed}: it doesn't come to rest"
        );
    }
}

/// As scripts, pipes and the slots of names are: `{a}` is in the slot 15495, which node 2 has.
const TO: &str = "10.0.0.3:6379";

#[test]
fn node_sends_a_client_to_the_one_that_has_the_slot() {
    let mut desk = Desk::new(Cluster::new(), 1);
    assert_eq!(desk.ask(0, "GET {a}1"), format!("-MOVED 15495 {TO}"));
    assert_eq!(desk.ask(2, "SET {a}1 x"), "+OK");
    assert!(desk.ask(2, "MGET {a}1 {b}1").starts_with("-CROSSSLOT"));
    desk.millis(100);
    assert_eq!(desk.ask(5, "GET {a}1"), format!("-MOVED 15495 {TO}"));
    let client = desk.connect(5);
    desk.send((5, client), "READONLY");
    assert_eq!(desk.send((5, client), "GET {a}1"), "$1 x");
}

#[test]
fn slot_moves_key_by_key_and_takes_its_channels_along() {
    let mut desk = Desk::new(Cluster::new(), 1);
    for key in ["{a}1", "{a}2", "{a}3"] {
        desk.ask(2, &format!("SET {key} x"));
    }
    let listener = desk.connect(2);
    desk.send((2, listener), "SSUBSCRIBE {a}");
    let mut seen = BTreeMap::new();
    // Some go on from a master that has no keys.
    while desk.ask(2, "CLUSTER NODES").contains(" 10924-16383") && desk.now.as_secs() < 100 {
        desk.own_fault(0, "move slot");
        for _ in 0..300 {
            let answer = desk.ask(2, "MGET {a}1 {a}9");
            let asked = [desk.ask(2, "GET {a}1"), desk.ask(2, "EXISTS {a}9"), answer];
            for answer in asked {
                let code = answer.split(' ').next().unwrap_or_default().to_owned();
                *seen.entry(code).or_insert(0) += 1;
            }
            desk.millis(1);
        }
        desk.millis(2_000);
    }
    for code in ["-ASK", "-TRYAGAIN", "-MOVED"] {
        assert!(seen.contains_key(code), "no {code}: {seen:?}");
    }
    assert!(desk.heard(listener).contains("sunsubscribe $3 {a} :0"));
    let told = desk.ask(2, "GET {a}1");
    let host = told
        .rsplit("10.0.0.")
        .next()
        .and_then(|rest| rest.split(':').next());
    let host: usize = host.expect("a host").parse().expect("a number");
    assert_eq!(
        desk.ask(host - 1, "MGET {a}1 {a}2 {a}3"),
        "*3 $1 x $1 x $1 x"
    );
}

#[test]
fn replica_takes_the_place_of_a_node_that_is_killed() {
    let mut desk = Desk::new(Cluster::new(), 1);
    desk.ask(2, "SET {a}1 x");
    desk.millis(100);
    desk.fault(2, Fault::Kill);
    desk.millis(1_500);
    assert_eq!(desk.ask(0, "GET {a}1"), "-CLUSTERDOWN The cluster is down");
    desk.millis(4_000);
    assert_eq!(desk.ask(0, "GET {a}1"), "-MOVED 15495 10.0.0.6:6379");
    assert_eq!(desk.ask(5, "GET {a}1"), "$1 x");
    desk.fault(2, Fault::Start { with_data: true });
    desk.millis(5_000);
    assert!(desk.ask(2, "ROLE").contains("slave"));
}

#[test]
fn node_that_is_cut_off_serves_no_more_after_a_while() {
    let mut desk = Desk::new(Cluster::new(), 1);
    desk.fault(2, Fault::Cut);
    assert_eq!(desk.ask(2, "SET {a}1 x"), "+OK");
    desk.millis(5_000);
    assert_eq!(desk.ask(2, "GET {a}1"), "-CLUSTERDOWN The cluster is down");
    assert_eq!(desk.ask(5, "GET {a}1"), "$-1");
}

/// Which node has each slot, as a node tells it.
fn ranges_of(nodes: &str) -> BTreeMap<String, Vec<String>> {
    let lines = nodes.lines().filter(|line| line.contains("connected"));
    let ranges = lines.map(|line| {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        (words[1].clone(), words[8..].to_vec())
    });
    ranges.collect()
}

#[test]
fn nodes_come_to_terms_whatever_happens() {
    for seed in 0..20 {
        let mut desk = Desk::new(Cluster::new(), seed);
        desk.suffer(40);
        let views = (0..6).map(|at| {
            let client = desk.connect(at);
            let nodes = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n";
            desk.tell(|service, io| service.received(io, at, client, nodes.as_bytes()));
            String::from_utf8(desk.answers.remove(&client).expect("an answer")).expect("a text")
        });
        let views: Vec<_> = views.collect();
        for (at, view) in views.iter().enumerate() {
            let known = (seed, at, &desk.log, view);
            assert!(!view.contains("fail") && !view.contains("->-"), "{known:?}");
            assert_eq!(ranges_of(view), ranges_of(&views[0]), "{known:?}");
        }
        for at in 0..6 {
            let info = desk.ask(at, "CLUSTER INFO");
            assert!(info.contains("cluster_state:ok"), "seed {seed}: {info}");
            assert!(
                info.contains("cluster_slots_assigned:16384"),
                "seed {seed}: {info}"
            );
        }
        assert!(
            desk.wakes_at.is_none(),
            "seed {seed}: it doesn't come to rest"
        );
    }
}

#[test]
fn same_seed_gives_the_same() {
    let play = |seed| {
        let mut desk = Desk::new(Cluster::new(), seed);
        desk.suffer(20);
        (desk.log, desk.answers, desk.closed, desk.service.contents())
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7).0, play(8).0);
}
