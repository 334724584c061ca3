//! A `redis-server` of this program's own, killed by its pid.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use redis::Connection;

pub struct Server {
    child: Child,
    pub directory: PathBuf,
    pub url: String,
}

/// What the server has done since it was started.
pub struct Work {
    pub commands: u64,
    pub connections: u64,
}

impl Server {
    pub fn start(directory: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let child = Command::new("redis-server")
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--port",
                &port.to_string(),
            ])
            .current_dir(directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server: ./tests/run.sh installs it");
        let server = Server {
            child,
            directory: directory.to_owned(),
            url: format!("redis://127.0.0.1:{port}/"),
        };
        let client = redis::Client::open(server.url.as_str()).expect("a url");
        while client.get_connection().is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// The server on one CPU; this process, its threads and the processes that it starts on another.
    pub fn pin(&self) {
        use rustix::thread::{CpuSet, Pid, sched_setaffinity};
        let on = |cpu| {
            let mut set = CpuSet::new();
            set.set(cpu);
            set
        };
        let server = Pid::from_raw(self.child.id().cast_signed());
        let pinned =
            sched_setaffinity(server, &on(0)).and_then(|()| sched_setaffinity(None, &on(1)));
        pinned.unwrap_or_else(|e| eprintln!("not pinned, ratios will wander: {e}"));
    }

    pub fn pid(&self) -> rustix::thread::Pid {
        rustix::thread::Pid::from_raw(self.child.id().cast_signed()).expect("a process")
    }

    pub fn connect(&self) -> Connection {
        connect(&self.url)
    }

    /// `scripts_set`: the subject's scripts use SET, so that one isn't a command that a client sent.
    pub fn work(&self, scripts_set: bool) -> Work {
        let mut connection = self.connect();
        let mut info = |section: &str| -> String {
            redis::cmd("INFO")
                .arg(section)
                .query(&mut connection)
                .expect("INFO")
        };
        let sent = [
            "eval",
            "evalsha",
            "script|load",
            "subscribe",
            "unsubscribe",
            "hello",
            "select",
            "client|setinfo",
            "set",
        ];
        let calls = |line: &str| -> Option<u64> {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let is_sent = sent.contains(&name) && !(scripts_set && name == "set");
            let calls = rest.split(',').next()?.parse().ok()?;
            is_sent.then_some(calls)
        };
        let commands = info("commandstats").lines().filter_map(calls).sum();
        let stats = info("stats");
        let connections = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"))
            .and_then(|count| count.parse().ok())
            .expect("a count");
        Work {
            commands,
            connections,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn connect(url: &str) -> Connection {
    use redis::IntoConnectionInfo;
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = url
        .into_connection_info()
        .expect("a url")
        .set_tcp_settings(settings);
    let client = redis::Client::open(info).expect("a client");
    client.get_connection().expect("a connection")
}
