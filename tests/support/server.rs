//! A private Redis server for one test.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::builder::Builder;
use super::daemon::{Daemon, PortTaken};
use super::{admin, eventually};

const STARTS_WITHIN: Duration = Duration::from_secs(30);
const ATTEMPTS: usize = 30;

/// A server with a directory and ports of its own: a [`Daemon`] to kill, stop and continue. Dropping it kills it, and
/// removes the directory.
#[derive(Debug)]
pub struct RedisServer {
    daemon: Daemon,
    ports: Ports,
    pub(super) settings: Builder,
}

impl RedisServer {
    pub fn start() -> Self {
        Self::builder().start()
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn start_with(settings: &Builder) -> Self {
        let servers = (0..ATTEMPTS).map(|_| Self::launch(settings));
        let mut ready = servers.filter(|server| server.wait().is_ok());
        ready.next().expect("a free port")
    }

    fn launch(settings: &Builder) -> Self {
        let dir = tempfile::Builder::new().prefix("redis-").tempdir();
        let dir = dir.expect("make a directory");
        let ports = Ports::free(settings);
        settings.write(dir.path(), ports);
        let file = dir.path().join("redis.conf").display().to_string();
        let sentinel = settings.sentinel.then(|| "--sentinel".to_owned());
        let arguments = [file].into_iter().chain(sentinel).collect();
        let program = settings.program.clone().unwrap_or_else(binary);
        Self {
            daemon: Daemon::launch(dir, &program, arguments),
            ports,
            settings: settings.clone(),
        }
    }

    fn wait(&self) -> Result<(), PortTaken> {
        let (port, pid) = (self.port(), self.pid());
        self.daemon
            .wait_until(|| admin::answers(port, self.settings.guarded, pid))
    }

    pub fn port(&self) -> u16 {
        self.ports.plain
    }

    /// Returns the port with TLS.
    pub fn tls_port(&self) -> u16 {
        self.ports.tls.expect("started with tls()")
    }

    pub(super) fn bus_port(&self) -> u16 {
        self.ports.bus.expect("a node of a cluster")
    }

    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port()).into()
    }

    /// Returns the URL of the port without TLS, without a password.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr())
    }

    /// Returns the URL with `credentials`, which are `user:password` or `:password`.
    pub fn url_as(&self, credentials: &str) -> String {
        format!("redis://{credentials}@{}/", self.addr())
    }

    /// Returns the URL of the port with TLS, which tells the authority to trust.
    pub fn tls_url(&self) -> String {
        let ca = self.ca_file();
        format!(
            "rediss://localhost:{}/?ca={}",
            self.tls_port(),
            ca.display()
        )
    }

    pub fn ca_file(&self) -> PathBuf {
        self.dir().join("ca.pem")
    }

    pub fn unix_path(&self) -> PathBuf {
        assert!(self.settings.unix_socket, "started with unix_socket()");
        self.dir().join("redis.sock")
    }

    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.unix_path().display())
    }

    /// Starts the server again, with the same ports, directory and configuration file, which the server itself may have
    /// rewritten; kills it before if it runs.
    pub fn restart(&self) {
        let started = eventually(STARTS_WITHIN, || {
            self.daemon.relaunch();
            self.wait().is_ok()
        });
        assert!(started, "something else listens at {}", self.addr());
    }
}

impl Deref for RedisServer {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) tls: Option<u16>,
    /// For the other nodes of a cluster.
    pub(super) bus: Option<u16>,
}

impl Ports {
    fn free(settings: &Builder) -> Self {
        Self {
            plain: free_port(),
            tls: settings.tls.then(free_port),
            bus: settings.cluster.then(free_port),
        }
    }
}

/// Returns a port below those which Linux gives to clients.
///
/// A client that dials a port of that range while its server is down may be given the very same port, and is then
/// connected to itself.
///
/// The ports of a set of servers are all chosen before any of them is used: none is given again soon.
pub(super) fn free_port() -> u16 {
    const MOST_RECENT: usize = 4_000;
    static RECENT: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let port = std::iter::repeat_with(|| 15_000 + (RandomState::new().hash_one(0) % 16_000) as u16)
        .take(1_000)
        .filter(|port| !recent.contains(port))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port");
    if recent.len() == MOST_RECENT {
        recent.pop_front();
    }
    recent.push_back(port);
    port
}

/// Returns a command that runs `binary`, killed by the kernel when this process dies, where there is setpriv(1).
pub(super) fn mortal(binary: &str) -> Command {
    static SETPRIV: OnceLock<bool> = OnceLock::new();
    if !*SETPRIV.get_or_init(|| runs(Command::new("setpriv").args(["--pdeathsig", "KILL", "true"])))
    {
        return Command::new(binary);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", binary]);
    command
}

fn binary() -> String {
    static BINARY: OnceLock<String> = OnceLock::new();
    let find = || {
        let binary = env::var("CROSSLOCK_TEST_REDIS_SERVER");
        let binary = binary.unwrap_or_else(|_| "redis-server".into());
        assert!(
            runs(Command::new(&binary).arg("--version")),
            "redis-server not found: run ./tests/run.sh, which installs it (tried {binary:?})"
        );
        binary
    };
    BINARY.get_or_init(find).clone()
}

pub(super) fn runs(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
