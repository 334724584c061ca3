//! What a transaction does to what a server holds. The same does the same at every server.

use super::change::{Action, Applied, Change, Event, Happened, Transaction, flag};
use super::jute::{Reader, Writer, error, op};
use super::tree::{Acl, CONTAINER, Login, Node, Tree, allows, is_valid, right, split};

impl Tree {
    pub(super) fn apply(&mut self, transaction: &Transaction) -> Applied {
        self.zxid = transaction.zxid;
        let mut doing = Doing {
            tree: self,
            transaction,
            events: Vec::new(),
            undo: Vec::new(),
        };
        let answer = doing.all();
        Applied {
            events: doing.events,
            answer,
        }
    }
}

/// A transaction that is being carried out.
struct Doing<'a> {
    tree: &'a mut Tree,
    transaction: &'a Transaction,
    events: Vec<Event>,
    /// What nodes were before, the last change last.
    undo: Vec<(String, Option<Node>)>,
}

impl Doing<'_> {
    fn all(&mut self) -> Result<Vec<u8>, i32> {
        let Transaction {
            session, refused, ..
        } = *self.transaction;
        match &self.transaction.action {
            Action::Request {
                kind: op::MULTI,
                body,
            } => self.multi(&Change::read_multi(&mut Reader(body)).ok_or(error::MARSHALLING)?),
            _ if refused.is_some() => Err(refused.unwrap_or_default()),
            Action::OpenSession { timeout } => {
                self.tree.sessions.insert(session, *timeout);
                Ok(Vec::new())
            }
            Action::CloseSession => {
                self.tree.sessions.remove(&session);
                for path in self.tree.ephemerals_of(session) {
                    self.remove(&path);
                }
                Ok(Vec::new())
            }
            Action::Request { kind, body } => {
                let change = Change::read(*kind, &mut Reader(body)).ok_or(error::MARSHALLING)?;
                self.one(&change).map(|(_, body)| body)
            }
            Action::DeleteContainer { path } => {
                let node = self.tree.nodes.get(path).ok_or(error::NO_NODE)?;
                if !node.children.is_empty() {
                    return Err(error::NOT_EMPTY);
                }
                self.remove(path);
                Ok(Vec::new())
            }
        }
    }

    /// Does all, or nothing. It is answered without an error in the head.
    fn multi(&mut self, changes: &[Change]) -> Result<Vec<u8>, i32> {
        let mut answer = Writer::default();
        let mut refused = None;
        for (place, change) in changes.iter().enumerate() {
            match self
                .transaction
                .refused
                .map_or_else(|| self.one(change), Err)
            {
                Ok((kind, body)) => answer.int(kind).flag(false).int(error::OK).raw(&body),
                Err(error::SESSION_MOVED) => return Err(error::SESSION_MOVED),
                Err(code) => {
                    refused = Some((place, code));
                    break;
                }
            };
        }
        if let Some((place, code)) = refused {
            self.events.clear();
            while let Some((path, node)) = self.undo.pop() {
                match node {
                    Some(node) => self.tree.nodes.insert(path, node),
                    None => self.tree.nodes.remove(&path),
                };
            }
            answer = Writer::default();
            for other in 0..changes.len() {
                let code = match other {
                    _ if other < place => error::OK,
                    _ if other == place => code,
                    _ => error::NOT_TRIED,
                };
                answer.int(op::ERROR).flag(false).int(code).int(code);
            }
        }
        Ok(answer.int(-1).flag(true).int(-1).take())
    }

    /// Returns of which kind the answer is in a multi, and the answer.
    fn one(&mut self, change: &Change) -> Result<(i32, Vec<u8>), i32> {
        match change {
            Change::Create {
                kind,
                path,
                data,
                acl,
                flags,
            } => self.create(*kind, path, data.as_ref(), acl, *flags),
            Change::Delete { path, version } => self.delete(path, *version),
            Change::Set {
                path,
                data,
                version,
            } => self.set(path, data.as_ref(), *version),
            Change::Check { path, .. } if !is_valid(path) => Err(error::BAD_ARGUMENTS),
            Change::Check { path, version } => {
                let node = self.find(path, right::READ)?;
                check_version(node, *version)?;
                Ok((op::CHECK, Vec::new()))
            }
        }
    }

    fn create(
        &mut self,
        kind: i32,
        path: &str,
        data: Option<&Vec<u8>>,
        acl: &[(i32, Login)],
        flags: i32,
    ) -> Result<(i32, Vec<u8>), i32> {
        if !(0..=flag::CONTAINER).contains(&flags) {
            return Err(error::BAD_ARGUMENTS);
        }
        let (parent, _) = split(path).ok_or(error::BAD_ARGUMENTS)?;
        let acl = self.rights(acl)?;
        let above = self.find(parent, right::CREATE)?;
        let has_flag = |flag| flags != flag::CONTAINER && flags & flag != 0;
        let path = match has_flag(flag::SEQUENTIAL) {
            true => format!("{path}{:010}", above.creations),
            false => path.to_owned(),
        };
        if !is_valid(&path) {
            return Err(error::BAD_ARGUMENTS);
        }
        if self.tree.nodes.contains_key(&path) {
            return Err(error::NODE_EXISTS);
        }
        if above.is_ephemeral() {
            return Err(error::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let owner = match () {
            () if kind == op::CREATE_CONTAINER => CONTAINER,
            () if has_flag(flag::EPHEMERAL) => self.transaction.session,
            () => 0,
        };
        let mut node = Node::new(self.transaction.zxid, self.transaction.time, owner);
        (node.data, node.acl) = (data.cloned(), acl);
        let mut answer = Writer::default();
        answer.text(&path);
        if kind != op::CREATE {
            node.write_stat(&mut answer);
        }
        self.insert(path, node);
        let kind = if kind == op::CREATE {
            kind
        } else {
            op::CREATE2
        };
        Ok((kind, answer.take()))
    }

    /// What is said of whoever is logged in is said of the logins.
    fn rights(&self, acl: &[(i32, Login)]) -> Result<Acl, i32> {
        let mut all = Vec::new();
        for (rights, (scheme, id)) in acl {
            match (&**scheme, &**id) {
                ("auth", _) if !self.transaction.logins.is_empty() => {
                    let logins = self.transaction.logins.iter();
                    all.extend(logins.map(|login| (*rights, login.clone())));
                }
                ("world", "anyone") | ("digest", _) => {
                    all.push((*rights, (scheme.clone(), id.clone())));
                }
                _ => return Err(error::INVALID_ACL),
            }
        }
        if all.is_empty() {
            Err(error::INVALID_ACL)
        } else {
            Ok(all)
        }
    }

    fn delete(&mut self, path: &str, version: i32) -> Result<(i32, Vec<u8>), i32> {
        let is_own = matches!(
            path,
            "/" | "/zookeeper" | "/zookeeper/config" | "/zookeeper/quota"
        );
        let (parent, _) = split(path)
            .filter(|_| !is_own)
            .ok_or(error::BAD_ARGUMENTS)?;
        self.find(parent, right::DELETE)?;
        let node = self.tree.nodes.get(path).ok_or(error::NO_NODE)?;
        check_version(node, version)?;
        if !node.children.is_empty() {
            return Err(error::NOT_EMPTY);
        }
        self.remove(path);
        Ok((op::DELETE, Vec::new()))
    }

    fn set(
        &mut self,
        path: &str,
        data: Option<&Vec<u8>>,
        version: i32,
    ) -> Result<(i32, Vec<u8>), i32> {
        if !is_valid(path) {
            return Err(error::BAD_ARGUMENTS);
        }
        check_version(self.find(path, right::WRITE)?, version)?;
        self.remember(path);
        let Transaction { zxid, time, .. } = *self.transaction;
        let mut answer = Writer::default();
        if let Some(node) = self.tree.nodes.get_mut(path) {
            node.data = data.cloned();
            node.version += 1;
            (node.mzxid, node.mtime) = (zxid, time);
            node.write_stat(&mut answer);
        }
        self.tell(Happened::Changed, path);
        Ok((op::SET_DATA, answer.take()))
    }

    fn find(&self, path: &str, right: i32) -> Result<&Node, i32> {
        let node = self.tree.get(path).ok_or(error::NO_NODE)?;
        match allows(&node.acl, right, &self.transaction.logins) {
            true => Ok(node),
            false => Err(error::NO_AUTH),
        }
    }

    fn insert(&mut self, path: String, node: Node) {
        let zxid = self.transaction.zxid;
        self.change_parent(&path, |parent, name| {
            parent.children.insert(name.to_owned());
            parent.creations += 1;
            parent.pzxid = zxid;
        });
        self.remember(&path);
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
        self.remember(path);
        self.tell(Happened::Deleted, path);
        self.tree.nodes.remove(path);
        self.tell_parent(path);
    }

    fn tell(&mut self, happened: Happened, path: &str) {
        if let Some(node) = self.tree.nodes.get(path) {
            let (path, acl) = (path.to_owned(), node.acl.clone());
            self.events.push(Event {
                happened,
                path,
                acl,
            });
        }
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
        self.remember(parent);
        if let Some(parent) = self.tree.nodes.get_mut(parent) {
            change(parent, name);
        }
    }

    /// For the case that a later change is refused.
    fn remember(&mut self, path: &str) {
        if matches!(
            self.transaction.action,
            Action::Request {
                kind: op::MULTI,
                ..
            }
        ) {
            let node = self.tree.nodes.get(path).cloned();
            self.undo.push((path.to_owned(), node));
        }
    }
}

fn check_version(node: &Node, version: i32) -> Result<(), i32> {
    match version {
        -1 => Ok(()),
        version if version == node.version => Ok(()),
        _ => Err(error::BAD_VERSION),
    }
}
