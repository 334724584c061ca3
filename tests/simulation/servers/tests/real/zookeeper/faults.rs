//! What the simulated ensemble does when its servers fail.

use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_world::service::{Fault, Service as _};
use fastrand::Rng;

use super::records::{Asked as _, Record, Until, Welcome};

type Simulated = Desk<ZooKeeper>;

const SECOND: Duration = Duration::from_secs(1);
/// How long a client waits for an answer, in milliseconds.
const PATIENCE: u32 = 1_000;
/// The leader of a new ensemble.
const LEADER: usize = 2;

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
        let (welcome, connection, seen) = (Welcome::new(2_000), 0, 0);
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
        server.send(self.connection, &self.welcome.asked(self.seen));
        let come = server.receive_within(self.connection, Until::Frames(1), PATIENCE);
        let Some(frame) = come.frames.first() else {
            return false;
        };
        let welcome = Welcome::of(frame);
        let is_open = welcome.session != 0;
        self.welcome = if is_open {
            welcome
        } else {
            Welcome::new(2_000)
        };
        is_open
    }

    fn ask(&mut self, server: &mut Simulated, kind: i32, body: Record) -> Result<Vec<u8>, Failed> {
        let record = Record::default().int(kind).int(kind).raw(&body.0);
        server.send(self.connection, &record.frame());
        let come = server.receive_within(self.connection, Until::Answer(kind), PATIENCE);
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
        let answer = self.ask(server, 15, Record::default().node(path, flags))?;
        let length = usize::from(answer[3]);
        Ok(String::from_utf8_lossy(&answer[4..4 + length]).into_owned())
    }

    fn look(&mut self, server: &mut Simulated, path: &str) -> Result<(), Failed> {
        let body = Record::default().text(path).flag(false);
        self.ask(server, 3, body).map(drop)
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
    Desk::new(ZooKeeper::new(members), seed)
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
    server.fault(LEADER, Fault::Start { with_data: true });
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

/// What clients did while servers failed, and what was told of it.
fn torture(seed: u64) -> Vec<String> {
    let mut server = Simulated::new(ZooKeeper::new(3), seed);
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
