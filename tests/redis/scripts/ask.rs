//! Who asks for a lock, and what is answered.

use redis::{FromRedisValue, RedisResult, Value};

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

/// An owner as the library has them.
pub(crate) fn owner(number: u8) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000/host/12/{number}")
}

/// Whether a release says that it has released the lock, and not that the owner hadn't it, or may not have had it.
pub(crate) fn is_released(answer: &RedisResult<Value>) -> bool {
    match answer {
        Ok(Value::Int(answer @ 0..=3)) => *answer == 1,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn read<T: FromRedisValue>(answer: Value) -> T {
    T::from_redis_value(answer).expect("what the script answers")
}
