//! What a server of the tests is configured to be.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::admin;
use super::certificates;
use super::server::{Ports, RedisServer};

#[derive(Clone, Debug, Default)]
pub struct Builder {
    lines: Vec<String>,
    pub(super) guarded: bool,
    pub(super) tls: bool,
    pub(super) unix_socket: bool,
    pub(super) sentinel: bool,
    pub(super) cluster: bool,
    /// Where the certificates are that it shares with other servers.
    certificates: Option<PathBuf>,
    pub(super) program: Option<String>,
}

impl Builder {
    pub fn password(mut self, password: &str) -> Self {
        self.guarded = true;
        self.config("requirepass", password)
    }

    /// Adds ACL rules, such as `user lock on >secret ~* +@all`.
    pub fn acl(mut self, rules: &[&str]) -> Self {
        self.guarded = true;
        self.lines.extend(rules.iter().map(ToString::to_string));
        self
    }

    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The same, with the certificates in `dir`, which other servers have as well.
    pub(super) fn tls_of(mut self, dir: &Path) -> Self {
        self.certificates = Some(dir.to_owned());
        self.tls()
    }

    pub(super) fn cluster(mut self) -> Self {
        self.cluster = true;
        self.config("cluster-enabled", "yes")
    }

    /// Is this server program, such as [`valkey`](super::valkey()).
    pub fn program(mut self, program: &str) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    pub fn append_only(self) -> Self {
        self.config("appendonly", "yes")
            .config("appendfsync", "always")
    }

    pub fn replica_of(self, port: u16) -> Self {
        self.config("replicaof", &format!("127.0.0.1 {port}"))
    }

    pub fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Adds a line of the configuration file; it wins over what was there before.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} {value}"));
        self
    }

    pub fn start(self) -> RedisServer {
        RedisServer::start_with(&self)
    }

    /// Writes the configuration file, and what it refers to, into `dir`.
    pub(super) fn write(&self, dir: &Path, ports: Ports) {
        fs::write(dir.join("redis.conf"), self.text(dir, ports)).expect("write the configuration");
        if self.tls && !dir.join("ca.pem").exists() {
            match &self.certificates {
                Some(shared) => certificates::copy(shared, dir),
                None => certificates::write(dir),
            }
        }
    }

    fn text(&self, dir: &Path, ports: Ports) -> String {
        let dir = dir.display();
        let port = ports.plain;
        let mut text = format!("bind 127.0.0.1\nport {port}\ndir \"{dir}\"\nsave \"\"\n");
        // Otherwise a replica waits for others to come.
        text += "repl-diskless-sync-delay 0\n";
        if let Some(port) = ports.tls {
            let _ = write!(
                text,
                "tls-port {port}\ntls-auth-clients no\ntls-ca-cert-file \"{dir}/ca.pem\"\n\
                 tls-cert-file \"{dir}/server.pem\"\ntls-key-file \"{dir}/server.key\"\n"
            );
        }
        if let Some(port) = ports.bus {
            let _ = writeln!(text, "cluster-port {port}");
        }
        if self.unix_socket {
            let _ = writeln!(text, "unixsocket \"{dir}/redis.sock\"");
        }
        if self.guarded {
            let _ = writeln!(text, "{}", admin::RULE);
        }
        text + &self.lines.join("\n") + "\n"
    }
}
