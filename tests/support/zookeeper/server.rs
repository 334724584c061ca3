//! A private server of ZooKeeper.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::jars;
use super::session::{CONNECTION_LOSS, NO_NODE, PATIENCE, RawSession};
use super::setup::{Front, ZooKeeperSetup, local};
use crate::daemon::{Daemon, PortTaken, fast_dir};
use crate::peers::Peers;
use crate::{Fault, Proxy, wait_until};

/// Short, so that one which hangs doesn't keep a test from asking the others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// A server with a directory and ports of its own; dropping it kills it and removes the directory.
#[derive(Debug)]
pub struct ZooKeeper {
    daemon: Daemon,
    index: usize,
    front: Front,
    peers: Arc<Peers>,
}

impl ZooKeeper {
    /// Starts a server whose sessions last for 200 ms to 2 s.
    pub fn start() -> Self {
        Self::setup().start()
    }

    /// Returns a configuration to change.
    pub fn setup() -> ZooKeeperSetup {
        ZooKeeperSetup::new()
    }

    pub(super) fn launch(
        setup: &ZooKeeperSetup,
        index: usize,
        members: &[String],
        front: Front,
        peers: &Arc<Peers>,
    ) -> Self {
        let dir = fast_dir("zookeeper");
        setup.write(dir.path(), index, &front, members);
        let main = match members.len() {
            1 => "ZooKeeperServerMain",
            _ => "quorum.QuorumPeerMain",
        };
        Self {
            daemon: Daemon::launch(dir, "java", arguments(setup, main)),
            index,
            front,
            peers: Arc::clone(peers),
        }
    }

    /// Waits until it, and no other, serves clients.
    pub(super) fn wait(&self) -> Result<(), PortTaken> {
        let data = self.dir().join("data");
        let data = data.display().to_string();
        self.daemon.wait_until(|| {
            let mine = self.word("conf").is_some_and(|conf| conf.contains(&data));
            mine && self.mode().is_some()
        })
    }

    /// Returns where clients find it: its proxy if it has one, otherwise its port.
    pub fn addr(&self) -> SocketAddr {
        let proxy = self.front.clients.as_ref();
        proxy.map_or_else(|| self.own_addr(), Proxy::addr)
    }

    /// Returns the port without a proxy, at which the tests' own calls arrive.
    pub fn own_addr(&self) -> SocketAddr {
        local(self.front.client)
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        self.url_at("")
    }

    /// Returns the URL of all locks below `chroot`.
    pub fn url_at(&self, chroot: &str) -> String {
        format!("zk://{}/{chroot}", self.addr())
    }

    /// Returns the proxy that its clients connect to.
    ///
    /// # Panics
    ///
    /// If it was started without [`ZooKeeperSetup::proxies`].
    #[track_caller]
    pub fn proxy(&self) -> &Proxy {
        self.front.clients.as_ref().expect("started with proxies()")
    }

    /// Returns its directory.
    pub fn dir(&self) -> &Path {
        self.daemon.dir()
    }

    /// Returns what it has logged, in all its lives.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Kills it with SIGKILL and reaps it.
    pub fn kill(&self) {
        self.daemon.kill();
    }

    /// Stops it with SIGSTOP: clients can connect, but nothing answers.
    pub fn stop(&self) {
        self.daemon.stop();
    }

    /// Continues it after [`ZooKeeper::stop`].
    pub fn go_on(&self) {
        self.daemon.cont();
    }

    /// Returns whether it has neither ended nor been stopped.
    pub fn is_running(&self) -> bool {
        self.daemon.is_running()
    }

    /// Starts it again with what it has on disk, and waits until it serves clients; kills it before if it runs.
    ///
    /// # Panics
    ///
    /// If it doesn't, also because too many others are down.
    pub fn restart(&self) {
        self.launch_again();
        self.wait().expect("its ports are still free");
    }

    /// The same without waiting, for one of several that are down.
    pub fn launch_again(&self) {
        self.daemon.relaunch();
        self.peers.started(self.index, self.pid());
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

    /// Returns the ids of the sessions that are connected to this server.
    pub fn sessions(&self) -> Vec<i64> {
        let answer = self.word("cons").unwrap_or_default();
        let ids = answer.lines().filter_map(|line| {
            let (_, rest) = line.split_once("sid=0x")?;
            let id = rest.split([',', ')']).next()?;
            u64::from_str_radix(id, 16).ok().map(u64::cast_signed)
        });
        ids.collect()
    }

    /// Opens a session of the test's own.
    #[track_caller]
    pub fn session(&self) -> RawSession {
        RawSession::open(self.own_addr(), Duration::from_secs(30))
    }

    /// Ends a session, as if it had been silent for too long: its ephemeral nodes are gone.
    #[track_caller]
    pub fn expire(&self, id: i64) {
        RawSession::take_over(self.own_addr(), id).close();
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

    /// Does `fault` to what `self` hears from `other`.
    pub(super) fn hears(&self, other: &Self, fault: Fault) {
        let proxies = self.front.peers.as_ref().expect("started with proxies()");
        for proxy in proxies {
            proxy.set_from(Peers::address(other.index), fault);
        }
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
