//! What a sentinel says of the masters that it knows.

use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::redis::server::{Manner, Server};

/// What a sentinel knows of a master: each name is followed by what it names.
pub(super) struct State<'a>(&'a [Value]);

impl<'a> State<'a> {
    pub(super) fn of(answer: &'a Value) -> Option<Self> {
        match answer {
            Value::Array(parts) => Some(State(parts)),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.chunks_exact(2);
        text(&pairs.find(|pair| text(&pair[0]) == Some(name))?[1])
    }
}

/// The names of the masters that a sentinel knows, if it tells.
pub(super) fn masters(sentinel: &Arc<Server>) -> Vec<String> {
    let mut ask = ::redis::cmd("SENTINEL");
    ask.arg("MASTERS");
    let deadline = Deadline::after(sentinel.settings().connect_timeout);
    let answer = sentinel.call(&ask, Manner::Plain, &deadline);
    answer.map_or_else(|_| Vec::new(), |answer| names(&answer.value))
}

/// The names of masters in an answer to SENTINEL MASTERS.
pub(super) fn names(answer: &Value) -> Vec<String> {
    let Value::Array(masters) = answer else {
        return Vec::new();
    };
    let name = |master| Some(State::of(master)?.get("name")?.to_owned());
    masters.iter().filter_map(name).collect()
}

pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}
