//! What is at the addresses of a URL, found out when it is opened, and which URL to use for what isn't as its URL says.

use std::sync::Arc;

use ::redis::Value;

use super::call;
use super::heard::{Heard, NoView, worse};
use super::sentinel::{Ask, Fields, Sentinels, is_unknown_command, masters};
use super::topology::{AFTER_FIRST, Topology};
use crate::base::{Deadline, Error, Result, sys::time};
use crate::engine::net::address::{Endpoint, HostPort, number};
use crate::engine::redis::settings::{Kind, Settings};
use crate::engine::redis::{failure::Failure, round::Group, script::Route, server::Server};

/// Why servers can't be used.
#[derive(Debug)]
pub(crate) enum Refused {
    Failure(Failure),
    /// What the URL names is no such server.
    Error(Error),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refused::Failure(failure)
    }
}

/// Finds out whether the only server lets us in, and what it is.
pub(super) fn greet_one(server: &Arc<Server>) -> Result<(), Refused> {
    let role = greet_in_time(server)?;
    check(role, server, Kind::Single).map_err(Refused::Error)
}

/// Finds out whether there is a server, whether it lets us in, and what it is, within the connect timeout.
fn greet_in_time(server: &Arc<Server>) -> Result<Role, Failure> {
    greet(server, &Deadline::after(server.settings().connect_timeout))
}

/// The same, by a deadline.
fn greet(server: &Arc<Server>, deadline: &Deadline) -> Result<Role, Failure> {
    match server.call_first(&::redis::cmd("PING"), deadline)? {
        // A server that doesn't know HELLO may have locks all the same, and was reached just now.
        Value::SimpleString(pong) if pong == "PONG" => server
            .value(&::redis::cmd("HELLO"), deadline)
            .map_or(Ok(Role::Primary), |hello| Ok(Role::of(&hello))),
        _ => {
            let cause = "it doesn't answer PING like a Redis server";
            Err(Failure::Other(cause.into()))
        }
    }
}

impl Topology {
    pub(super) fn greet(self: &Arc<Self>) -> Result<(), Refused> {
        let deadline = || Deadline::after(self.settings.connect_timeout);
        match &self.ask {
            Ask::Sentinels(sentinels) => self.find_master(sentinels, &deadline()),
            Ask::Nodes(nodes) => {
                self.find_a_node(nodes.seeds(), &deadline())?;
                self.find_slots(&deadline())
            }
        }
    }

    /// Finds out whether sentinels name a master, and whether it lets us in.
    fn find_master(
        self: &Arc<Self>,
        sentinels: &Sentinels,
        until: &Deadline,
    ) -> Result<(), Refused> {
        let found = self.look_up(time::now(), AFTER_FIRST, until);
        found.map_err(|heard| sentinels.refusal(*heard, &self.settings))?;
        let ping = ::redis::cmd("PING");
        let answer = call::run(self, Route::to(""), &ping, until);
        match answer.map_err(|failed| failed.error)?.value {
            Value::SimpleString(pong) if pong == "PONG" => Ok(()),
            _ => {
                let cause = "its master doesn't answer PING like a Redis server";
                Err(Failure::Other(cause.into()).into())
            }
        }
    }

    /// All that the URL names are asked at once: the first that is a node of a cluster is enough.
    fn find_a_node(&self, seeds: &[HostPort], deadline: &Deadline) -> Result<(), Refused> {
        let mut map = self.map.lock();
        let seeds = seeds.iter().filter_map(|seed| map.node(seed).cloned());
        let seeds: Vec<_> = seeds.collect();
        drop(map);
        let (group, hello) = (Group::new(seeds, deadline), ::redis::cmd("HELLO"));
        let mut round = group.ask(&hello);
        let (mut refused, mut failed) = (None, None);
        while let Some((at, said)) = round.next(deadline) {
            match Hello::said(&group.servers[at], said) {
                Ok(hello) if hello.is_usable() => return Ok(()),
                Ok(hello) => refused = Some(hello),
                Err(failure) => failed = worse(failed, failure),
            }
        }
        if let Some(hello) = refused {
            return hello.check().map_err(Refused::Error);
        }
        let silent = || Failure::TimedOut("none of its nodes answers".into());
        Err(failed.unwrap_or_else(silent).into())
    }

