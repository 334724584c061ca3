//! What servers of ZooKeeper have of their own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::jars;
use super::session::{CONNECTION_LOSS, NO_NODE, PATIENCE, RawSession};
use super::setup::ZooKeeperSetup;
use crate::consensus::{Front, Kind, Server, ServerSet};
use crate::daemon::{Daemon, fast_dir};
use crate::wait_until;

/// Short, so that one which hangs doesn't keep a test from asking the others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub type ZooKeeper = Server<ZooKeeperKind>;

pub type Ensemble = ServerSet<ZooKeeperKind>;

/// How clients speak with a server of ZooKeeper.
#[derive(Debug)]
pub struct ZooKeeperKind {
    tls: bool,
    client_certificates: bool,
}

impl ZooKeeper {
    pub fn start() -> Self {
        Self::setup().start()
    }

    pub fn setup() -> ZooKeeperSetup {
        ZooKeeperSetup::new()
    }

    pub(super) fn launch(
        setup: &ZooKeeperSetup,
        members: &[String],
        front: Front,
        index: usize,
    ) -> Self {
        let dir = fast_dir("zookeeper");
        setup.write(dir.path(), index, &front, members);
        let main = match members.len() {
            1 => "ZooKeeperServerMain",
            _ => "quorum.QuorumPeerMain",
        };
        let daemon = Daemon::launch(dir, "java", arguments(setup, main));
        let kind = ZooKeeperKind {
            tls: setup.tls,
            client_certificates: setup.client_certificates,
        };
        Self::of(kind, daemon, front)
    }

    /// Returns `standalone`, `leader` or `follower`, or nothing if it serves nobody.
    pub fn mode(&self) -> Option<String> {
        let answer = self.word("srvr")?;
        let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
        mode.map(str::to_owned)
    }

    /// Returns what it answers to one of its words of four letters, such as `mntr`, or nothing.
    pub fn word(&self, word: &str) -> Option<String> {
        if !self.is_running() {
            return None;
        }
        let mut stream = TcpStream::connect_timeout(&self.own_addr(), ANSWERS_WITHIN).ok()?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        stream.shutdown(Shutdown::Write).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    #[track_caller]
    pub fn session(&self) -> RawSession {
        RawSession::open(self.own_addr(), Duration::from_secs(30))
    }

    /// Returns all nodes but ZooKeeper's own, in their order, once the server answers.
    #[track_caller]
    pub fn nodes(&self) -> Vec<String> {
        let mut nodes = Err(CONNECTION_LOSS);
        wait_until("the server to tell its nodes", PATIENCE, || {
            nodes = self.try_nodes();
            nodes.is_ok()
        });
        nodes.expect("it was waited for")
    }

    fn try_nodes(&self) -> Result<Vec<String>, i32> {
        let mut session = self.session();
        let mut all = Vec::new();
        let mut open = vec![String::new()];
        while let Some(node) = open.pop() {
            let path = if node.is_empty() { "/" } else { &node };
            let children = match session.children(path) {
                // Deleted since its parent was asked.
                Err(NO_NODE) => Vec::new(),
                answer => answer?,
            };
            for child in children {
                let path = format!("{node}/{child}");
                if path != "/zookeeper" {
                    open.push(path.clone());
                    all.push(path);
                }
            }
        }
        session.try_close()?;
        all.sort();
        Ok(all)
    }
}

impl Ensemble {
    pub fn of(members: usize) -> Self {
        ZooKeeperSetup::new().ensemble(members)
    }
}

impl Kind for ZooKeeperKind {
    fn is_ready(server: &ZooKeeper) -> bool {
        let data = server.dir().join("data");
        let data = data.display().to_string();
        let mine = server.word("conf").is_some_and(|conf| conf.contains(&data));
        // Clients with TLS have a port of their own, at which it listens later.
        let listens = || TcpStream::connect_timeout(&server.served_addr(), ANSWERS_WITHIN).is_ok();
        mine && server.mode().is_some() && listens()
    }

    fn url(server: &ZooKeeper, hosts: &str, root: &str) -> String {
        if !server.kind.tls {
            return format!("zk://{hosts}/{root}");
        }
        let files = server.files_of_url(server.kind.client_certificates);
        format!("zks://{hosts}/{root}{files}")
    }

    /// One that says that it leads, if most others say that they follow.
    fn leader(members: &[ZooKeeper]) -> Option<usize> {
        let modes: Vec<_> = members.iter().map(ZooKeeper::mode).collect();
        let are = |mode: &str| {
            let modes = modes.iter().flatten();
            modes.filter(|one| *one == mode).count()
        };
        let most = are("leader") == 1 && 1 + are("follower") > modes.len() / 2;
        let is_leader = |mode: &Option<String>| mode.as_deref() == Some("leader");
        modes.iter().position(is_leader).filter(|_| most)
    }
}

fn arguments(setup: &ZooKeeperSetup, main: &str) -> Vec<String> {
    let machine = [
        "-Xmx64m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        // It writes no file outside of its directory.
        "-XX:-UsePerfData",
        // By which a proxy finds whose connection it has.
        "-Djava.net.preferIPv4Stack=true",
        // A process that is killed loses nothing that it has written.
        "-Dzookeeper.forceSync=no",
        "-Dzookeeper.preAllocSize=1024",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
    ];
    let mut all: Vec<_> = machine.map(str::to_owned).to_vec();
    all.extend(setup.properties.iter().cloned());
    all.extend(["-cp".to_owned(), format!("{}/*", jars())]);
    all.extend([
        format!("org.apache.zookeeper.server.{main}"),
        "./zoo.cfg".into(),
    ]);
    all
}
