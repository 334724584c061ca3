//! What a node says of its cluster: who has which slots.
//!
//! CLUSTER SLOTS is understood by all versions. An answer is as old as the node's knowledge: a node that is cut off
//! from the others has another view than they. CLUSTER NODES has the config epoch of each master: of two that are said
//! to have a slot, the one with the higher epoch has it. It is the only command that tells config epochs, and which
//! slots are on their way: these of the node itself alone.

use ::redis::Value;

use crate::base::sys::collections::HashMap;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::redis::script::Command;
use crate::engine::redis::{failure::Failure, keys::SLOTS, reply::text_of, server::Server};

#[cfg(test)]
mod tests;

/// What a node says of its cluster, or a sentinel of its master.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    /// Whether the node doesn't say that the cluster is down, which it says also when it is cut off from most others.
    pub(super) is_up: bool,
    pub(super) ranges: Vec<Range>,
    /// The masters that may answer, also those without slots. None where this user may not see CLUSTER NODES.
    pub(super) masters: Vec<HostPort>,
    /// The slots that the node takes over, and that another may have forgotten to give.
    pub(super) coming: Vec<u16>,
}

/// Slots that follow one another, and the nodes that have them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: HostPort,
    /// Of the master's claim to its slots: it increases with each failover and with each slot that it is given. 0:
    /// unknown.
    pub(super) epoch: u64,
    pub(super) replicas: Vec<HostPort>,
}

/// INFO, NODES and SLOTS, in one round trip.
pub(super) struct Questions;

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
    /// What a server says to the questions.
    pub(super) fn said(server: &Server, said: Result<Value, Failure>) -> Result<Self, Failure> {
        match said? {
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
        let lines: Option<Vec<_>> = text_of(&nodes).map(|nodes| node_lines(nodes).collect());
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
    pub(super) fn of_master(master: HostPort, epoch: u64) -> Self {
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
    let cause = "it doesn't answer CLUSTER SLOTS like a cluster node";
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
    let mut lines = text_of(info).unwrap_or_default().lines();
    let number = lines.find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

fn is_up(info: &Value) -> bool {
    let mut lines = text_of(info).unwrap_or_default().lines();
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
        host => text_of(host).filter(|host| *host != "?")?,
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
        Value::Array(parts) => text_of(parts.get(2)?),
        _ => None,
    }
}

/// What is known of one node.
#[derive(Debug)]
pub(crate) struct NodeLine<'a> {
    pub(crate) id: &'a str,
    /// `ip:port@bus,hostname`; a version may have less or more behind the port.
    address: &'a str,
    flags: &'a str,
    /// Of a replica that of its master.
    epoch: u64,
    /// Ranges of slots, and `[93->-id]` or `[77-<-id]` for slots that go or come.
    slots: Vec<&'a str>,
}

/// The lines of an answer.
pub(crate) fn node_lines(answer: &str) -> impl Iterator<Item = NodeLine<'_>> {
    answer.lines().filter_map(NodeLine::parse)
}

impl<'a> NodeLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let [id, address, flags, _, _, _, epoch, _, slots @ ..] = &*words else {
            return None;
        };
        Some(NodeLine {
            id,
            address,
            flags,
            epoch: epoch.parse().ok()?,
            slots: slots.to_vec(),
        })
    }

    /// Whether it is the node that was asked.
    pub(crate) fn is_own(&self) -> bool {
        self.has("myself")
    }

    /// The epoch of its claim to its slots; `None`: it is a replica, and has none.
    pub(crate) fn config_epoch(&self) -> Option<u64> {
        self.has("master").then_some(self.epoch)
    }

    /// Whether it is a master that may answer.
    pub(crate) fn is_live_master(&self) -> bool {
        let is_gone = ["fail", "handshake", "noaddr"];
        self.has("master") && !is_gone.iter().any(|flag| self.has(flag))
    }

    /// Where it is, by its name if nodes are known so; without a host it is that of the node that was asked.
    pub(crate) fn at(&self, by_name: bool, asked: &str) -> Option<HostPort> {
        let (host, port) = self.address.split('@').next()?.rsplit_once(':')?;
        let host = self.hostname().filter(|_| by_name).unwrap_or(host);
        Some(HostPort {
            host: if host.is_empty() { asked } else { host }.to_owned(),
            port: port.parse().ok().filter(|port| *port > 0)?,
        })
    }

    pub(crate) fn hostname(&self) -> Option<&'a str> {
        let name = self.address.split(',').nth(1)?;
        (!name.is_empty() && !name.contains('=')).then_some(name)
    }

    /// The slots that come or go.
    pub(crate) fn on_their_way(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().filter_map(|word| open_slot(word))
    }

    /// The slots that come.
    pub(crate) fn coming(&self) -> impl Iterator<Item = u16> {
        let coming = self.slots.iter().filter(|word| word.contains("-<-"));
        coming.filter_map(|word| open_slot(word))
    }
}

impl NodeLine<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|one| one == flag)
    }
}

fn open_slot(word: &str) -> Option<u16> {
    word.strip_prefix('[')?.split('-').next()?.parse().ok()
}
