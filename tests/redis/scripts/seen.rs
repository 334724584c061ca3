//! What the scripts leave in the server, and what they tell.

use std::collections::BTreeMap;

use redis::{Connection, FromRedisValue, Value, cmd};

use super::bench::{Bench, END, KEYS};
use support::RedisServer;
use support::scripts::text;

/// All that the server knows of the lock, but for its value.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What the lock says.
    pub(crate) holder: Option<String>,
    pub(crate) counter: Option<u64>,
    /// Whether the counter names leases that were broken.
    pub(crate) has_broken: bool,
    pub(crate) line: Vec<String>,
    pub(crate) waiters: BTreeMap<String, String>,
    readers: Vec<String>,
    /// Who shares the lock, when its lease ends, and its token.
    pub(crate) shares: BTreeMap<String, i64>,
    /// Of all keys, in the order of the scripts.
    pub(crate) pttls: [i64; KEYS + 1],
}

/// A subscriber: what it hears, in order, and nothing else.
pub(crate) struct Ears {
    connection: Connection,
    publish: &'static str,
}

impl Seen {
    pub(crate) fn of(keys: &[String; KEYS + 1], connection: &mut Connection) -> Self {
        let [lock, fence, queue, waiters, readers, holders, _] = keys;
        let mut pipe = redis::pipe();
        pipe.atomic().get(lock).get(fence).lrange(queue, 0, -1);
        pipe.hgetall(waiters).lrange(readers, 0, -1);
        pipe.zrange_withscores(holders, 0, -1);
        keys.iter().for_each(|key| {
            pipe.pttl(key);
        });
        let answers: Vec<Value> = pipe.query(connection).expect("look");
        let answers = &mut answers.into_iter();
        let holder = next(answers);
        let counter: Option<String> = next(answers);
        Seen {
            holder,
            counter: counter.as_deref().map(number_of),
            has_broken: counter.is_some_and(|counter| counter.contains('b')),
            line: next(answers),
            waiters: next(answers),
            readers: next(answers),
            shares: next(answers),
            pttls: [(); KEYS + 1].map(|()| next(answers)),
        }
    }

    /// Who waits exclusively, or for permits, first come first; and all that wait have their details in another key.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<&str> {
        let mut waiting: Vec<_> = self.line.iter().chain(&self.readers).collect();
        waiting.sort_unstable();
        assert!(waiting.into_iter().eq(self.waiters.keys()), "{self:?}");
        self.line.iter().map(String::as_str).collect()
    }
}

/// The number that a counter holds; behind it stands which lines there may be, and who was broken.
fn number_of(counter: &str) -> u64 {
    let digits = counter.split(|c: char| !c.is_ascii_digit()).next();
    digits.expect("its start").parse().expect("digits")
}

fn next<T: FromRedisValue>(answers: &mut impl Iterator<Item = Value>) -> T {
    let answer = answers.next().expect("an answer to each");
    T::from_redis_value(answer).expect("what such a key holds")
}

impl Ears {
    pub(crate) fn on(server: &RedisServer, channels: &[&str]) -> Self {
        Ears::by(["SUBSCRIBE", "PUBLISH"], server, channels)
    }

    /// On sharded channels.
    pub(crate) fn sharded(server: &RedisServer, channels: &[&str]) -> Self {
        Ears::by(["SSUBSCRIBE", "SPUBLISH"], server, channels)
    }

    fn by(
        [subscribe, publish]: [&'static str; 2],
        server: &RedisServer,
        channels: &[&str],
    ) -> Self {
        let connection = server.connection();
        let mut ears = Ears {
            connection,
            publish,
        };
        for channel in [&[END], channels].concat() {
            let subscribe = cmd(subscribe).arg(channel).get_packed_command();
            let sent = ears.connection.send_packed_command(&subscribe);
            sent.expect("subscribe");
            ears.next();
        }
        ears
    }

    fn next(&mut self) -> Vec<String> {
        match self.connection.recv_response().expect("a message") {
            Value::Array(parts) => {
                let words = parts.iter().filter(|part| !matches!(part, Value::Int(_)));
                words.map(|part| text(part).to_owned()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// What was published since, by channel.
    pub(crate) fn heard(&mut self, bench: &mut Bench) -> Vec<(String, String)> {
        bench.query::<()>(&[self.publish, END, ""]);
        let mut heard = Vec::new();
        loop {
            let [kind, channel, payload] = self.next().try_into().expect("a message");
            assert!(kind.ends_with("message"), "{kind}");
            if channel == END {
                return heard;
            }
            heard.push((channel, payload));
        }
    }
}

/// Longer than what a key has by then: the end of a full ttl.
pub(crate) fn is_full(pttl: i64, full: i64) -> bool {
    (full - 10_000..=full).contains(&pttl)
}
