//! What a node says of its cluster: who has which slots.
//!
//! CLUSTER SLOTS is understood by all versions. An answer is as old as the node's knowledge: a node that is cut off from
//! the others has another view than they. CLUSTER NODES has the config epoch of each master: of two that are said to have a
//! slot, the one with the higher epoch has it.

use std::collections::HashMap;
use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::node_lines::{NodeLine, node_lines};
use crate::engine::redis::servers::slots::SLOTS;

/// What a node says of its cluster, or a sentinel of its master.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::engine::redis::servers) struct View {
    /// Whether the node doesn't say that the cluster is down, which it says also when it is cut off from most others.
    pub(in crate::engine::redis::servers) is_up: bool,
    pub(in crate::engine::redis::servers) ranges: Vec<Range>,
    /// The masters that may answer, also those without slots. None where this user may not see CLUSTER NODES.
    pub(in crate::engine::redis::servers) masters: Vec<HostPort>,
    /// The slots that the node takes over, and that another may have forgotten to give.
    pub(in crate::engine::redis::servers) coming: Vec<u16>,
}

/// Slots that follow one another, and the nodes that have them.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine::redis::servers) struct Range {
    pub(in crate::engine::redis::servers) first: u16,
    pub(in crate::engine::redis::servers) last: u16,
    pub(in crate::engine::redis::servers) master: HostPort,
    /// Of the master's claim to its slots: it increases with each failover and with each slot that it is given. 0: unknown.
    pub(in crate::engine::redis::servers) epoch: u64,
    pub(in crate::engine::redis::servers) replicas: Vec<HostPort>,
}

/// INFO, NODES and SLOTS, in one round trip.
struct Questions;

impl Command for Questions {
    fn packed(&self) -> Vec<u8> {
        let questions = ["INFO", "NODES", "SLOTS"].into_iter();
        let packed = questions.map(|word| ::redis::cmd("CLUSTER").arg(word).get_packed_command());
        packed.flatten().collect()
    }

    fn length(&self) -> usize {
        3
    }
}

/// Of each master by its id.
type Epochs<'a> = HashMap<&'a str, u64>;

impl View {
    pub(super) fn ask(server: &Arc<Server>, deadline: &Deadline) -> Result<Self, Failure> {
        let answer = server.call(&Questions, Manner::Plain, deadline);
        match answer.map_err(|e| e.error)?.value {
            Value::Array(answers) => View::of(answers, &host(server)),
            _ => Err(strange()),
        }
    }

    /// What the answers to the questions say. `asked` is the host of the node that was asked.
    fn of(answers: Vec<Value>, asked: &str) -> Result<Self, Failure> {
        let Ok([info, nodes, slots]) = <[Value; 3]>::try_from(answers) else {
            return Err(strange());
        };
        let parts = match slots {
            Value::Array(parts) => parts,
            Value::ServerError(error) => return Err(error.into()),
            _ => return Err(strange()),
        };
        let is_up = is_up(&info);
        let lines: Option<Vec<_>> = text(&nodes).map(|nodes| node_lines(nodes).collect());
        let epochs = lines.as_deref().map(epochs);
        let epoch = |id: &str| match &epochs {
            // A node that takes a slot over goes on naming its old master, also as a replica.
            Some(epochs) => epochs.get(id).copied().unwrap_or(0),
            // No claim has a higher one; but a node that is cut off counts its own attempts to be elected.
            None if is_up => current_epoch(&info),
            None => 0,
        };
        let ranges = parts.iter().filter_map(|part| range(part, asked, &epoch));
        let lines = lines.as_deref().unwrap_or_default();
        let own = lines.iter().filter(|line| line.is_own());
        Ok(View {
            is_up,
            ranges: ranges.collect(),
            masters: masters(lines, &parts, asked),
            coming: own.flat_map(NodeLine::coming).collect(),
        })
    }

    /// Of a sentinel: the master has the only slot.
    pub(in crate::engine::redis::servers) fn of_master(master: HostPort, epoch: u64) -> Self {
        let only = Range {
            first: 0,
            last: 0,
            master,
            epoch,
            replicas: Vec::new(),
        };
        View {
            is_up: true,
            ranges: vec![only],
            ..View::default()
        }
    }

    /// The highest epoch of any claim.
    pub(super) fn newest(&self) -> u64 {
        let epochs = self.ranges.iter().map(|range| range.epoch);
        epochs.max().unwrap_or(0)
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

fn strange() -> Failure {
    let cause = "it doesn't answer CLUSTER SLOTS as a node of a cluster does";
    Failure::Other(cause.into())
}

fn epochs<'a>(lines: &[NodeLine<'a>]) -> Epochs<'a> {
    let epochs = lines
        .iter()
        .filter_map(|line| Some((line.id, line.config_epoch()?)));
    epochs.collect()
}

