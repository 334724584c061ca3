//! Questions to a server, which may refuse them.

use std::sync::Arc;

use ::redis::{Cmd, Value};

use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::redis::commands::Commands;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Manner, Server};

/// Asks the server one thing at a time.
pub(super) struct Probe<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) commands: &'a Commands,
    pub(super) deadline: &'a Deadline,
}

/// What the server made of a question.
pub(super) enum Asked {
    Answer(Value),
    /// This user may not ask it.
    Denied,
    /// It fails for another reason, such as a command that a managed server doesn't have.
    Failed,
}

impl Probe<'_> {
    /// # Errors
    ///
    /// When there is no answer.
    pub(super) fn ask(&self, command: &Cmd) -> Result<Asked> {
        match self.server.call(command, Manner::Plain, self.deadline) {
            Ok(answer) => Ok(Asked::Answer(answer.value)),
            Err(unanswered) => self.without_answer(unanswered.error),
        }
    }

    pub(super) fn without_answer(&self, failure: Failure) -> Result<Asked> {
        match failure {
            Failure::Denied(_) => Ok(Asked::Denied),
            Failure::Conflict(_) | Failure::Other(_) => Ok(Asked::Failed),
            failure => Err(self.commands.error(None, failure)),
        }
    }

    /// A text of the server, if it shows it.
    pub(super) fn text(&self, command: &Cmd) -> Result<Option<String>> {
        Ok(match self.ask(command)? {
            Asked::Answer(answer) => text(&answer).map(str::to_owned),
            Asked::Denied | Asked::Failed => None,
        })
    }

    /// A setting of the server, if it shows it.
    pub(super) fn setting(&self, name: &str) -> Result<Option<String>> {
        let mut command = ::redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        Ok(match self.ask(&command)? {
            Asked::Answer(Value::Array(pair)) => pair.get(1).and_then(text).map(str::to_owned),
            _ => None,
        })
    }
}

pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
