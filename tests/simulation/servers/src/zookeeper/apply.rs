//! What a transaction does to what a server holds. The same does the same at every server.

use super::change::{Action, Applied, Change, Event, Happened, Transaction, flag};
use super::jute::{Writer, error, op};
use super::tree::{CONTAINER, Node, Tree, split};

impl Tree {
    pub(super) fn apply(&mut self, transaction: &Transaction) -> Applied {
        self.zxid = transaction.zxid;
        let mut doing = Doing {
            tree: self,
            transaction,
            events: Vec::new(),
            before: Vec::new(),
        };
        let answer = doing.all();
        (doing.events, answer)
    }
}

/// Of which kind an answer is in a multi, and the answer; or an error.
type Done = Result<(i32, Writer), i32>;

/// A transaction that is being carried out.
struct Doing<'a> {
    tree: &'a mut Tree,
    transaction: &'a Transaction,
    events: Vec<Event>,
    /// What nodes were before each change of a multi, in its order: none where there was none.
    before: Vec<(String, Option<Node>)>,
}

impl Doing<'_> {
    fn all(&mut self) -> Result<Vec<u8>, i32> {
        let session = self.transaction.session;
        match (&self.transaction.action, self.transaction.refused) {
            (Action::Multi(changes), refused) => return self.multi(changes, refused),
            (_, Some(refused)) => return Err(refused),
            (Action::OpenSession(timeout), _) => {
                self.tree.sessions.insert(session, *timeout);
            }
            (Action::CloseSession, _) => {
                self.tree.sessions.remove(&session);
                for path in self.tree.ephemerals_of(session) {
                    self.remove(&path);
                }
            }
            (Action::Change(change), _) => {
                return self.one(change).map(|(_, mut body)| body.take());
            }
            (Action::DeleteContainer(path), _) => {
                if !self.find(path)?.children.is_empty() {
                    return Err(error::NOT_EMPTY);
                }
                self.remove(path);
            }
        }
        Ok(Vec::new())
    }

    /// Does all, or nothing. It is answered without an error in the head.
    fn multi(&mut self, changes: &[Change], refused: Option<i32>) -> Result<Vec<u8>, i32> {
        let mut answer = Writer::default();
        for (place, change) in changes.iter().enumerate() {
            let done = refused.map_or_else(|| self.one(change), Err);
            match done {
                Ok((kind, mut body)) => {
                    answer
                        .int(kind)
                        .flag(false)
                        .int(error::OK)
                        .raw(&body.take());
                }
                Err(error::SESSION_MOVED) => return Err(error::SESSION_MOVED),
                Err(code) => {
                    self.undo();
                    answer = refusals(changes.len(), place, code);
                    break;
                }
            }
        }
        Ok(answer.int(-1).flag(true).int(-1).take())
    }

    fn undo(&mut self) {
        self.events.clear();
        for (path, node) in self.before.drain(..).rev() {
            match node {
                Some(node) => self.tree.nodes.insert(path, node),
                None => self.tree.nodes.remove(&path),
            };
        }
    }

    /// Only a multi can be undone.
    fn keep(&mut self, path: &str) {
        if matches!(self.transaction.action, Action::Multi(_)) {
            let node = self.tree.nodes.get(path).cloned();
            self.before.push((path.to_owned(), node));
        }
    }

    fn one(&mut self, change: &Change) -> Done {
        let Change { kind, path, .. } = change;
        let mut answer = Writer::default();
        if matches!(*kind, op::CREATE2 | op::CREATE_CONTAINER) {
            return self.create(change);
        }
        let node = self.find(path)?;
        if change.version != -1 && change.version != node.version {
            return Err(error::BAD_VERSION);
        }
        match *kind {
            op::DELETE if !node.children.is_empty() => return Err(error::NOT_EMPTY),
            op::DELETE => self.remove(path),
            op::SET_DATA => {
                self.keep(path);
                let Transaction { zxid, time, .. } = *self.transaction;
                if let Some(node) = self.tree.nodes.get_mut(path) {
                    node.data.clone_from(&change.data);
                    node.version += 1;
                    (node.mzxid, node.mtime) = (zxid, time);
                    node.write_stat(&mut answer);
                }
                self.tell(Happened::Changed, path);
            }
            _ => {}
        }
        Ok((*kind, answer))
    }

    fn create(&mut self, change: &Change) -> Done {
        let flags = change.flags;
        let (parent, _) = split(&change.path).ok_or(error::BAD_ARGUMENTS)?;
        let above = self.find(parent)?;
        let is_container = flags == flag::CONTAINER;
        let path = match flags & flag::SEQUENTIAL {
            0 => change.path.clone(),
            _ => format!("{}{:010}", change.path, above.creations),
        };
        if self.tree.nodes.contains_key(&path) {
            return Err(error::NODE_EXISTS);
        }
        if above.is_ephemeral() {
            return Err(error::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let owner = match flags & flag::EPHEMERAL {
            _ if is_container => CONTAINER,
            0 => 0,
            _ => self.transaction.session,
        };
        let mut node = Node::new(self.transaction.zxid, self.transaction.time, owner);
        node.data.clone_from(&change.data);
        let mut answer = Writer::default();
        answer.text(&path);
        // In a multi the flags alone say what it is, and only a container's answer has more than the path.
        let is_multi = matches!(self.transaction.action, Action::Multi(_));
        let is_short = is_multi && !is_container;
        if !is_short {
            node.write_stat(&mut answer);
        }
        self.insert(path, node);
        Ok((if is_short { op::CREATE } else { op::CREATE2 }, answer))
    }

    fn find(&self, path: &str) -> Result<&Node, i32> {
        self.tree.nodes.get(path).ok_or(error::NO_NODE)
    }

    fn insert(&mut self, path: String, node: Node) {
        let zxid = self.transaction.zxid;
        self.change_parent(&path, |parent, name| {
            parent.children.insert(name.to_owned());
            parent.creations += 1;
            parent.pzxid = zxid;
        });
        self.keep(&path);
        self.tree.nodes.insert(path.clone(), node);
        self.tell(Happened::Created, &path);
        self.tell_parent(&path);
    }

    fn remove(&mut self, path: &str) {
        let zxid = self.transaction.zxid;
        self.change_parent(path, |parent, name| {
            parent.children.remove(name);
            parent.pzxid = zxid;
        });
        self.tell(Happened::Deleted, path);
        self.keep(path);
        self.tree.nodes.remove(path);
        self.tell_parent(path);
    }

    fn tell(&mut self, happened: Happened, path: &str) {
        self.events.push((happened, path.to_owned()));
    }

    fn tell_parent(&mut self, path: &str) {
        if let Some((parent, _)) = split(path) {
            self.tell(Happened::ChildrenChanged, parent);
        }
    }

    fn change_parent(&mut self, path: &str, change: impl FnOnce(&mut Node, &str)) {
        let Some((parent, name)) = split(path) else {
            return;
        };
        self.keep(parent);
        if let Some(parent) = self.tree.nodes.get_mut(parent) {
            change(parent, name);
        }
    }
}

/// The change at that place is refused, and with it all.
fn refusals(changes: usize, place: usize, code: i32) -> Writer {
    let mut answer = Writer::default();
    for other in 0..changes {
        let code = match other.cmp(&place) {
            std::cmp::Ordering::Less => error::OK,
            std::cmp::Ordering::Equal => code,
            std::cmp::Ordering::Greater => error::NOT_TRIED,
        };
        answer.int(op::ERROR).flag(false).int(code).int(code);
    }
    answer
}
