//! Who asks for a lock, and what is answered.

use redis::{RedisResult, Value};

use super::TTL;

/// Who asks for the lock, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    owner: &'a str,
    ttl: u64,
    mode: &'a str,
    /// In how many milliseconds its heartbeat is overdue, and its inbox.
    waits: Option<(u64, &'a str)>,
    /// At which server, if another may follow it.
    hears_at: Option<&'a str>,
    pub(crate) valued: bool,
}

impl<'a> Ask<'a> {
    /// Takes the lock or leaves it.
    pub(crate) fn once(owner: &'a str) -> Self {
        Ask {
            owner,
            ttl: TTL,
            mode: "x",
            waits: None,
            hears_at: None,
            valued: false,
        }
    }

    /// Takes the lock or waits in line for `promise` milliseconds.
    pub(crate) fn waiting(owner: &'a str, promise: u64, inbox: &'a str) -> Self {
        Ask {
            waits: Some((promise, inbox)),
            ..Ask::once(owner)
        }
    }

    pub(crate) fn hearing_at(self, run_id: &'a str) -> Self {
        Ask {
            hears_at: Some(run_id),
            ..self
        }
    }

    pub(crate) fn with_ttl(self, ttl: u64) -> Self {
        Ask { ttl, ..self }
    }

    pub(crate) fn with_mode(self, mode: &'a str) -> Self {
        Ask { mode, ..self }
    }

    /// Asks for the value that the lock protects.
    pub(crate) fn with_value(self) -> Self {
        let valued = true;
        Ask { valued, ..self }
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            self.owner.to_owned(),
            self.ttl.to_string(),
            self.mode.to_owned(),
        ];
        if let Some((promise, inbox)) = self.waits {
            arguments.extend([promise.to_string(), inbox.to_owned()]);
            arguments.extend(self.hears_at.map(str::to_owned));
        }
        arguments
    }
}

/// 1 released, 0 not the owner's, 2 that or released before, 3 broken.
pub(crate) fn released(answer: &RedisResult<Value>) -> i64 {
    match answer {
        Ok(Value::Int(answer @ 0..=3)) => *answer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_one(answer: &Value) -> bool {
    match answer {
        Value::Int(1) => true,
        Value::Int(0) => false,
        other => panic!("{other:?}"),
    }
}
