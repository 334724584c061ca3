//! What servers of ZooKeeper are configured to be.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Ensemble, ZooKeeper};
use crate::certificates;
use crate::consensus::{self, Front};
use crate::frames::Protocol;

const TICK: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default)]
pub struct ZooKeeperSetup {
    proxied: bool,
    pub(super) tls: bool,
    pub(super) client_certificates: bool,
    tick: Option<Duration>,
    lines: Vec<String>,
    pub(super) properties: Vec<String>,
}

impl ZooKeeperSetup {
    /// Servers that reach one another without proxies, and whose ticks take 100 ms.
    pub fn new() -> Self {
        Self::default()
    }

    /// The time in which servers and sessions are counted; sessions last for 2 to 20 ticks if nothing else is
    /// configured.
    pub fn tick(mut self, time: Duration) -> Self {
        self.tick = Some(time);
        self
    }

    pub fn proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The same, and lets in nobody without a certificate.
    pub fn client_certificates(mut self) -> Self {
        self.client_certificates = true;
        self.tls()
    }

    /// Adds a line of the configuration file; it wins over what was there before.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name}={value}"));
        self
    }

    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push(format!("-D{name}={value}"));
        self
    }

    pub fn start(self) -> ZooKeeper {
        let [server] = <[_; 1]>::try_from(self.start_members(1)).expect("one");
        server
    }

    pub fn ensemble(self, members: usize) -> Ensemble {
        Ensemble::of_members(self.start_members(members))
    }

    fn start_members(self, count: usize) -> Vec<ZooKeeper> {
        consensus::start(|| self.launch(count))
    }

    fn launch(&self, count: usize) -> Vec<ZooKeeper> {
        // One port for the leader's words, and one for elections.
        let front = |_| Front::new(2, Protocol::ZooKeeper, self.tls, self.proxied);
        let fronts: Vec<_> = (0..count).map(front).collect();
        let all: Vec<_> = fronts.iter().map(|front| at(&front.between)).collect();
        let fronts = fronts.into_iter().enumerate();
        fronts
            .map(|(index, front)| ZooKeeper::launch(self, &all, front, index))
            .collect()
    }

    pub(super) fn write(&self, dir: &Path, index: usize, front: &Front, members: &[String]) {
        let data = dir.join("data");
        fs::create_dir(&data).expect("make a directory");
        let (tick, port) = (self.tick.unwrap_or(TICK).as_millis(), front.own);
        let mut text = format!(
            "tickTime={tick}\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n",
            data.display()
        );
        if members.len() > 1 {
            fs::write(data.join("myid"), (index + 1).to_string()).expect("write its number");
            // Enough for a machine that is busy, and so short that one which takes itself for the leader, and which
            // nobody follows, soon looks for another: 10 s. What follows may be silent for 2 s of short ticks.
            let _ = writeln!(text, "initLimit={}\nsyncLimit=20", (10_000 / tick).max(10));
            for (index, member) in members.iter().enumerate() {
                let _ = writeln!(text, "server.{}={member}", index + 1);
            }
        }
        if self.tls {
            text += &self.tls_lines(dir, front.served);
        }
        text += &self.lines.join("\n");
        fs::write(dir.join("zoo.cfg"), text + "\n").expect("write the configuration");
    }

    /// Makes the files for TLS, and returns the lines that name them.
    fn tls_lines(&self, dir: &Path, port: u16) -> String {
        certificates::write(dir);
        let read = |name| fs::read_to_string(dir.join(name)).expect("read a PEM file");
        let both = read("server.key") + &read("server.pem");
        fs::write(dir.join("both.pem"), both).expect("write a PEM file");
        let file = |name| dir.join(name).display().to_string();
        let wanted = if self.client_certificates {
            "need"
        } else {
            "none"
        };
        format!(
            "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
             serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.location={}\nssl.trustStore.location={}\nssl.clientAuth={wanted}\n\
             ssl.hostnameVerification=false\n",
            file("both.pem"),
            file("ca.pem")
        )
    }
}

fn at(ports: &[u16]) -> String {
    let ports: String = ports.iter().map(|port| format!(":{port}")).collect();
    format!("127.0.0.1{ports}")
}
