//! What the simulated ensemble does when its servers fail.

use std::time::Duration;

use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_world::service::{Fault, Service as _};
use fastrand::Rng;

use crate::records::{Record, Welcome, handshake};
use crate::servers::{Server as _, Simulated, Until};

const SECOND: Duration = Duration::from_secs(1);
/// The leader of a new ensemble.
const LEADER: usize = 2;
const NO_NODE: i32 = -101;

/// A client that looks for a server as long as it is patient.
struct Client {
    at: usize,
    connection: u64,
    welcome: Welcome,
    seen: i64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    Closed,
    Silent,
    Code(i32),
}

impl Client {
    fn new(at: usize) -> Self {
        let welcome = Welcome {
            timeout: 2_000,
            session: 0,
            password: vec![0; 16],
        };
        let (connection, seen) = (0, 0);
        Client {
            at,
            connection,
            welcome,
            seen,
        }
    }

    fn open(server: &mut Simulated, at: usize) -> Self {
        let mut client = Client::new(at);
        assert!(client.connect(server), "nothing has failed");
        client
    }

    /// Whether it has a session there. One that has ended is left.
    fn connect(&mut self, server: &mut Simulated) -> bool {
        self.connection = server.connect(self.at);
        let Welcome {
            timeout,
            session,
            password,
        } = &self.welcome;
        server.send(
            self.connection,
            &handshake(self.seen, *timeout, *session, password),
        );
        let come = server.receive(self.connection, Until::Frames(1));
        let Some(frame) = come.frames.first() else {
            return false;
        };
        let welcome = Welcome::of(frame);
        let is_open = welcome.session != 0;
        self.welcome = if is_open {
            welcome
        } else {
            Welcome {
                timeout: 2_000,
                ..welcome
            }
        };
        is_open
    }

    fn ask(&mut self, server: &mut Simulated, kind: i32, body: Record) -> Result<Vec<u8>, Failed> {
        let record = Record::default().int(kind).int(kind).raw(&body.0);
        server.send(self.connection, &record.frame());
        let come = server.receive(self.connection, Until::Answer(kind));
        let mut frames = come.frames.iter();
        let Some(frame) = frames.find(|frame| frame.starts_with(&kind.to_be_bytes())) else {
            return Err(if come.closed {
                Failed::Closed
            } else {
                Failed::Silent
            });
        };
        let zxid = i64::from_be_bytes(frame[4..12].try_into().expect("eight"));
        assert!(zxid >= self.seen, "a server goes back");
        self.seen = zxid;
        match i32::from_be_bytes(frame[12..16].try_into().expect("four")) {
            0 => Ok(frame[16..].to_vec()),
            code => Err(Failed::Code(code)),
        }
    }

    fn make(&mut self, server: &mut Simulated, path: &str, flags: i32) -> Result<String, Failed> {
        let body = Record::default().text(path).text("data").int(1);
        let body = body.int(31).text("world").text("anyone").int(flags);
        let answer = self.ask(server, 1, body)?;
        Ok(String::from_utf8_lossy(&answer[4..]).into_owned())
    }

    fn look(&mut self, server: &mut Simulated, path: &str) -> Result<(), Failed> {
        self.ask(server, 3, Record::default().text(path).flag(false))
            .map(drop)
    }

    fn sync(&mut self, server: &mut Simulated) -> Result<(), Failed> {
        self.ask(server, 9, Record::default().text("/")).map(drop)
    }

    /// Goes on with its session at any server that has a leader.
    fn find(&mut self, server: &mut Simulated) {
        let session = self.welcome.session;
        for turn in 0.. {
            assert!(turn < 1_000, "no server has a leader");
            self.at = turn % server.service.hosts();
            if self.connect(server) {
                break;
            }
            server.wait(Duration::from_millis(20));
        }
        assert_eq!(self.welcome.session, session);
    }
}

fn ensemble(members: usize) -> Simulated {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut server = Simulated::new(ZooKeeper::new(members), seed);
    server.patience = SECOND;
    server
}

