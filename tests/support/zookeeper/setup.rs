//! What servers of ZooKeeper are configured to be.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Ensemble, ZooKeeper};
use crate::frames::Protocol;
use crate::peers::Peers;
use crate::proxy::Proxy;
use crate::server::free_port;

const TICK: Duration = Duration::from_millis(100);
const ATTEMPTS: usize = 30;

/// Configures a [`ZooKeeper`] or an [`Ensemble`].
#[derive(Clone, Debug, Default)]
pub struct ZooKeeperSetup {
    proxied: bool,
    tick: Option<Duration>,
    lines: Vec<String>,
    pub(super) properties: Vec<String>,
}

/// The ports of one server, and the proxies in front of them.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) client: u16,
    pub(super) clients: Option<Proxy>,
    quorum: u16,
    election: u16,
    pub(super) peers: Option<[Proxy; 2]>,
}

impl ZooKeeperSetup {
    /// Servers that reach one another without proxies, and whose ticks take 100 ms.
    pub fn new() -> Self {
        Self::default()
    }

    /// The time in which servers and sessions are counted; sessions last for 2 to 20 ticks if nothing else is configured.
    pub fn tick(mut self, time: Duration) -> Self {
        self.tick = Some(time);
        self
    }

    /// Puts a proxy in front of each server for its clients, and two for the other servers.
    pub fn proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds a line of the configuration file; it wins over what was there before.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name}={value}"));
        self
    }

    /// Sets a property of the Java program.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push(format!("-D{name}={value}"));
        self
    }

    /// Starts one server and waits until it answers.
    ///
    /// # Panics
    ///
    /// If there is no program to start, or it doesn't start; the message has its log.
    pub fn start(self) -> ZooKeeper {
        let [server] = <[_; 1]>::try_from(self.start_members(1)).expect("one");
        server
    }

    /// Starts so many, and waits until one leads the others.
    pub fn ensemble(self, members: usize) -> Ensemble {
        Ensemble::of_members(self.start_members(members))
    }

    fn start_members(self, count: usize) -> Vec<ZooKeeper> {
        let setup = Arc::new(self);
        let members = (0..ATTEMPTS).find_map(|_| setup.try_start(count));
        members.expect("free ports")
    }

    /// Starts all, or none if a port is taken meanwhile.
    fn try_start(self: &Arc<Self>, count: usize) -> Option<Vec<ZooKeeper>> {
        let peers = Arc::new(Peers::of(count));
        let fronts: Vec<_> = (0..count).map(|_| Front::new(self, &peers)).collect();
        let others: Vec<_> = fronts.iter().map(Front::seen_by_others).collect();
        let servers: Vec<_> = fronts
            .into_iter()
            .enumerate()
            .map(|(index, front)| {
                let mut all = others.clone();
                // It listens at what stands here.
                all[index] = front.own();
                let server = ZooKeeper::launch(self, index, &all, front, &peers);
                peers.started(index, server.pid());
                server
            })
            .collect();
        let all = servers.iter().all(|server| server.wait().is_ok());
        all.then_some(servers)
    }

    /// Writes what the server `index` needs into `dir`.
    pub(super) fn write(&self, dir: &Path, index: usize, front: &Front, members: &[String]) {
        let data = dir.join("data");
        fs::create_dir(&data).expect("make a directory");
        let (tick, port) = (self.tick.unwrap_or(TICK).as_millis(), front.client);
        let mut text = format!(
            "tickTime={tick}\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n",
            data.display()
        );
        if members.len() > 1 {
            fs::write(data.join("myid"), (index + 1).to_string()).expect("write its number");
            // Enough for a machine that is busy: 10 s and 2 s of short ticks.
            text += "initLimit=100\nsyncLimit=20\n";
            for (index, member) in members.iter().enumerate() {
                let _ = writeln!(text, "server.{}={member}", index + 1);
            }
        }
        text += &self.lines.join("\n");
        fs::write(dir.join("zoo.cfg"), text + "\n").expect("write the configuration");
    }
}

impl Front {
    fn new(setup: &ZooKeeperSetup, peers: &Arc<Peers>) -> Self {
        let [client, quorum, election] = [(); 3].map(|()| free_port());
        let clients = Proxy::speaking(Protocol::ZooKeeper, local(client));
        let between = [quorum, election].map(|port| Proxy::between(peers, local(port)));
        Self {
            client,
            clients: setup.proxied.then_some(clients),
            quorum,
            election,
            peers: setup.proxied.then_some(between),
        }
    }

    /// Where it listens for the others.
    fn own(&self) -> String {
        format!("127.0.0.1:{}:{}", self.quorum, self.election)
    }

    fn seen_by_others(&self) -> String {
        let Some(proxies) = &self.peers else {
            return self.own();
        };
        let [quorum, election] = proxies.each_ref().map(|proxy| proxy.addr().port());
        format!("127.0.0.1:{quorum}:{election}")
    }
}

pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
