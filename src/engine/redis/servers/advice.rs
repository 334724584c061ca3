//! Which URL to use for a server that isn't what its URL says.

use std::sync::Arc;

use ::redis::Value;

use super::masters::masters;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::engine::net::address::{Endpoint, HostPort, number};
use crate::engine::redis::role::Role;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::settings::Kind;

/// Fails if a server isn't of the `wanted` kind. The error tells which URL to use.
pub(super) fn check(role: Role, server: &Arc<Server>, wanted: Kind) -> Result<()> {
    let shown = &server.settings().shown;
    let (is, use_instead) = match (role, wanted) {
        (Role::Primary, Kind::Single)
        | (Role::Sentinel, Kind::Sentinel)
        | (Role::ClusterNode, Kind::Cluster) => return Ok(()),
        (Role::Replica, Kind::Single) => return Err(replica(server)),
        (Role::ActiveReplica, _) => (
            "a KeyDB with active-replica, beside which others grant the same locks",
            "a server whose replicas take no writes".to_owned(),
        ),
        (Role::Primary | Role::Replica, _) => {
            let primary = primary_of(server).filter(|_| role == Role::Replica);
            (
                "neither of a cluster nor a Sentinel",
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
            format!("it is a replica, which takes no locks: use {url}")
        }
        None => "it is a replica, which takes no locks".to_owned(),
    };
    let error = Error::unavailable(None, &server.settings().shown, cause);
    error.advising("name its primary, or promote it")
}

fn sentinel_url(server: &Arc<Server>) -> String {
    let url = url(server, "+sentinel");
    match &masters(server)[..] {
        [] => format!("{url}/NAME, with the name of a master that SENTINEL MASTERS tells"),
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
    let answer = server.call(&::redis::cmd("ROLE"), Manner::Plain, &deadline);
    let Value::Array(parts) = answer.ok()?.value else {
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