#[test]
fn killed_leader_is_replaced_and_sessions_stay() {
    let mut server = ensemble(3);
    let mut client = Client::open(&mut server, 0);
    client
        .make(&mut server, "/stays", 0)
        .expect("a majority is there");
    client
        .make(&mut server, "/mine", 1)
        .expect("a majority is there");
    let epoch = client.seen >> 32;
    server.fault(LEADER, Fault::Kill);
    assert_eq!(client.sync(&mut server), Err(Failed::Closed));
    assert!(!client.connect(&mut server), "there is no leader");
    client.find(&mut server);
    assert_ne!(client.at, LEADER);
    client
        .make(&mut server, "/later", 0)
        .expect("a majority is there");
    assert_eq!(client.seen >> 32, epoch + 1);
    // A leader gives sessions their whole time.
    client.look(&mut server, "/mine").expect("it is there");
    server.fault(LEADER, Fault::Start { with_data: false });
    server.wait(SECOND);
    let mut other = Client::open(&mut server, LEADER);
    for path in ["/stays", "/later", "/mine"] {
        other.look(&mut server, path).expect("it has a copy");
    }
    server.wait(3 * SECOND);
    assert_eq!(
        server.service.contents().len(),
        2,
        "{:?}",
        server.service.contents()
    );
}

#[test]
fn cut_follower_answers_for_a_while_from_what_it_has() {
    let mut server = ensemble(3);
    let (mut cut, mut other) = (Client::open(&mut server, 0), Client::open(&mut server, 1));
    server.fault(0, Fault::Cut);
    other
        .make(&mut server, "/new", 0)
        .expect("a majority is there");
    assert_eq!(cut.look(&mut server, "/new"), Err(Failed::Code(NO_NODE)));
    assert_eq!(cut.sync(&mut server), Err(Failed::Silent));
    assert_eq!(
        cut.sync(&mut server),
        Err(Failed::Closed),
        "as long as others wait"
    );
    server.fault(0, Fault::Heal);
    server.wait(SECOND);
    let mut again = Client::open(&mut server, 0);
    again.look(&mut server, "/new").expect("it has joined");
}

#[test]
fn follower_is_behind_until_a_sync() {
    let mut server = ensemble(3);
    let (mut reader, mut writer) = (
        Client::open(&mut server, 0),
        Client::open(&mut server, LEADER),
    );
    let mut stale = 0;
    for number in 0..200 {
        let path = format!("/{number}");
        writer
            .make(&mut server, &path, 0)
            .expect("a majority is there");
        stale += i32::from(reader.look(&mut server, &path).is_err());
        reader.sync(&mut server).expect("a leader is there");
        reader
            .look(&mut server, &path)
            .expect("it isn't behind any more");
        let own = reader
            .make(&mut server, "/own-", 2)
            .expect("a majority is there");
        reader.look(&mut server, &own).expect("its own");
    }
    assert!((1..200).contains(&stale), "{stale}");
}

#[test]
fn leader_that_was_stopped_and_replaced_answers_for_a_tick() {
    let answered = (0..100).filter(|_| replaced_leader_answers()).count();
    assert!((1..100).contains(&answered), "{answered}");
}

/// Whether it answers before it finds that it leads nobody any more.
fn replaced_leader_answers() -> bool {
    let servers = ZooKeeper::new(3).sync_limit(5);
    let mut server = Simulated::new(servers, fastrand::u64(..));
    server.patience = SECOND / 2;
    let mut before = Client::open(&mut server, LEADER);
    server.fault(LEADER, Fault::Pause);
    server.wait(SECOND);
    let mut after = Client::new(1);
    let is_replaced = after.connect(&mut server) && after.make(&mut server, "/new", 0).is_ok();
    server.fault(LEADER, Fault::Resume);
    let answers = before.sync(&mut server).is_ok();
    if !is_replaced {
        return false;
    }
    assert_eq!(before.make(&mut server, "/lost", 0), Err(Failed::Closed));
    server.wait(SECOND);
    let mut again = Client::open(&mut server, LEADER);
    again.look(&mut server, "/new").expect("it follows");
    assert_eq!(again.look(&mut server, "/lost"), Err(Failed::Code(NO_NODE)));
    answers
}

