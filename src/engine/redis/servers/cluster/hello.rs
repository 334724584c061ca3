//! What is at the addresses of a cluster's URL.

use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::role::Role;
use crate::engine::redis::server::{Manner, Server};

/// What a server says that it is.
#[derive(Debug)]
pub(super) struct Hello {
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
                role: Role::of(&answer.value),
                version: version(&answer.value),
            }),
            // Nor may the greeting have been answered: that it doesn't say what it is says nothing then.
            Err(unanswered) if unanswered.error.is_of_connection() => Err(unanswered.error),
            Err(_) => Ok(Hello {
                role,
                version: None,
            }),
        }
    }

    pub(super) fn check(&self, place: &str) -> Result<()> {
        let what = match (self.role, &self.version) {
            (Role::ClusterNode, Some((name, major))) if name == "redis" && *major < LEAST => {
                format!("clusters of Redis {major} on {place}: use Redis 7.0 or later, or Valkey")
            }
            (Role::ClusterNode, _) => return Ok(()),
            (Role::Sentinel, _) => {
                format!("{place} as a cluster, which is a Sentinel: use redis+sentinel://")
            }
            (Role::Primary | Role::Replica, _) => {
                format!("{place} as a cluster, which is a single server: use redis://")
            }
        };
        Err(Error::Unsupported { what })
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

    fn told(mode: &str, server: &str, version_text: &str) -> String {
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
        let hello = Hello {
            role: Role::of(&answer),
            version: version(&answer),
        };
        let error = hello.check("redis+cluster://a:1").err();
        error.map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn what_is_no_cluster_of_a_known_version_is_told_with_the_url_to_use() {
        for (mode, server, version, words) in [
            ("cluster", "redis", "7.0.15", ""),
            ("cluster", "redis", "10.1.0", ""),
            ("cluster", "valkey", "8.1.0", ""),
            ("cluster", "other", "1.0.0", ""),
            ("cluster", "redis", "6.2.7", "Redis 7.0 or later"),
            ("standalone", "redis", "7.0.15", "use redis://"),
            ("sentinel", "redis", "7.0.15", "use redis+sentinel://"),
        ] {
            let told = told(mode, server, version);
            assert!(told.contains(words), "{told}");
            assert_eq!(told.is_empty(), words.is_empty(), "{told}");
        }
    }
}
