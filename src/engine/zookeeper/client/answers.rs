//! Where a caller waits for the answers to what it sent together.

use std::sync::Arc;

use super::failure::Failure;
use super::ops::{Code, Reply};
use crate::base::clock::Deadline;
use crate::base::limits::LONGEST_SLEEP;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::time;
use crate::engine::Unanswered;

/// What each of several requests is answered, in their order.
pub(in crate::engine::zookeeper) type Answers = Vec<Result<Reply, Code>>;

/// Where a caller waits for the answers to what it sent together. They come in order.
#[derive(Debug)]
pub(super) struct AnswerSlot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    answers: Answers,
    expected: usize,
    /// Why the others won't come.
    failure: Option<Failure>,
    /// The caller doesn't wait any more.
    is_left: bool,
}

impl AnswerSlot {
    pub(super) fn new(expected: usize) -> Self {
        AnswerSlot {
            state: Mutex::new(State {
                answers: Vec::with_capacity(expected),
                expected,
                failure: None,
                is_left: false,
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn answer(&self, answer: Result<Reply, Code>) {
        let mut state = self.state.lock();
        if !state.is_left {
            state.answers.push(answer);
        }
        if state.answers.len() == state.expected {
            self.changed.notify_one();
        }
    }

    /// The answers that haven't come never will.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.state.lock();
        state.failure.get_or_insert(failure);
        self.changed.notify_one();
    }

    /// Blocks until all answers are there. An answer that comes at the deadline counts.
    pub(super) fn wait(
        self: &Arc<Self>,
        deadline: &Deadline,
    ) -> Result<Answers, Unanswered<Failure>> {
        let slot = self.clone();
        let wake = move || {
            // Under the lock: a caller that has looked, and doesn't sleep yet, would miss it.
            let _state = slot.state.lock();
            slot.changed.notify_one();
        };
        let cancel = deadline.cancel();
        let _registered = cancel.map(|cancel| cancel.on_set(Arc::new(wake)));
        let mut state = self.state.lock();
        loop {
            if state.answers.len() == state.expected {
                return Ok(std::mem::take(&mut state.answers));
            }
            if let Some(failure) = state.failure.take() {
                return Err(Unanswered::sent(failure));
            }
            if deadline.is_over() {
                state.is_left = true;
                return Err(Unanswered::sent(Failure::TimedOut));
            }
            let at = time::now() + deadline.remaining().min(LONGEST_SLEEP);
            state = self.changed.wait_until(state, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::Cancel;
    use std::thread;
    use std::time::Duration;

    fn slot(expected: usize) -> Arc<AnswerSlot> {
        Arc::new(AnswerSlot::new(expected))
    }

    fn in_time() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn caller_waits_for_all_answers() {
        let slot = slot(2);
        let answers = thread::scope(|scope| {
            let waits = scope.spawn(|| slot.wait(&in_time()));
            slot.answer(Ok(Reply::Done));
            slot.answer(Err(Code::NoNode));
            waits.join().unwrap()
        });
        assert_eq!(answers.unwrap(), [Ok(Reply::Done), Err(Code::NoNode)]);
    }

    #[test]
    fn answers_that_are_there_at_the_deadline_count() {
        let slot = slot(1);
        slot.answer(Ok(Reply::Done));
        slot.fail(Failure::Ended);
        assert!(slot.wait(&Deadline::after(Duration::ZERO)).is_ok());
    }

    #[test]
    fn late_answers_are_nobodys() {
        let slot = slot(2);
        slot.answer(Ok(Reply::Done));
        let unanswered = slot.wait(&Deadline::after(Duration::ZERO)).unwrap_err();
        assert!(unanswered.sent);
        assert!(matches!(unanswered.error, Failure::TimedOut));
        slot.answer(Ok(Reply::Done));
        assert_eq!(slot.state.lock().answers.len(), 1);
    }

    #[test]
    fn failure_is_told_when_an_answer_is_missing() {
        let slot = slot(2);
        slot.answer(Ok(Reply::Done));
        slot.fail(Failure::Ended);
        slot.fail(Failure::TimedOut);
        let unanswered = slot.wait(&in_time()).unwrap_err();
        assert!(unanswered.sent && matches!(unanswered.error, Failure::Ended));
    }

    #[test]
    fn cancel_ends_the_wait() {
        let (slot, cancel) = (slot(1), Cancel::default());
        let deadline = Deadline::NEVER.or(&cancel);
        thread::scope(|scope| {
            let waits = scope.spawn(|| slot.wait(&deadline));
            cancel.set();
            assert!(waits.join().unwrap().is_err());
        });
    }
}