#[test]
fn election_makes_another_leader() {
    let mut server = ensemble(3);
    assert_eq!(server.service.own_faults(), ["election"]);
    for epoch in 2..10 {
        server.fault(0, Fault::Own(0));
        server.wait(3 * SECOND);
        let mut client = Client::open(&mut server, 1);
        client
            .make(&mut server, "/node-", 2)
            .expect("a majority is there");
        assert_eq!(client.seen >> 32, epoch);
    }
}

#[test]
fn server_that_is_alone_keeps_what_is_on_its_disk() {
    let mut server = ensemble(1);
    let mut client = Client::open(&mut server, 0);
    client.make(&mut server, "/mine", 1).expect("it is up");
    server.fault(0, Fault::Kill);
    assert!(!client.connect(&mut server), "it is down");
    server.fault(0, Fault::Start { with_data: true });
    assert!(client.connect(&mut server), "sessions are on the disk");
    client
        .look(&mut server, "/mine")
        .expect("it is on the disk");
    server.fault(0, Fault::Kill);
    server.fault(0, Fault::Start { with_data: false });
    assert!(!client.connect(&mut server), "the client has seen more");
    client.seen = 0;
    assert!(!client.connect(&mut server), "there is no such session");
    assert_eq!(server.service.contents(), Vec::<String>::new());
}

/// What clients did while servers failed, and what was told of it.
fn torture(seed: u64) -> Vec<String> {
    let mut server = Simulated::new(ZooKeeper::new(3), seed);
    server.patience = SECOND;
    let mut random = Rng::with_seed(seed);
    let mut clients: Vec<_> = (0..3).map(|at| Client::open(&mut server, at)).collect();
    let (mut made, mut lines) = (Vec::new(), Vec::new());
    let mut away = None;
    for _ in 0..300 {
        if random.u8(..10) == 0 {
            let (at, fault, end) = failure(&mut random);
            if let Some((at, end)) = away.take() {
                server.fault(at, end);
            } else {
                server.fault(at, fault);
                away = Some((at, end));
            }
        }
        let client = random.choice(&mut clients).expect("one");
        let answer = client.make(&mut server, "/node-", random.choice([0, 2]).expect("one"));
        lines.push(format!("{:?} {answer:?}", server.now));
        match answer {
            Ok(path) => made.push(path),
            Err(Failed::Code(_)) => {}
            Err(_) => {
                client.at = random.usize(..3);
                client.connect(&mut server);
            }
        }
        let time = Duration::from_millis(random.u64(..300));
        server.wait(time);
    }
    settle(&mut server);
    let contents = server.service.contents();
    for path in &made {
        let is_it = |line: &String| line.split(' ').next() == Some(path);
        assert!(contents.iter().any(is_it), "seed {seed}: {path} is lost");
    }
    assert!(made.len() > 50, "seed {seed}: {}", made.len());
    lines.extend(contents);
    lines
}

/// Ends all failures.
fn settle(server: &mut Simulated) {
    for at in 0..3 {
        for fault in [Fault::Heal, Fault::Resume, Fault::Start { with_data: true }] {
            server.fault(at, fault);
        }
    }
    server.wait(10 * SECOND);
}

/// What happens to which server, and how it ends.
fn failure(random: &mut Rng) -> (usize, Fault, Fault) {
    let (fault, end) = match random.u8(..4) {
        0 => (Fault::Kill, Fault::Start { with_data: true }),
        1 => (Fault::Pause, Fault::Resume),
        2 => (Fault::Cut, Fault::Heal),
        _ => (Fault::Own(0), Fault::StepClock { micros: 1 }),
    };
    (random.usize(..3), fault, end)
}

#[test]
fn nothing_that_was_answered_is_lost() {
    for _ in 0..20 {
        let seed = fastrand::u64(..);
        assert_eq!(
            torture(seed),
            torture(seed),
            "seed {seed}: not the same again"
        );
    }
}
