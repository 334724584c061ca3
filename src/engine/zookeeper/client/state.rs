//! What the callers of a session and its thread share, under one lock.

use std::collections::VecDeque;
use std::sync::Arc;

use super::failure::{Code, Failure};
use super::jute::{Decoder, Malformed};
use super::ops::{Answer, Change, Op, Refused, Reply};
use super::proof::Proof;
use super::watch::{AnswerSlot, Listening, Told, Watched, Watches};
use super::wire::{Acl, Expected, Handshake, Header, frame, number};
use crate::base::clock::BootInstant;
use crate::engine::net::socket::Closer;

pub(super) struct State {
    pub(super) phase: Phase,
    /// With what the next connection begins.
    pub(super) handshake: Handshake,
    last_xid: i32,
    /// What was sent on this connection and isn't answered, in the order of the answers.
    pub(super) pending: VecDeque<Pending>,
    /// Whether a beat is among these.
    pub(super) is_beating: bool,
    /// When something came from the server last.
    pub(super) heard: BootInstant,
    pub(super) watches: Watches,
    pub(super) proof: Proof,
    /// Called without any lock.
    pub(super) listener: Option<Listener>,
}

pub(super) type Listener = Arc<dyn Fn(News) + Send + Sync>;

/// What the thread of a session tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// About once a tick, while there is a connection.
    Beat,
    /// Once: the session has ended, and wasn't closed.
    Expired,
}

/// The table in the module's comment says how it changes.
#[derive(Debug)]
pub(super) enum Phase {
    Connected(Closer),
    /// Why, for those who wait for a connection.
    Disconnected(String),
    Ended {
        expired: bool,
    },
}

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Pending {
    xid: i32,
    /// Read before it was sent.
    pub(super) sent: BootInstant,
    request: Request,
}

/// A request that is to be sent.
#[derive(Debug)]
pub(super) struct Item {
    frame: Vec<u8>,
    request: Request,
}

/// What is done with an answer.
#[derive(Debug)]
struct Request {
    purpose: Purpose,
    expected: Expected,
    is_sync: bool,
    /// What it watches, if its answer allows it.
    watch: Option<(String, Watched, Listening)>,
}

#[derive(Debug)]
enum Purpose {
    /// It proves that the session lives.
    Beat,
    /// It proves that the leader leads.
    Confirmation,
    /// Somebody has asked it.
    Call(Arc<AnswerSlot<Answer>>),
}

impl Item {
    pub(super) fn new(op: &Op, acl: Acl, slot: &Arc<AnswerSlot<Answer>>) -> Self {
        Item::of(op, acl, Purpose::Call(slot.clone()))
    }

    /// Any path does: it isn't looked at.
    pub(super) fn beat() -> Self {
        Item::of(&Op::sync("/"), Acl::World, Purpose::Beat)
    }

    /// A transaction that changes nothing. It needs a majority, also where it is refused.
    pub(super) fn confirmation(path: String) -> Self {
        let check = Op::Multi(vec![Change::check(path)]);
        Item::of(&check, Acl::World, Purpose::Confirmation)
    }

    fn of(op: &Op, acl: Acl, purpose: Purpose) -> Self {
        let watch = match op {
            Op::Get { path, watch } => Some((path, Watched::Data, watch)),
            Op::Children { path, watch } => Some((path, Watched::Children, watch)),
            _ => None,
        };
        let watch = watch.and_then(|(path, watched, watcher)| {
            let listening = watcher.as_ref()?.listening();
            Some((path.clone(), watched, listening))
        });
        Item {
            frame: frame(op, acl),
            request: Request {
                purpose,
                expected: Expected::of(op),
                is_sync: matches!(op, Op::Sync { .. }),
                watch,
            },
        }
    }

    /// Without the length that stands in front.
    pub(super) fn bytes(&self) -> usize {
        self.frame.len().saturating_sub(4)
    }
}

impl Pending {
    /// Nothing will answer it.
    pub(super) fn fail(&self, failure: Failure) {
        if let Purpose::Call(slot) = &self.request.purpose {
            slot.fail(failure);
        }
        if let Some((.., listening)) = &self.request.watch {
            listening.tell(Told::ConnectionLost);
        }
    }
}

impl State {
    /// Of a session that is new.
    pub(super) fn new(
        handshake: Handshake,
        phase: Phase,
        proof: Proof,
        heard: BootInstant,
    ) -> Self {
        State {
            phase,
            handshake,
            last_xid: 0,
            pending: VecDeque::new(),
            is_beating: false,
            heard,
            watches: Watches::default(),
            proof,
            listener: None,
        }
    }

    /// Numbers what is sent next, and returns its bytes. Whoever sends them holds the lock of the connection's writer, so that
    /// they are sent in this order.
    pub(super) fn enlist(&mut self, items: Vec<Item>, sent: BootInstant) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(items.iter().map(|item| item.frame.len()).sum());
        for Item { mut frame, request } in items {
            self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
            let xid = self.last_xid;
            number(&mut frame, xid);
            bytes.extend(frame);
            self.is_beating |= matches!(request.purpose, Purpose::Beat);
            self.pending.push_back(Pending { xid, sent, request });
        }
        bytes
    }

    /// Takes an answer, which is to the first of what is pending. After an error that stays pending.
    pub(super) fn answer(
        &mut self,
        header: Header,
        record: &mut Decoder<'_>,
        now: BootInstant,
    ) -> Result<(), Malformed> {
        const TO_NOTHING: Malformed = Malformed("an answer to nothing that was asked");
        let first = self.pending.front().filter(|first| first.xid == header.xid);
        let first = first.ok_or(TO_NOTHING)?;
        self.handshake.last_zxid = self.handshake.last_zxid.max(header.zxid);
        let answer = match header.error {
            0 => Ok(first.request.expected.decode(record, header.zxid)?),
            error => Err(Code(error)),
        };
        let Pending { sent, request, .. } = self.pending.pop_front().ok_or(TO_NOTHING)?;
        if answer.is_ok() {
            if request.is_sync {
                self.proof.synced(sent, now);
            }
            if let Some((path, watched, listening)) = request.watch {
                self.watches.add(path, watched, listening);
            }
        }
        match request.purpose {
            Purpose::Beat => self.is_beating = false,
            Purpose::Confirmation => {
                if answer.is_ok_and(|reply| is_confirmed(&reply)) {
                    self.proof.committed();
                }
            }
            Purpose::Call(slot) => slot.answer(answer),
        }
        Ok(())
    }
}

/// Whether a transaction was carried out. One that is refused is a transaction, too, but for that of a session that has ended.
fn is_confirmed(reply: &Reply) -> bool {
    match reply {
        Reply::Multi { done: Ok(_), .. } => true,
        Reply::Multi {
            done: Err(Refused { code, .. }),
            ..
        } => matches!(*code, Code::NO_NODE | Code::NO_AUTH),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
