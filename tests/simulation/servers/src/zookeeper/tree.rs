//! What a server holds: nodes and sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::jute::Writer;
use crate::short;

/// The owner of a container, which servers don't tell.
pub(super) const CONTAINER: i64 = i64::MIN;

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) data: Vec<u8>,
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    /// How many children were ever made in it: what numbers those that are named by the server.
    pub(super) creations: i32,
    /// A session, [`CONTAINER`], or 0.
    pub(super) owner: i64,
    pub(super) pzxid: i64,
    pub(super) children: BTreeSet<String>,
}

impl Node {
    pub(super) fn new(zxid: i64, time: i64, owner: i64) -> Self {
        Node {
            czxid: zxid,
            mzxid: zxid,
            ctime: time,
            mtime: time,
            owner,
            pzxid: zxid,
            ..Node::default()
        }
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.owner != 0 && self.owner != CONTAINER
    }

    pub(super) fn write_stat(&self, to: &mut Writer) {
        let children = i32::try_from(self.children.len()).expect("a few");
        to.long(self.czxid).long(self.mzxid);
        to.long(self.ctime).long(self.mtime);
        // As often as children were made or deleted.
        to.int(self.version).int(self.creations * 2 - children);
        to.int(0)
            .long(if self.is_ephemeral() { self.owner } else { 0 });
        to.length(self.data.len());
        to.int(children).long(self.pzxid);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
    /// How long each may be silent, in milliseconds.
    pub(super) sessions: BTreeMap<i64, i32>,
    /// The last transaction.
    pub(super) zxid: i64,
}

impl Tree {
    /// An empty one has a root.
    pub(super) fn new() -> Self {
        let nodes = BTreeMap::from([("/".to_owned(), Node::new(0, 0, 0))]);
        Tree {
            nodes,
            ..Tree::default()
        }
    }

    /// Those that have had children, and have none.
    pub(super) fn empty_containers(&self) -> Vec<String> {
        let is_over =
            |node: &Node| node.owner == CONTAINER && node.children.is_empty() && node.creations > 0;
        let over = self.nodes.iter().filter(|(_, node)| is_over(node));
        over.map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn ephemerals_of(&self, session: i64) -> Vec<String> {
        let own = self.nodes.iter().filter(|(_, node)| node.owner == session);
        own.map(|(path, _)| path.clone()).collect()
    }

    /// A line for each node.
    pub(super) fn lines(&self) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|(path, _)| *path != "/");
        let line = |(path, node): (&String, &Node)| {
            let data = short(&node.data);
            let owner = match node.owner {
                0 => "persistent".to_owned(),
                CONTAINER => "container".to_owned(),
                session => format!("ephemeral {session:#x}"),
            };
            format!("{path} {data:?} {owner}")
        };
        nodes.map(line).collect()
    }
}

/// The parent of a node, and its name there.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}
