//! What the callers of a session and its thread share, under one lock.

use std::collections::VecDeque;
use std::sync::Arc;

use super::answer::{Expected, Header};
use super::answers::AnswerSlot;
use super::failure::Failure;
use super::jute::{Decoder, Malformed};
use super::ops::{Change, Code, Op, Refused, Reply};
use super::proof::Proof;
use super::request::{Acl, Hello, PASSWORD, frame, number};
use super::watcher::Listening;
use super::watches::{Watched, Watches};
use crate::base::clock::BootInstant;
use crate::engine::net::socket::Closer;

pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) session: i64,
    password: [u8; PASSWORD],
    /// The last transaction that a server has told of.
    last_zxid: i64,
    last_xid: i32,
    /// What was sent on this connection and isn't answered, in the order of the answers.
    pub(super) pending: VecDeque<Pending>,
    /// Whether a beat is among these.
    pub(super) is_beating: bool,
    /// When something came from the server last.
    pub(super) heard: BootInstant,
    pub(super) watches: Watches,
    pub(super) proof: Proof,
    /// Who is to be told when the session expires.
    pub(super) tells: Vec<Tell>,
    /// What is called with each beat.
    pub(super) on_beat: Vec<Tell>,
}

/// Called once, without any lock.
pub(super) type Tell = Arc<dyn Fn() + Send + Sync>;

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
    purpose: Purpose,
}

/// A request that is to be sent.
#[derive(Debug)]
pub(super) struct Item {
    frame: Vec<u8>,
    purpose: Purpose,
}

/// What is done with an answer.
#[derive(Debug)]
enum Purpose {
    /// It proves that the session lives.
    Beat,
    /// It proves that the leader leads.
    Confirmation,
    Request {
        expected: Expected,
        is_sync: bool,
        watch: Option<Watch>,
        slot: Arc<AnswerSlot>,
    },
}

/// What a request watches, if its answer allows it.
#[derive(Debug)]
struct Watch {
    path: String,
    watched: Watched,
    /// Also a node that isn't there.
    absent: bool,
    listening: Listening,
}

impl Item {
    pub(super) fn new(op: &Op, acl: Acl, slot: &Arc<AnswerSlot>) -> Self {
        Item {
            frame: frame(op, acl),
            purpose: Purpose::Request {
                expected: Expected::of(op),
                is_sync: matches!(op, Op::Sync { .. }),
                watch: Watch::of(op),
                slot: slot.clone(),
            },
        }
    }

    /// Any path does: it isn't looked at.
    pub(super) fn beat() -> Self {
        let path = "/".to_owned();
        Item {
            frame: frame(&Op::Sync { path }, Acl::World),
            purpose: Purpose::Beat,
        }
    }

    /// A transaction that changes nothing. It needs a majority, also where it is refused.
    pub(super) fn confirmation(path: String) -> Self {
        let check = Change::Check {
            path,
            version: None,
        };
        Item {
            frame: frame(&Op::Multi(vec![check]), Acl::World),
            purpose: Purpose::Confirmation,
        }
    }

    /// Ends the session.
    pub(super) fn close(slot: &Arc<AnswerSlot>) -> Self {
        Item {
            frame: super::request::close(0),
            purpose: Purpose::Request {
                expected: Expected::Done,
                is_sync: false,
                watch: None,
                slot: slot.clone(),
            },
        }
    }

    /// Without the length that stands in front.
    pub(super) fn bytes(&self) -> usize {
        self.frame.len().saturating_sub(4)
    }
}

impl Watch {
    fn of(op: &Op) -> Option<Self> {
        let (path, watched, absent, watcher) = match op {
            Op::Exists { path, watch } => (path, Watched::Data, true, watch),
            Op::Get { path, watch } => (path, Watched::Data, false, watch),
            Op::Children { path, watch } => (path, Watched::Children, false, watch),
            _ => return None,
        };
        let listening = watcher.as_ref()?.listening();
        Some(Watch {
            path: path.clone(),
            watched,
            absent,
            listening,
        })
    }
}

