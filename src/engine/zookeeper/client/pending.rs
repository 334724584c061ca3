//! Requests on their way: what is sent, and what is done with its answer.

use std::sync::Arc;

use super::failure::Failure;
use super::ops::{Answer, Change, Op};
use super::watch::{AnswerSlot, Listening, WatchEvent, Watched};
use super::wire::{Acl, Expected, frame};
use crate::base::BootInstant;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) xid: i32,
    /// Read before it was sent.
    pub(super) sent: BootInstant,
    pub(super) request: Request,
}

/// A request that is to be sent.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) frame: Vec<u8>,
    pub(super) request: Request,
}

/// What is done with an answer.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) purpose: Purpose,
    pub(super) expected: Expected,
    pub(super) is_sync: bool,
    /// Whether it watches also a node that isn't there.
    pub(super) watches_absent: bool,
    /// What it watches, if its answer allows it.
    pub(super) watch: Option<(String, Watched, Listening)>,
}

/// What it was sent for.
#[derive(Debug)]
pub(super) enum Purpose {
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
            Op::Exists { path, watch } | Op::Get { path, watch } => {
                Some((path, Watched::Data, watch))
            }
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
                watches_absent: matches!(op, Op::Exists { .. }),
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
            listening.tell(WatchEvent::ConnectionLost);
        }
    }
}
