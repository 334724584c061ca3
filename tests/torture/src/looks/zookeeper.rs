//! What ZooKeeper shows of the locks.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Line, Look, NAMESPACE, Place, TIMEOUT, TOKENS_OF_REVISION, View};
use crate::history::Mode;
use crate::names::NAMES;
use support::{Node, RawSession};

/// A session needs no pings as long as it is used so often.
const ENDS_AFTER: Duration = Duration::from_secs(2);

/// The first part of an owner.
const UUID: usize = 36;

/// Looks at a member of ZooKeeper.
#[derive(Debug)]
pub(crate) struct ZooKeeperLook {
    addr: SocketAddr,
    session: Option<RawSession>,
    /// The nodes of owners, by their paths: they never change.
    known: HashMap<String, Node>,
}

impl ZooKeeperLook {
    pub(crate) fn open(addr: SocketAddr) -> Box<dyn Look> {
        Box::new(Self::at(addr))
    }

    pub(crate) fn at(addr: SocketAddr) -> Self {
        Self {
            addr,
            session: None,
            known: HashMap::new(),
        }
    }

    /// Does something with its session, which is opened if there is none, and dropped when that fails.
    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut RawSession, &mut HashMap<String, Node>) -> Result<T, i32>,
    ) -> io::Result<T> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => RawSession::try_open(self.addr, ENDS_AFTER, TIMEOUT)?,
        };
        let done = act(&mut session, &mut self.known);
        let done = done.map_err(|error| io::Error::other(format!("error {error}")))?;
        self.session = Some(session);
        Ok(done)
    }

    pub(crate) fn view(&mut self) -> io::Result<View> {
        self.with(view)
    }

    /// The number that is stored for a name.
    pub(crate) fn value(&mut self, name: &str) -> io::Result<u64> {
        let path = format!("/{NAMESPACE}/{name}/value");
        let found = self.with(|session, _| if_there(session.get(&path)))?;
        Ok(found.unwrap_or_default().parse().unwrap_or_default())
    }

    pub(crate) fn delete(&mut self, path: &str) -> io::Result<()> {
        self.with(|session, _| if_there(session.delete(path)).map(drop))
    }
}

impl Look for ZooKeeperLook {
    fn look(&mut self) -> Option<View> {
        self.view().ok()
    }
}

/// `None` if there is no such node.
fn if_there<T>(answer: Result<T, i32>) -> Result<Option<T>, i32> {
    match answer {
        Err(RawSession::NO_NODE) => Ok(None),
        answer => answer.map(Some),
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn view(session: &mut RawSession, known: &mut HashMap<String, Node>) -> Result<View, i32> {
    let mut view = View {
        term: session.sync()?,
        ..View::default()
    };
    let mut seen = HashMap::new();
    for name in NAMES {
        let path = format!("/{NAMESPACE}/{name}");
        let children = if_there(session.children(&path))?.unwrap_or_default();
        let mut line = Line {
            name: name.to_owned(),
            ..Line::default()
        };
        let mut is_whole = true;
        for (order, node) in in_order(&children) {
            if let Some(owner) = node.strip_prefix("b-") {
                line.broken.push(owner.to_owned());
            }
            let Some(mode) = mode_of(node).filter(|_| order.is_some()) else {
                continue;
            };
            let path = format!("{path}/{node}");
            let found = match known.remove(&path) {
                Some(found) => found,
                None => match if_there(session.node(&path))? {
                    Some(found) => found,
                    // It left meanwhile: what is left of this name another look shows.
                    None => {
                        is_whole = false;
                        break;
                    }
                },
            };
            view.owned.push(path.clone());
            if !found.is_ephemeral {
                view.bare.push(path.clone());
            }
            line.places.push(Place {
                key: path.clone(),
                owner: owner_of(&found.data),
                mode,
                token: token_of(&found.data).unwrap_or(found.revision * TOKENS_OF_REVISION + 1),
                revision: found.revision,
            });
            seen.insert(path, found);
        }
        if is_whole {
            view.lines.push(line);
        }
    }
    *known = seen;
    Ok(view)
}

/// The nodes of a name, those that have a number in their order.
fn in_order(children: &[String]) -> Vec<(Option<i32>, &str)> {
    let number = |node: &str| {
        let (_, rest) = node.split_once('-')?;
        rest.get(UUID..)?.strip_prefix('-')?.parse().ok()
    };
    let mut nodes: Vec<_> = children
        .iter()
        .map(|node| (number(node), node.as_str()))
        .collect();
    nodes.sort_unstable();
    nodes
}

fn mode_of(node: &str) -> Option<Mode> {
    match node.split_once('-')?.0 {
        "x" => Some(Mode::Exclusive),
        "r" => Some(Mode::Read),
        permits => {
            let (count, _) = permits.strip_prefix('p')?.split_once("of")?;
            Some(Mode::Permits(count.parse().ok()?))
        }
    }
}

/// Of a lease that isn't the first of its place: the third line.
fn token_of(data: &str) -> Option<u64> {
    data.lines().nth(2)?.parse().ok()
}

/// The first line.
fn owner_of(data: &str) -> String {
    data.lines().next().unwrap_or_default().to_owned()
}
