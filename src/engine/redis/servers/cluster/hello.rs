//! What is at the addresses of a cluster's URL.

use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::role::Role;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::advice;
use crate::engine::redis::settings::Kind;

/// What a server says that it is.
#[derive(Debug)]
pub(super) struct Hello {
    server: Arc<Server>,
    role: Role,
    /// `None`: it doesn't say so.
    version: Option<Version>,
}

type Version = (String, u32);

/// The first version of Redis that has channels of slots (SSUBSCRIBE).
const LEAST: u32 = 7;

impl Hello {
    pub(super) fn ask(server: &Arc<Server>, deadline: &Deadline) -> Result<Self, Failure> {
        let role = server.greet_by(deadline)?;
        match server.call(&::redis::cmd("HELLO"), Manner::Plain, deadline) {
            Ok(answer) => Ok(Hello {
                server: server.clone(),
                role: Role::of(&answer.value),
                version: version(&answer.value),
            }),
            // Nor may the greeting have been answered: that it doesn't say what it is says nothing then.
            Err(unanswered) if unanswered.error.is_of_connection() => Err(unanswered.error),
            Err(_) => Ok(Hello {
                server: server.clone(),
                role,
                version: None,
            }),
        }
    }

    /// Whether it is a node of a cluster that can have locks.
    pub(super) fn is_usable(&self) -> bool {
        self.role == Role::ClusterNode && self.too_old().is_none()
    }

    /// Fails if it isn't usable. The error tells which URL to use, which the server may be asked for.
    pub(super) fn check(&self) -> Result<()> {
        advice::check(self.role, &self.server, Kind::Cluster)?;
        let place = &self.server.settings().shown;
        match self.too_old() {
            Some(major) => Err(Error::Unsupported {
                what: format!(
                    "clusters of Redis {major} on {place}: use Redis 7.0 or later, or Valkey"
                ),
            }),
            None => Ok(()),
        }
    }

    fn too_old(&self) -> Option<u32> {
        let (name, major) = self.version.as_ref()?;
        (name == "redis" && *major < LEAST).then_some(*major)
    }
}

/// The name and the first number of the version in the answer to HELLO.
fn version(answer: &Value) -> Option<Version> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let field = |name: &str| {
        let mut pairs = parts.chunks_exact(2);
        let pair = pairs.find(|pair| text(&pair[0]) == Some(name))?;
        text(&pair[1])
    };
    let (major, _) = field("version")?.split_once('.')?;
    Some((field("server")?.to_owned(), major.parse().ok()?))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Options;
    use crate::engine::net::address::Endpoint;
    use crate::engine::redis::address::{self, At};
    use crate::engine::redis::settings::Settings;

    fn hello(mode: &str, server: &str, version_text: &str) -> Hello {
        let pairs = [
            "server",
            server,
            "version",
            version_text,
            "mode",
            mode,
            "role",
            "master",
        ];
        let pairs = pairs.map(|text| Value::BulkString(text.into()));
        let answer = Value::Array(pairs.into());
        let address = address::parse("redis+cluster://a:1").unwrap();
        let settings = Settings::new(&address, &Options::default()).unwrap();
        let At::Cluster { hosts } = address.at else {
            panic!("it is one")
        };
        let endpoint = Endpoint::Tcp(hosts[0].clone());
        Hello {
            server: Arc::new(Server::new(endpoint, Arc::new(settings)).unwrap()),
            role: Role::of(&answer),
            version: version(&answer),
        }
    }

    #[test]
    fn what_is_no_cluster_of_a_known_version_is_told_with_the_url_to_use() {
        for (mode, server, version, words) in [
            ("cluster", "redis", "7.0.15", ""),
            ("cluster", "redis", "10.1.0", ""),
            ("cluster", "valkey", "8.1.0", ""),
            ("cluster", "other", "1.0.0", ""),
            ("cluster", "redis", "6.2.7", "Redis 7.0 or later"),
            ("standalone", "redis", "7.0.15", "use redis://a:1/0"),
        ] {
            let hello = hello(mode, server, version);
            let told = hello.check().err().map_or(String::new(), |e| e.to_string());
            assert!(told.contains(words), "{told}");
            assert_eq!(
                (told.is_empty(), words.is_empty()),
                (hello.is_usable(), hello.is_usable())
            );
        }
    }
}
