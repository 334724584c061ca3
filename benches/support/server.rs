//! A `redis-server` of the bench's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::Connection;

/// A private server, killed by its pid.
pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    port: u16,
}

impl Server {
    pub(crate) fn start(directory: &Path) -> Self {
        Server::start_with(directory, &[])
    }

    /// A replica of `master`, which doesn't wait for others to come.
    pub(crate) fn replica(directory: &Path, master: &Server) -> Self {
        let master = format!("127.0.0.1 {}", master.port);
        Server::start_with(directory, &["--replicaof", &master])
    }

    /// `arguments` may begin with a file.
    pub(super) fn start_with(directory: &Path, arguments: &[&str]) -> Self {
        let port = free_port();
        let log = fs::File::create(directory.join("log")).expect("a log");
        let child = Command::new("redis-server")
            .args(arguments)
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--unixsocket",
                "redis.sock",
            ])
            .args(["--port", &port.to_string()])
            .args(["--repl-diskless-sync-delay", "0"])
            .current_dir(directory)
            .stdout(Stdio::from(log))
            .spawn()
            .expect("redis-server: ./tests/run.sh installs it");
        let server = Server {
            child,
            directory: directory.to_owned(),
            port,
        };
        let started = Instant::now();
        while connection(&server.unix()).is_err() {
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "redis-server doesn't answer"
            );
            std::thread::yield_now();
        }
        server
    }

    pub(crate) fn tcp(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn unix(&self) -> String {
        format!("unix://{}", self.directory.join("redis.sock").display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server on one CPU, this process, its threads and the processes that it starts on another: where the
/// scheduler puts them is worth more than all that is measured here.
pub(crate) fn pin(server: &Server) {
    pin_to([(server, 0)], 1..2);
}

/// Each server on a CPU, and this process, its threads and the processes that it starts on others.
pub(super) fn pin_to<'a>(
    servers: impl IntoIterator<Item = (&'a Server, usize)>,
    own: std::ops::Range<usize>,
) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, Pid, sched_setaffinity};
        let set = |cpus: std::ops::Range<usize>| {
            let mut set = CpuSet::new();
            cpus.for_each(|cpu| set.set(cpu));
            set
        };
        let pinned = servers
            .into_iter()
            .try_for_each(|(server, cpu)| {
                let pid = Pid::from_raw(server.child.id().cast_signed());
                sched_setaffinity(pid, &set(cpu..cpu + 1))
            })
            .and_then(|()| sched_setaffinity(None, &set(own)));
        pinned.unwrap_or_else(|e| eprintln!("not pinned, ratios will wander: {e}"));
    }
}

pub(super) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

pub(crate) fn connect(url: &str) -> Connection {
    connection(url).expect("a connection")
}

fn connection(url: &str) -> redis::RedisResult<Connection> {
    use redis::IntoConnectionInfo;
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = url
        .into_connection_info()
        .expect("a url")
        .set_tcp_settings(settings);
    redis::Client::open(info)
        .expect("a client")
        .get_connection()
}
