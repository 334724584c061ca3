//! How an owner that has a name alone goes on as one that reads, at the same place in the line.

use super::change::{Changed, show};
use super::ops::look;
use super::shared::Commands;
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::token::Token;
use crate::engine::Request;
use crate::engine::etcd::client::txn::{Entry, Op};
use crate::engine::etcd::keys::Keys;
use crate::engine::etcd::owners::Own;
use crate::engine::etcd::place::Text;
use crate::engine::line::passed_on;

impl Commands {
    /// The caller counts the time of the lease from before this call: so it is proved anew.
    pub(in super::super) fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Token>> {
        let (Some(own), keys) = (self.owners.get(request.owner), self.keys(request.claim)) else {
            return Ok(None);
        };
        if !self.proves(request, &keys, &own, deadline)? {
            return Ok(None);
        }
        let token = self.next_token(request.key().name(), last_used)?;
        let Some(text) = Text::parse(&own.text) else {
            return Ok(None);
        };
        let text = Text {
            mode: Mode::Shared,
            token: Some(token.number),
            ..text
        };
        let text = text.to_bytes();
        let then = downgrade_ops(&keys[0], &own, &text, value);
        let (changed, _) = self.change(request, (&keys, &own), then, deadline)?;
        let found = match changed {
            Changed::Done => {
                self.note_downgraded(request, text);
                return Ok(Some(token));
            }
            Changed::Other(found) => found.into_iter().next(),
        };
        Ok(self.downgraded_before(request, found.and_then(|found| found.own)))
    }

    /// It was carried out before, without an answer.
    fn downgraded_before(&self, request: Request<'_>, found: Option<Entry>) -> Option<Token> {
        let found = found?;
        let text = Text::parse(&found.value)?;
        let token = text.token.filter(|_| text.mode == Mode::Shared)?;
        self.note_downgraded(request, found.value);
        Some(Token::from_number(token))
    }

    /// The owner reads, and what told that it was let in alone is gone.
    fn note_downgraded(&self, request: Request<'_>, text: Vec<u8>) {
        let mut had_entered = false;
        self.owners.change(request.owner, |own| {
            had_entered = own.has_entered;
            (own.text, own.has_entered) = (text, false);
        });
        if had_entered {
            self.leases.forgets();
        }
    }

    /// Whether the owner's lease goes on; from now on at least.
    fn proves(
        &self,
        request: Request<'_>,
        keys: &[Keys],
        own: &Own,
        deadline: &Deadline,
    ) -> Result<bool> {
        let name = request.key().name();
        let look = look(show(keys, own, request.owner));
        loop {
            let error = match self.prove(request, own, &look, deadline) {
                Ok(kept) => return Ok(kept.since.is_some()),
                Err(failure) => self.error(Some(name), failure),
            };
            deadline.sleep(super::shared::PAUSE);
            if !error.may_pass() || deadline.is_over() {
                return Err(error);
            }
        }
    }

    /// The token of a lease that goes on for another holder.
    pub(super) fn next_token(&self, name: &str, last_used: u64) -> Result<Token> {
        passed_on(last_used).ok_or_else(|| {
            let cause = "it was passed on too often: release it, and lock it anew";
            Error::engine(
                Some(name),
                self.client.place(),
                "how often it is passed on",
                cause,
            )
        })
    }
}

fn downgrade_ops(keys: &Keys, own: &Own, text: &[u8], value: Option<&[u8]>) -> Vec<Op> {
    let place = Op::Put {
        key: keys.place(&own.id),
        value: text.to_vec(),
        lease: Some(own.lease.id),
    };
    let mut ops = vec![place, Op::Delete(keys.entered())];
    if let Some(value) = value {
        ops.push(Op::Put {
            key: keys.value(),
            value: value.to_vec(),
            lease: None,
        });
    }
    ops
}
