//! The tasks of a delay queue, apart from those that workers have: what is sent about them, and what the answers mean.
//!
//! A worker takes a task as a lock is acquired, and keeps and ends it as a lease: see `waiter` and `leases`.

use std::{borrow::Cow, time::Duration};

use ::redis::Value;

use super::lock_scripts::{LockScripts, millis, stored};
use super::script::{Needs, Route, SameConnection};
use super::{keys::Keys, leases::counter_after};
use crate::base::{
    Deadline, Due, IfExists, Key, NewTask, Owner, Result, TaskAnswer, TaskCall, TaskCounts,
    TaskRecord, Token,
};
use crate::engine::{Gone, Outcome, Release, Request};

/// More would be shown in one answer than a reply may have.
const MOST_LISTED: usize = 1_000_000;

/// Without a nonce.
const NO_NONCE: &str = "-";

impl LockScripts {
    pub(super) fn tasks(
        &self,
        key: &Key,
        call: TaskCall<'_>,
        deadline: &Deadline,
    ) -> Result<TaskAnswer> {
        let (script, arguments) = arguments(call);
        let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
        let keys = Keys::of_tasks(key);
        let mut sent = self.call(script, &keys.all(), &arguments);
        if !matches!(
            call,
            TaskCall::Get(_) | TaskCall::Counts | TaskCall::List(..)
        ) {
            sent = sent.for_replicas();
        }
        if !may_be_repeated(call) {
            sent = sent.once();
        }
        let answer = self.confirmed(key, Route::to(&keys.lock), &sent, deadline)?;
        answered(call, answer).ok_or_else(|| self.surprised(key))
    }
}

impl LockScripts {
    /// Ends a worker's task, and takes the next one for another owner.
    pub(super) fn end_and_take(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        next: &Owner,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (counter, ttl) = (counter_after(release.ending), millis(request.ttl));
        let arguments = [
            Some(counter.as_bytes()),
            Some(b"t".as_slice()),
            release.value,
            Some(next.as_str().as_bytes()),
            Some(ttl.as_bytes()),
        ];
        let needs = Needs {
            replicas: true,
            same_connection: SameConnection::Asks(next.as_str()),
            ..Needs::default()
        };
        let call = self.call_for(request, ["task/next"; 2], needs, &arguments);
        let answer = self.send(request, &call, deadline).map_err(|e| e.error)?;
        let outcome = exchanged(answer.value).ok_or_else(|| self.surprised(request.key()))?;
        if let Some(shortfall) = answer.shortfall.filter(|_| outcome.is_done()) {
            return Err(self.unconfirmed(request.key(), shortfall));
        }
        // The first copy may have ended it, and taken what only its answer tells.
        let is_unclear = answer.repeated && (!outcome.is_done() || self.asks_replicas());
        Ok(match is_unclear {
            true => Outcome::Gone(Gone::Unclear),
            false => outcome,
        })
    }
}

/// `None` of what the script doesn't answer.
fn exchanged(answer: Value) -> Option<Outcome> {
    let Value::Array(mut parts) = answer else {
        return None;
    };
    Some(match &*parts {
        [Value::Int(1)] => Outcome::DONE,
        [Value::Int(2)] => Outcome::NOT_OWNER,
        [Value::Int(1), Value::Int(token), Value::BulkString(_)] => {
            let token = Token::from_number((*token).try_into().ok()?);
            Some((token, Some(stored(parts.pop()?)?))).into()
        }
        _ => return None,
    })
}

/// A second copy of another call would find what the first one left.
fn may_be_repeated(call: TaskCall<'_>) -> bool {
    match call {
        TaskCall::Insert { nonce, .. } => nonce.is_some(),
        TaskCall::Remove(_) | TaskCall::Kick(_) => false,
        TaskCall::Reset(..) | TaskCall::Get(_) | TaskCall::Counts | TaskCall::List(..) => true,
    }
}

type Arguments<'a> = Vec<Cow<'a, [u8]>>;

fn arguments(call: TaskCall<'_>) -> (&'static str, Arguments<'_>) {
    let text = |text: &'static str| text.as_bytes().into();
    match call {
        TaskCall::Insert { tasks, nonce } => {
            let nonce = nonce.unwrap_or(NO_NONCE).as_bytes().into();
            let tasks = tasks.iter().flat_map(of_task);
            ("task/insert", std::iter::once(nonce).chain(tasks).collect())
        }
        TaskCall::Reset(id, due) => (
            "task/change",
            vec![text("reset"), id.as_bytes().into(), of_due(due)],
        ),
        TaskCall::Remove(id) => ("task/change", vec![text("remove"), id.as_bytes().into()]),
        TaskCall::Kick(id) => ("task/change", vec![text("kick"), id.as_bytes().into()]),
        TaskCall::Get(id) => ("task/look", vec![text("get"), id.as_bytes().into()]),
        TaskCall::Counts => ("task/look", vec![text("counts")]),
        TaskCall::List(state, most) => {
            let most = most.min(MOST_LISTED).to_string().into_bytes().into();
            ("task/look", vec![text(state.mark()), most])
        }
    }
}

fn of_task<'a>(task: &NewTask<'a>) -> Arguments<'a> {
    let if_exists: &[u8] = match task.if_exists {
        IfExists::Keep => b"k",
        IfExists::Reset => b"r",
        IfExists::Replace => b"p",
    };
    let millis = |duration: Duration| duration.as_millis().to_string().into_bytes().into();
    let policy = task.policy;
    vec![
        task.id.as_bytes().into(),
        if_exists.into(),
        of_due(task.due),
        policy.tries.to_string().into_bytes().into(),
        millis(policy.base),
        millis(policy.cap),
        millis(policy.remember),
        task.payload.into(),
    ]
}

fn of_due<'a>(due: Due) -> Cow<'a, [u8]> {
    let text = match due {
        Due::After(wait) => format!("+{}", wait.as_micros()),
        Due::At(since_1970) => format!("@{}", since_1970.as_micros()),
    };
    text.into_bytes().into()
}

/// `None` of what no script answers.
fn answered(call: TaskCall<'_>, answer: Value) -> Option<TaskAnswer> {
    Some(match (call, answer) {
        (TaskCall::Insert { tasks, .. }, Value::BulkString(changed))
            if changed.len() == tasks.len() =>
        {
            TaskAnswer::Changed(changed.iter().map(|one| *one == b'1').collect())
        }
        (TaskCall::Reset(..) | TaskCall::Remove(_) | TaskCall::Kick(_), Value::Int(changed)) => {
            TaskAnswer::Changed(vec![changed == 1])
        }
        (TaskCall::Counts, Value::Array(counts)) => {
            let count = |value: &Value| match value {
                Value::Int(count) => u64::try_from(*count).ok(),
                _ => None,
            };
            let counts: Vec<_> = counts.iter().map(count).collect::<Option<_>>()?;
            let [delayed, ready, running, buried] = counts.try_into().ok()?;
            TaskAnswer::Counts(TaskCounts {
                delayed,
                ready,
                running,
                buried,
            })
        }
        (TaskCall::Get(_) | TaskCall::List(..), Value::Array(tasks)) => {
            let record = |value: &Value| match value {
                Value::BulkString(bytes) => TaskRecord::parse(bytes),
                _ => None,
            };
            TaskAnswer::Tasks(tasks.iter().map(record).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
