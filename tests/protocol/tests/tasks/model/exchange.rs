//! A worker that ends its task and takes the next one by the same command.

use super::super::tasks::{Asked, Waits};
use super::{Fate, Question, State, TTL, TaskEnd, World, owner};

impl World {
    /// The next task is that of another owner. What it may have is given back if the answer is lost.
    pub(super) fn exchange(&mut self, at: usize, fate: Fate) {
        let State::Working {
            id,
            token,
            valid_until,
        } = self.workers[at].state.clone()
        else {
            return;
        };
        let ends = (self.current(at), token, id);
        self.workers[at].owners += 1;
        let next = owner(at, self.workers[at].owners);
        let question = Question {
            owner: next,
            ends: Some(ends),
        };
        self.losses += u8::from(fate != Fate::Heard);
        self.workers[at].state = State::Leaving;
        if fate == Fate::Late {
            self.late.insert(question);
        } else if fate != Fate::RequestLost {
            let (is_ours, asked) = self.server_exchanges(&question);
            if !is_ours && self.now < valid_until {
                self.broken = Some("a valid lease is refused");
            }
            if fate == Fate::Heard {
                self.workers[at].state = self.exchanged(asked);
            }
        }
    }

    fn exchanged(&mut self, asked: Option<Asked>) -> State {
        let Some(Asked::Task { token, record }) = asked else {
            return State::Idle;
        };
        self.exchanged = true;
        State::Working {
            id: record.id.to_string(),
            token: token.number,
            valid_until: self.now + TTL,
        }
    }

    /// The server's part. A copy that comes late finds nothing that it could end.
    pub(super) fn server_exchanges(&mut self, question: &Question) -> (bool, Option<Asked>) {
        let Some((owner, token, id)) = &question.ends else {
            return (
                false,
                Some(self.server_asks(&question.owner, Waits::Until(None))),
            );
        };
        let end = Some(TaskEnd::Done);
        if !self.server.end(owner, end, Some(*token), self.now) {
            return (false, None);
        }
        if !self.done.insert(id.clone()) {
            self.broken = Some("a task is done twice");
        }
        (true, Some(self.server_asks(&question.owner, Waits::Not)))
    }
}
