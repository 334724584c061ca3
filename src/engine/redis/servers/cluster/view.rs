//! What a node says of its cluster: who has which slots.
//!
//! CLUSTER SLOTS is understood by all versions. An answer is as old as the node's knowledge: a node that is cut off from
//! the others has another view than they, and the smaller epoch.

use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::slots::SLOTS;

/// What a node says of its cluster.
#[derive(Debug, Default)]
pub(super) struct View {
    /// It increases with each failover and with each slot that moves. 0: the node doesn't say it.
    pub(super) epoch: u64,
    /// Whether the node doesn't say that the cluster is down, which it says also when it is cut off from most others.
    pub(super) is_up: bool,
    pub(super) ranges: Vec<Range>,
}

/// Slots that follow one another, and the nodes that have them.
#[derive(Debug, PartialEq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: HostPort,
    pub(super) replicas: Vec<HostPort>,
}

impl View {
    pub(super) fn ask(server: &Arc<Server>, deadline: &Deadline) -> Result<Self, Failure> {
        let [mut info, mut slots] = [(); 2].map(|()| ::redis::cmd("CLUSTER"));
        info.arg("INFO");
        slots.arg("SLOTS");
        // Asked first: the slots are no older than the epoch.
        let (epoch, is_up) = match server.call(&info, Manner::Plain, deadline) {
            Ok(answer) => (epoch(&answer.value), is_up(&answer.value)),
            Err(unanswered) if matches!(unanswered.error, Failure::Denied(_)) => (0, true),
            Err(unanswered) => return Err(unanswered.error),
        };
        let answer = server.call(&slots, Manner::Plain, deadline);
        let Value::Array(parts) = answer.map_err(|e| e.error)?.value else {
            let cause = "it doesn't answer CLUSTER SLOTS as a node of a cluster does";
            return Err(Failure::Other(cause.into()));
        };
        let asked = host(server);
        let ranges = parts.iter().filter_map(|part| range(part, &asked));
        Ok(View {
            epoch,
            is_up,
            ranges: ranges.collect(),
        })
    }

    /// Whether it says of any slot where it is.
    pub(super) fn is_usable(&self) -> bool {
        !self.ranges.is_empty()
    }
}

/// Where a node is that answers without a host: "where you found me".
pub(super) fn host(server: &Server) -> String {
    match server.endpoint() {
        Endpoint::Tcp(at) => at.host.clone(),
        Endpoint::Unix(_) => String::new(),
    }
}

fn epoch(info: &Value) -> u64 {
    let mut lines = text(info).unwrap_or_default().lines();
    let number = lines.find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

fn is_up(info: &Value) -> bool {
    let mut lines = text(info).unwrap_or_default().lines();
    !lines.any(|line| line.trim_end() == "cluster_state:fail")
}

/// The first and the last slot, the master, and the replicas. `None` also where the master's address isn't known.
fn range(range: &Value, asked: &str) -> Option<Range> {
    let Value::Array(parts) = range else {
        return None;
    };
    let [first, last, master, replicas @ ..] = &**parts else {
        return None;
    };
    let (first, last) = (slot(first)?, slot(last)?);
    let replicas = replicas.iter().filter_map(|replica| node(replica, asked));
    (first <= last).then_some(Range {
        first,
        last,
        master: node(master, asked)?,
        replicas: replicas.collect(),
    })
}

fn slot(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

/// A node: host, port, and more. Without a host it is that of the node that was asked; `?` is one that nobody knows.
fn node(node: &Value, asked: &str) -> Option<HostPort> {
    let Value::Array(parts) = node else {
        return None;
    };
    let host = match parts.first()? {
        Value::Nil => "",
        host => text(host).filter(|host| *host != "?")?,
    };
    let host = if host.is_empty() { asked } else { host };
    let Value::Int(port) = parts.get(1)? else {
        return None;
    };
    Some(HostPort {
        host: host.to_owned(),
        port: u16::try_from(*port).ok().filter(|port| *port > 0)?,
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: i64) -> Value {
        let host = match host {
            "nil" => Value::Nil,
            host => Value::BulkString(host.into()),
        };
        let id = Value::BulkString(b"07c37dfeb235213a872192d90877d0cd55635b91".into());
        Value::Array(vec![host, Value::Int(port), id, Value::Array(Vec::new())])
    }

    fn answer(first: i64, last: i64, nodes: Vec<Value>) -> Option<Range> {
        let slots = vec![Value::Int(first), Value::Int(last)];
        range(&Value::Array([slots, nodes].concat()), "asked")
    }

    #[test]
    fn node_without_a_host_is_where_the_one_asked_is() {
        for (host, found) in [("10.0.0.1", "10.0.0.1"), ("", "asked"), ("nil", "asked")] {
            let range = answer(0, 5, vec![at(host, 7000), at("b", 7001)]).unwrap();
            assert_eq!(range.master.to_string(), format!("{found}:7000"));
            assert_eq!(range.replicas[0].to_string(), "b:7001");
        }
    }

    #[test]
    fn what_no_cluster_answers_is_no_range() {
        assert_eq!(answer(0, 5, vec![at("?", 7000)]), None);
        assert_eq!(answer(0, 5, vec![at("a", 0)]), None);
        assert_eq!(answer(0, 5, vec![at("a", 65_536)]), None);
        assert_eq!(answer(0, 16_384, vec![at("a", 7000)]), None);
        assert_eq!(answer(6, 5, vec![at("a", 7000)]), None);
        assert_eq!(answer(-1, 5, vec![at("a", 7000)]), None);
        assert_eq!(answer(0, 5, vec![]), None);
        assert_eq!(answer(0, 5, vec![Value::Int(1)]), None);
        assert_eq!(range(&Value::Nil, "asked"), None);
    }

    #[test]
    fn epoch_and_state_are_those_of_the_cluster() {
        for (state, up) in [("ok", true), ("fail", false)] {
            let info = format!(
                "cluster_state:{state}\r\ncluster_current_epoch:7\r\ncluster_my_epoch:2\r\n"
            );
            let info = Value::BulkString(info.into());
            assert_eq!((epoch(&info), is_up(&info)), (7, up));
        }
        assert_eq!((epoch(&Value::Nil), is_up(&Value::Nil)), (0, true));
    }
}