impl Pending {
    /// Nothing will answer it.
    pub(super) fn fail(&self, failure: Failure) {
        if let Purpose::Request { slot, watch, .. } = &self.purpose {
            slot.fail(failure);
            if let Some(watch) = watch {
                watch.listening.tell(super::watcher::Told::ConnectionLost);
            }
        }
    }
}

impl State {
    /// Of a session that is new.
    pub(super) fn new(hello: &Hello, phase: Phase, proof: Proof, heard: BootInstant) -> Self {
        State {
            phase,
            session: hello.session,
            password: hello.password,
            last_zxid: 0,
            last_xid: 0,
            pending: VecDeque::new(),
            is_beating: false,
            heard,
            watches: Watches::default(),
            proof,
            tells: Vec::new(),
            on_beat: Vec::new(),
        }
    }

    /// With what the next connection begins.
    pub(super) fn hello(&self, timeout: i32) -> Hello {
        Hello {
            last_zxid: self.last_zxid,
            timeout,
            session: self.session,
            password: self.password,
        }
    }

    /// Numbers what is sent next, and returns its bytes. Whoever sends them holds the lock of the connection's writer, so that
    /// they are sent in this order.
    pub(super) fn enlist(&mut self, items: Vec<Item>, sent: BootInstant) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(items.iter().map(|item| item.frame.len()).sum());
        for Item { mut frame, purpose } in items {
            self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
            let xid = self.last_xid;
            number(&mut frame, xid);
            bytes.extend(frame);
            self.is_beating |= matches!(purpose, Purpose::Beat);
            self.pending.push_back(Pending { xid, sent, purpose });
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
        self.last_zxid = self.last_zxid.max(header.zxid);
        let is_done = header.error == 0;
        let reply = match &first.purpose {
            Purpose::Request { expected, .. } if is_done => {
                Some(expected.decode(record, header.zxid)?)
            }
            Purpose::Confirmation if is_done => Some(CONFIRMED.decode(record, header.zxid)?),
            _ => None,
        };
        let first = self.pending.pop_front().ok_or(TO_NOTHING)?;
        if is_done && first.is_sync() {
            self.proof.synced(first.sent, now);
        }
        match first.purpose {
            Purpose::Beat => self.is_beating = false,
            Purpose::Confirmation => {
                if reply.is_some_and(|reply| is_confirmed(&reply)) {
                    self.proof.committed();
                }
            }
            Purpose::Request { slot, watch, .. } => {
                let code = Code::from(header.error);
                if let Some(watch) = watch {
                    self.watch(watch, is_done, code);
                }
                slot.answer(reply.ok_or(code));
            }
        }
        Ok(())
    }

    fn watch(&mut self, watch: Watch, is_done: bool, code: Code) {
        if is_done || (watch.absent && code == Code::NoNode) {
            let Watch {
                path,
                watched,
                listening,
                ..
            } = watch;
            self.watches.add(path, watched, listening);
        }
    }
}

/// What a confirmation is answered.
const CONFIRMED: Expected = Expected::Multi { changes: 1 };

/// Whether a transaction was carried out. One that is refused is a transaction, too, but for that of a session that has ended.
fn is_confirmed(reply: &Reply) -> bool {
    match reply {
        Reply::Multi(Ok(_), _) => true,
        Reply::Multi(Err(Refused { code, .. }), _) => {
            matches!(code, Code::NoNode | Code::NoAuth)
        }
        _ => false,
    }
}

impl Pending {
    fn is_sync(&self) -> bool {
        match self.purpose {
            Purpose::Beat => true,
            Purpose::Confirmation => false,
            Purpose::Request { is_sync, .. } => is_sync,
        }
    }
}

#[cfg(test)]
mod tests;
