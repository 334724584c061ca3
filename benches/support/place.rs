//! Where the locks of a bench are: one server, a master behind sentinels, or a cluster. All without replicas, so that
//! what is compared is the way to a server, and not what the servers do for each other.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};

use super::server::{Server, connect, free_port, pin_to};

/// How many masters a cluster has.
const MASTERS: usize = 3;

/// How many sentinels there are.
const SENTINELS: usize = 3;

const SLOTS: usize = 16_384;

/// Servers that together have the locks of one URL.
pub(crate) struct Place {
    pub(crate) kind: &'static str,
    scheme: &'static str,
    /// What stands behind the hosts.
    path: &'static str,
    /// Those that have locks.
    pub(crate) servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Place {
    pub(crate) fn single(directory: &Path) -> Self {
        Place::of("one server", "redis", vec![start(directory, "single", &[])])
    }

    /// A master, and sentinels that watch it.
    pub(crate) fn sentinels(directory: &Path) -> Self {
        let master = start(directory, "master", &[]);
        let monitor = format!("sentinel monitor mymaster 127.0.0.1 {} 2\n", master.port());
        let sentinel = |number: usize| {
            let config = directory.join(format!("sentinel{number}.conf"));
            fs::write(&config, &monitor).expect("a configuration");
            let config = config.display().to_string();
            start(
                directory,
                &format!("sentinel{number}"),
                &[&config, "--sentinel"],
            )
        };
        let sentinels: Vec<_> = (0..SENTINELS).map(sentinel).collect();
        await_all(&sentinels, |sentinel| {
            let known: Vec<redis::Value> = ask(sentinel, &["SENTINEL", "SENTINELS", "mymaster"]);
            known.len() + 1 == SENTINELS
        });
        Place {
            sentinels,
            path: "mymaster",
            ..Place::of("Sentinel", "redis+sentinel", vec![master])
        }
    }

    /// Masters that have as many slots each.
    pub(crate) fn cluster(directory: &Path) -> Self {
        let node = |number: usize| {
            let bus = free_port().to_string();
            let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            (start(directory, &format!("node{number}"), &arguments), bus)
        };
        let (nodes, buses): (Vec<_>, Vec<_>) = (0..MASTERS).map(node).unzip();
        for (number, node) in nodes.iter().enumerate() {
            let [first, last] = [number, number + 1].map(|number| SLOTS * number / MASTERS);
            let [first, last] = [first, last - 1].map(|slot| slot.to_string());
            let epoch = (number + 1).to_string();
            let mut node = connect(&node.tcp());
            ask::<()>(&mut node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            ask::<()>(&mut node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            let port = nodes[0].port().to_string();
            ask::<()>(
                &mut node,
                &["CLUSTER", "MEET", "127.0.0.1", &port, &buses[0]],
            );
        }
        await_all(&nodes, |node| {
            let info: String = ask(node, &["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_slots_ok:{SLOTS}"))
        });
        Place::of("cluster", "redis+cluster", nodes)
    }

    fn of(kind: &'static str, scheme: &'static str, servers: Vec<Server>) -> Self {
        Place {
            kind,
            scheme,
            path: "",
            servers,
            sentinels: Vec::new(),
        }
    }

    /// Names all hosts, beginning with another one for each process.
    pub(crate) fn url(&self, process: usize) -> String {
        let hosts: &[Server] = match &self.sentinels[..] {
            [] => &self.servers,
            sentinels => sentinels,
        };
        let host = |number: usize| {
            format!(
                "127.0.0.1:{}",
                hosts[(process + number) % hosts.len()].port()
            )
        };
        let hosts: Vec<_> = (0..hosts.len()).map(host).collect();
        format!("{}://{}/{}", self.scheme, hosts.join(","), self.path)
    }

    /// Connections to those that have locks.
    pub(crate) fn admins(&self) -> Vec<Connection> {
        let servers = self.servers.iter();
        servers.map(|server| connect(&server.tcp())).collect()
    }

    /// The server that has a key.
    pub(crate) fn server_of(&self, key: &str) -> &Server {
        if self.servers.len() == 1 {
            return &self.servers[0];
        }
        let mut node = connect(&self.servers[0].tcp());
        let slot: usize = ask(&mut node, &["CLUSTER", "KEYSLOT", key]);
        let begins = |number: &usize| SLOTS * number / MASTERS <= slot;
        let number = (0..MASTERS).rev().find(begins);
        &self.servers[number.expect("the first begins at 0")]
    }

    /// So many names, which come to the masters in turn.
    pub(crate) fn names(&self, count: usize) -> Vec<String> {
        let mut found = vec![Vec::new(); self.servers.len()];
        let each = count.div_ceil(found.len());
        for number in 0.. {
            if found.iter().all(|names| names.len() >= each) {
                break;
            }
            let name = format!("name {number}");
            let port = self.server_of(&format!("{{crosslock:{name}}}")).port();
            let at = self.servers.iter().position(|server| server.port() == port);
            found[at.expect("one of them")].push(name);
        }
        let name = |number: usize| found[number % found.len()][number / found.len()].clone();
        (0..count).map(name).collect()
    }
}

/// The servers of all places on one CPU, and this process on another.
pub(crate) fn pin_places(places: &[Place]) {
    let servers = places.iter();
    let servers = servers.flat_map(|place| place.servers.iter().chain(&place.sentinels));
    pin_to(servers.map(|server| (server, 0)), 1..2);
}

/// Each server of a place on a CPU of its own, if at least two more are left for this process; otherwise as
/// [`pin_places`]. Says which.
pub(crate) fn spread_places(places: &[Place]) {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    if cpus < MASTERS + 2 {
        println!("all servers share a CPU");
        return pin_places(places);
    }
    println!("each server has a CPU to itself");
    let servers = places.iter();
    let servers = servers.flat_map(|place| place.servers.iter().zip(0..));
    pin_to(servers, MASTERS..cpus);
}

/// Asks a server for something that it has to have.
pub(crate) fn ask<T: FromRedisValue>(server: &mut Connection, command: &[&str]) -> T {
    let mut all = redis::cmd(command[0]);
    all.arg(&command[1..]);
    let answer = all.query(server);
    answer.unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn start(directory: &Path, name: &str, arguments: &[&str]) -> Server {
    let directory = directory.join(name);
    fs::create_dir(&directory).expect("a directory");
    Server::start_with(&directory, arguments)
}

fn await_all(servers: &[Server], is_ready: impl Fn(&mut Connection) -> bool) {
    let started = Instant::now();
    for server in servers {
        let mut server = connect(&server.tcp());
        while !is_ready(&mut server) {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "servers that don't meet"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}