    /// A cluster some of whose slots nobody has will do: names in the others can be locked.
    fn find_slots(&self, deadline: &Deadline) -> Result<(), Refused> {
        let found = self.look_up(time::now(), AFTER_FIRST, deadline);
        match found.map_err(|heard| self.ask.failure(*heard)) {
            Err(Failure::ClusterDown(_)) | Ok(()) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Sentinels {
    /// Why they name no master: one is no Sentinel, or some don't know that name, or else what is wrong with each.
    fn refusal(&self, heard: Heard, settings: &Settings) -> Refused {
        let other = heard
            .silent
            .iter()
            .find(|(_, why)| matches!(why, NoView::NoSentinel));
        if let Some((server, _)) = other {
            let role = match greet_in_time(server) {
                Ok(role) => role,
                Err(failure) => return failure.into(),
            };
            if let Err(error) = check(role, server, Kind::Sentinel) {
                return Refused::Error(error);
            }
        }
        let unknown = |(_, why): &&(_, NoView)| matches!(why, NoView::UnknownName);
        let unknown: Vec<_> = heard.silent.iter().filter(unknown).collect();
        if unknown.is_empty() {
            return Sentinels::failure(heard).into();
        }
        let mut known: Vec<_> = unknown
            .into_iter()
            .flat_map(|(one, _)| masters(one))
            .collect();
        known.sort_unstable();
        known.dedup();
        let known = match &known[..] {
            [] => "list the names with SENTINEL MASTERS".to_owned(),
            known => format!("they know {}", known.join(", ")),
        };
        Refused::Error(Error::InvalidUrl {
            url: settings.shown.clone(),
            reason: format!(
                "no sentinel knows the master {}: {known}",
                self.question.name
            ),
        })
    }
}

/// What a server says that it is.
#[derive(Debug)]
struct Hello {
    server: Arc<Server>,
    role: Role,
    /// `None`: it doesn't say so.
    version: Option<Version>,
}

type Version = (String, u32);

/// The first version of Redis that has channels of slots (SSUBSCRIBE).
const LEAST: u32 = 7;

impl Hello {
    fn said(server: &Arc<Server>, said: Result<Value, Failure>) -> Result<Self, Failure> {
        let (role, version) = match said {
            Ok(hello) => (Role::of(&hello), version(&hello)),
            // It may have locks all the same.
            Err(Failure::Other(cause)) if is_unknown_command(&cause.to_string()) => {
                (Role::Primary, None)
            }
            Err(failure) => return Err(server.suspecting_tls(failure)),
        };
        Ok(Hello {
            server: server.clone(),
            role,
            version,
        })
    }

    /// Whether it is a node of a cluster that can have locks.
    fn is_usable(&self) -> bool {
        self.role == Role::ClusterNode && self.too_old().is_none()
    }

    /// Fails if it isn't usable. The error tells which URL to use, which the server may be asked for.
    fn check(&self) -> Result<()> {
        check(self.role, &self.server, Kind::Cluster)?;
        let endpoint = &self.server.settings().shown;
        match self.too_old() {
            Some(major) => Err(Error::Unsupported {
                what: format!(
                    "clusters of Redis {major} on {endpoint}: use Redis 7.0 or later, or Valkey"
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
    let fields = Fields::of(answer)?;
    let (major, _) = fields.get("version")?.split_once('.')?;
    Some((fields.get("server")?.to_owned(), major.parse().ok()?))
}

/// Fails if a server isn't of the `wanted` kind. The error tells which URL to use.
pub(crate) fn check(role: Role, server: &Arc<Server>, wanted: Kind) -> Result<()> {
    let shown = &server.settings().shown;
    let (is, use_instead) = match (role, wanted) {
        (Role::Primary, Kind::Single | Kind::Quorum)
        | (Role::Sentinel, Kind::Sentinel)
        | (Role::ClusterNode, Kind::Cluster) => return Ok(()),
        (Role::Replica, Kind::Single | Kind::Quorum) => return Err(replica(server)),
        (Role::ActiveReplica, _) => (
            "a KeyDB with active-replica, whose peers grant the same locks",
            "a server whose replicas accept no writes".to_owned(),
        ),
        (Role::Primary | Role::Replica, _) => {
            let primary = primary_of(server).filter(|_| role == Role::Replica);
            (
                "which is neither a cluster node nor a Sentinel",
                single_url(server, primary),
            )
        }
        (Role::ClusterNode, _) => ("a node of a cluster", url(server, "+cluster")),
        (Role::Sentinel, _) => ("a Sentinel", sentinel_url(server)),
    };
    Err(Error::Unsupported {
        what: format!("locks on {shown}, {is}: use {use_instead}"),
    })
}

fn replica(server: &Arc<Server>) -> Error {
    let cause = match primary_of(server) {
        Some(primary) => {
            let url = single_url(server, Some(primary));
            format!("it is a replica, which grants no locks: use {url}")
        }
        None => "it is a replica, which grants no locks".to_owned(),
    };
    let error = Error::unavailable(None, &server.settings().shown, cause);
    error.advising("use the URL of its primary, or promote it")
}

fn sentinel_url(server: &Arc<Server>) -> String {
    let url = url(server, "+sentinel");
    match &masters(server)[..] {
        [] => format!("{url}/NAME, with a name that SENTINEL MASTERS lists"),
        [name] => format!("{url}/{name}"),
        names => format!("{url}/NAME, where NAME is one of {}", names.join(", ")),
    }
}

fn single_url(server: &Server, at: Option<HostPort>) -> String {
    let url = match at {
        Some(at) => format!("{}://{at}", scheme(server)),
        None => url(server, ""),
    };
    format!("{url}/{}", server.settings().database)
}

fn url(server: &Server, kind: &str) -> String {
    let at = match server.endpoint() {
        Endpoint::Tcp(at) => at.to_string(),
        Endpoint::Unix(_) => "host:port".to_owned(),
    };
    format!("{}{kind}://{at}", scheme(server))
}

/// That of its URL, for one server.
fn scheme(server: &Server) -> &str {
    let shown = &server.settings().shown;
    let scheme = shown.split([':', '+']).next().unwrap_or_default();
    if scheme == "unix" { "redis" } else { scheme }
}

/// Where a replica's primary is, if it tells.
fn primary_of(server: &Arc<Server>) -> Option<HostPort> {
    let deadline = Deadline::after(server.settings().connect_timeout);
    let Value::Array(parts) = server.value(&::redis::cmd("ROLE"), &deadline).ok()? else {
        return None;
    };
    let [_, Value::BulkString(host), port, ..] = &parts[..] else {
        return None;
    };
    let port = match port {
        Value::Int(port) => u16::try_from(*port).ok(),
        Value::BulkString(port) => number(str::from_utf8(port).ok()?),
        _ => None,
    };
    let host = str::from_utf8(host).ok()?.to_owned();
    let port = port?;
    Some(HostPort { host, port })
}

/// What a server says that it is, in answer to HELLO, which any user may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A primary, or a server that doesn't say what it is: a proxy, or another version.
    Primary,
    Replica,
    /// A KeyDB that takes writes beside others: each of them would grant the same lock.
    ActiveReplica,
    ClusterNode,
    Sentinel,
}

impl Role {
    /// From the answer to HELLO.
    pub(crate) fn of(answer: &Value) -> Self {
        let fields = Fields::of(answer);
        let field = |name| fields.as_ref().and_then(|fields| fields.get(name));
        match (field("mode"), field("role")) {
            (Some("cluster"), _) => Role::ClusterNode,
            (Some("sentinel"), _) => Role::Sentinel,
            (_, Some("active-replica")) => Role::ActiveReplica,
            (_, Some("replica" | "slave")) => Role::Replica,
            // It may be a proxy, or another version, that doesn't say what it is.
            _ => Role::Primary,
        }
    }
}

#[cfg(test)]
mod tests;
