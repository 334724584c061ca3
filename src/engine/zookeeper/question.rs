//! One question of an owner: whose it is, in which session, and about which names.

use std::sync::Arc;

use super::client::{Op, Session};
use super::line::Line;
use super::locks::{Name, children, get, sync};
use super::nodes;
use super::replies::{Replies, Trouble};
use crate::base::clock::Deadline;
use crate::base::value::Stored;
use crate::engine::Request;

/// One question.
pub(super) struct Question<'a> {
    pub(super) request: Request<'a>,
    pub(super) session: Arc<Session>,
    pub(super) names: Vec<Name>,
    pub(super) deadline: &'a Deadline,
    /// Whether the owner waits, if it isn't let in.
    pub(super) waits: bool,
}

/// What the names of a question are like.
pub(super) struct Seen {
    pub(super) lines: Vec<Line>,
    /// Of each which transaction has changed it last: 0 of a name without a node.
    pub(super) changed: Vec<i64>,
    /// If it was asked for.
    pub(super) value: Option<Stored>,
}

impl Question<'_> {
    pub(super) fn uuid(&self) -> &str {
        nodes::uuid_of(self.request.owner)
    }

    pub(super) fn call(&self, requests: &[Op]) -> Result<Replies, Trouble> {
        Ok(Replies::new(self.session.call(requests, self.deadline)?))
    }

    /// What lists all names, and brings the value if that is asked for.
    pub(super) fn listing(&self) -> impl Iterator<Item = Op> {
        let value = self.names.first().filter(|_| self.request.claim.valued);
        let value = value.map(|name| get(name.child(nodes::VALUE)));
        let lists = self.names.iter().map(|name| children(&name.path));
        lists.chain(value)
    }

    pub(super) fn listed(&self, replies: &mut Replies) -> Result<Seen, Trouble> {
        let (mut lines, mut changed) = (Vec::new(), Vec::new());
        for _ in &self.names {
            let (children, stat) = replies.children()?.unwrap_or_default();
            lines.push(Line::of(&children));
            changed.push(stat.pzxid);
        }
        let value = if self.request.claim.valued {
            Some(replies.data()?.map(|(value, _)| value.into()))
        } else {
            None
        };
        Ok(Seen {
            lines,
            changed,
            value,
        })
    }

    /// Lists the names as the leader has them.
    pub(super) fn look(&self) -> Result<Seen, Trouble> {
        let syncs = self.names.iter().map(|name| sync(&name.path)).take(1);
        let requests: Vec<_> = syncs.chain(self.listing()).collect();
        let mut replies = self.call(&requests)?;
        replies.done()?;
        self.listed(&mut replies)
    }
}
