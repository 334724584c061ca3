//! What clients are answered, each in the order of what it has asked.

use crosslock_world::service::{Connection, Io};

use super::ZooKeeper;
use super::client::Waiting;
use super::jute::{Reader, Writer, answer, error, op};
use super::tree::Node;
use super::watches::Watched;

impl ZooKeeper {
    /// The leader has answered the first that waits.
    pub(super) fn answer_ordered(
        &mut self,
        io: &mut Io<'_>,
        connection: Connection,
        result: Result<Vec<u8>, i32>,
    ) {
        let Some(client) = self.clients.get_mut(&connection) else {
            return;
        };
        if result == Err(error::SESSION_MOVED) {
            return self.hang_up(io, connection);
        }
        if let Some(Waiting::Ordered { xid, path }) = client.waiting.pop_front() {
            let result = result.map(|body| [path, body].concat());
            self.answer(io, connection, xid, result);
        }
        self.answer_local(io, connection);
    }

    fn answer(
        &mut self,
        io: &mut Io<'_>,
        connection: Connection,
        xid: i32,
        result: Result<Vec<u8>, i32>,
    ) {
        let zxid = self.members[self.clients[&connection].at].tree.zxid;
        let (code, body) = match result {
            Ok(body) => (error::OK, body),
            Err(code) => (code, Vec::new()),
        };
        io.send(connection, answer(xid, zxid, code, &body));
    }

    /// Answers what this server can, until something waits for the leader.
    pub(super) fn answer_local(&mut self, io: &mut Io<'_>, connection: Connection) {
        while let Some(client) = self.clients.get_mut(&connection) {
            if !matches!(client.waiting.front(), Some(Waiting::Local { .. })) {
                return;
            }
            let Some(Waiting::Local { xid, kind, body }) = client.waiting.pop_front() else {
                return;
            };
            let (at, session) = (client.at, client.session);
            let leadership = self.members[at].leadership();
            let refused = leadership.and_then(|leadership| leadership.check(session, at));
            let result = match refused {
                Some(error::SESSION_MOVED) => return self.hang_up(io, connection),
                Some(code) => Err(code),
                None => self.look(io, connection, kind, &body),
            };
            // Whatever number it came with.
            let xid = if kind == op::PING { -2 } else { xid };
            self.answer(io, connection, xid, result);
        }
    }

    fn look(
        &mut self,
        io: &mut Io<'_>,
        connection: Connection,
        kind: i32,
        body: &[u8],
    ) -> Result<Vec<u8>, i32> {
        let client = &self.clients[&connection];
        let member = &mut self.members[client.at];
        let mut found = Writer::default();
        let mut record = Reader(body);
        let mut text = || record.text().ok_or(error::MARSHALLING);
        match kind {
            op::PING => return Ok(Vec::new()),
            op::SYNC => return Ok(found.text(&text()?).take()),
            _ => {}
        }
        let path = text()?;
        let watches = record.flag().ok_or(error::MARSHALLING)?;
        let node = member.tree.nodes.get(&path).ok_or(error::NO_NODE);
        if kind == op::EXISTS {
            // Also of a node that isn't there.
            if watches {
                member.watches.watch(Watched::Data, &path, connection);
            }
            node?.write_stat(&mut found);
            return Ok(found.take());
        }
        let node = node?;
        match kind {
            op::GET_DATA => _ = found.buffer(&node.data),
            _ => write_children(node, io, &mut found),
        }
        node.write_stat(&mut found);
        match kind {
            _ if !watches => {}
            op::GET_DATA => member.watches.watch(Watched::Data, &path, connection),
            _ => member.watches.watch(Watched::Children, &path, connection),
        }
        Ok(found.take())
    }
}

/// Servers have no order of them.
fn write_children(node: &Node, io: &mut Io<'_>, to: &mut Writer) {
    let mut children: Vec<_> = node.children.iter().collect();
    io.random.shuffle(&mut children);
    to.length(children.len());
    children.iter().for_each(|child| _ = to.text(child));
}