/// Where the masters are that may answer: where CLUSTER SLOTS has them, if they have slots.
fn masters(lines: &[NodeLine<'_>], parts: &[Value], asked: &str) -> Vec<HostPort> {
    let known: HashMap<_, _> = parts
        .iter()
        .filter_map(|part| {
            let Value::Array(part) = part else {
                return None;
            };
            let master = part.get(2)?;
            Some((id(master)?, node(master, asked)?))
        })
        .collect();
    let by_name = lines.iter().any(|line| {
        let known = known.get(line.id).map(|at| &*at.host);
        known.is_some() && known == line.hostname()
    });
    let live = lines.iter().filter(|line| line.is_live_master());
    live.filter_map(|line| match known.get(line.id) {
        Some(at) => Some(at.clone()),
        None => line.at(by_name, asked),
    })
    .collect()
}

fn current_epoch(info: &Value) -> u64 {
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
fn range(range: &Value, asked: &str, epoch: &dyn Fn(&str) -> u64) -> Option<Range> {
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
        epoch: epoch(id(master).unwrap_or_default()),
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

/// A node's id.
fn id(node: &Value) -> Option<&str> {
    match node {
        Value::Array(parts) => text(parts.get(2)?),
        _ => None,
    }
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

    /// A node whose id is as its port.
    fn at(host: &str, port: i64) -> Value {
        let host = match host {
            "nil" => Value::Nil,
            host => bulk(host),
        };
        let id = bulk(&format!("id{port}"));
        Value::Array(vec![host, Value::Int(port), id, Value::Array(Vec::new())])
    }

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn part(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        let slots = vec![Value::Int(first), Value::Int(last)];
        Value::Array([slots, nodes].concat())
    }

    fn answer(first: i64, last: i64, nodes: Vec<Value>) -> Option<Range> {
        range(&part(first, last, nodes), "asked", &|_| 0)
    }

    fn info(state: &str, epoch: u64) -> Value {
        bulk(&format!(
            "cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\ncluster_my_epoch:2\r\n"
        ))
    }

    fn denied() -> Value {
        let line = b"-NOPERM this user has no permissions\r\n";
        ::redis::parse_redis_value(line).unwrap()
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
        assert_eq!(range(&Value::Nil, "asked", &|_| 0), None);
    }

    #[test]
    fn epoch_is_that_of_the_claim_and_a_replica_has_none() {
        const NODES: &str = "\
            id1 a:1@9 myself,master - 0 0 3 connected 0-5 [4->-id3] [8-<-id4]\n\
            id2 a:2@9 slave id3 0 0 8 connected\n\
            id3 a:3@9 master - 0 0 8 connected\n\
            id4 a:4@9 master,fail - 0 0 2 disconnected 8\n";
        let slots = [(0, 5, 1), (6, 7, 2), (8, 8, 4)];
        let slots = slots.map(|(first, last, port)| part(first, last, vec![at("b", port)]));
        let answers = vec![info("fail", 12), bulk(NODES), Value::Array(slots.into())];
        let view = View::of(answers, "asked").unwrap();
        let epochs: Vec<_> = view.ranges.iter().map(|range| range.epoch).collect();
        assert_eq!(
            (epochs, view.newest(), view.is_up),
            (vec![3, 0, 2], 3, false)
        );
        // The one that may answer is where CLUSTER SLOTS has it, if it has slots.
        let masters: Vec<_> = view.masters.iter().map(HostPort::to_string).collect();
        assert_eq!(masters, ["b:1", "a:3"]);
        assert_eq!(view.coming, [8]);
    }

    #[test]
    fn without_the_right_to_see_epochs_the_clusters_counts_unless_it_is_down() {
        for (info, epoch, up) in [
            (info("ok", 7), 7, true),
            (info("fail", 12), 0, false),
            (denied(), 0, true),
        ] {
            let slots = Value::Array(vec![part(0, 5, vec![at("a", 1)])]);
            let view = View::of(vec![info, denied(), slots], "asked").unwrap();
            assert_eq!((view.newest(), view.is_up), (epoch, up));
            assert!(view.masters.is_empty());
        }
        let none = View::of(vec![info("ok", 7), denied(), denied()], "asked");
        assert!(matches!(none, Err(Failure::Denied(_))), "{none:?}");
    }
}
