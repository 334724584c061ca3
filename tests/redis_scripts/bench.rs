//! One lock of a server, seen through the scripts.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis::{Connection, FromRedisValue, PubSub, RedisResult, Script, Value, cmd};

use super::support::{RedisServer, wait_until};
use super::{COUNTER_TTL, HAND_OVERS, PATIENCE, TTL};

const ACQUIRE: &str = include_str!("../../lua/lock_acquire.lua");
const RENEW: &str = include_str!("../../lua/lock_renew.lua");
const RELEASE: &str = include_str!("../../lua/lock_release.lua");
const SHARED: [(&str, &str); 2] = [
    (
        "-- include token.lua\n",
        include_str!("../../lua/token.lua"),
    ),
    ("-- include line.lua\n", include_str!("../../lua/line.lua")),
];
/// The channel on which [`Ears`] hear that there is nothing more to hear.
const END: &str = "end";

pub(crate) struct Bench {
    connection: Connection,
    scripts: [Script; 3],
    pub(crate) lock: String,
    pub(crate) fence: String,
    pub(crate) queue: String,
    pub(crate) waiters: String,
}

/// Who asks for the lock, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    owner: &'a str,
    ttl: u64,
    /// In how many milliseconds its heartbeat is overdue, and its inbox.
    waits: Option<(u64, &'a str)>,
}

/// What `lock_acquire.lua` answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Acquired {
    Token(u64),
    Taken { remaining: i64, counter: u64 },
}

/// All that the server knows of the lock, and its clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) holder: Option<String>,
    pub(crate) counter: Option<u64>,
    pub(crate) line: Vec<String>,
    pub(crate) waiters: BTreeMap<String, String>,
    /// Of the lock, the counter, the line and the waiters.
    pub(crate) pttls: [i64; 4],
    pub(crate) micros: u64,
}

/// A subscriber: what it hears, in order, and nothing else.
pub(crate) struct Ears<'a>(PubSub<'a>);

impl<'a> Ask<'a> {
    /// Takes the lock or leaves it.
    pub(crate) fn once(owner: &'a str) -> Self {
        Ask {
            owner,
            ttl: TTL,
            waits: None,
        }
    }

    /// Takes the lock or waits in line for `promise` milliseconds.
    pub(crate) fn waiting(owner: &'a str, promise: u64, inbox: &'a str) -> Self {
        Ask {
            waits: Some((promise, inbox)),
            ..Ask::once(owner)
        }
    }

    pub(crate) fn with_ttl(self, ttl: u64) -> Self {
        Ask { ttl, ..self }
    }
}

impl Bench {
    /// A name that nothing else uses.
    pub(crate) fn new(server: &RedisServer) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lock = format!("{{test:{}}}", NUMBER.fetch_add(1, Relaxed));
        let whole = |code: &str| {
            let include = |code: String, (line, text): &(&str, &str)| code.replace(line, text);
            Script::new(&SHARED.iter().fold(code.to_owned(), include))
        };
        Self {
            connection: server.connection(),
            scripts: [ACQUIRE, RENEW, RELEASE].map(whole),
            fence: format!("{lock}:fence"),
            queue: format!("{lock}:queue"),
            waiters: format!("{lock}:waiters"),
            lock,
        }
    }

    fn run(&mut self, script: usize, arguments: &[&str]) -> RedisResult<Value> {
        let mut call = self.scripts[script].prepare_invoke();
        for key in [&self.lock, &self.fence, &self.queue, &self.waiters] {
            call.key(key);
        }
        for argument in arguments {
            call.arg(argument);
        }
        call.invoke(&mut self.connection)
    }

    pub(crate) fn try_ask(&mut self, ask: Ask<'_>) -> RedisResult<Value> {
        let ttl = ask.ttl.to_string();
        match ask.waits {
            None => self.run(0, &[ask.owner, &ttl]),
            Some((promise, inbox)) => self.run(0, &[ask.owner, &ttl, &promise.to_string(), inbox]),
        }
    }

    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Acquired {
        match self.try_ask(ask).expect("acquire") {
            Value::Int(token) => Acquired::Token(token.try_into().expect("a positive token")),
            Value::Array(parts) => match parts[..] {
                [
                    Value::Int(remaining),
                    Value::Int(counter),
                    Value::Int(0 | 1),
                ] => Acquired::Taken {
                    remaining,
                    counter: counter.try_into().expect("a counter"),
                },
                _ => panic!("{parts:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Asks once, and is granted the lock.
    #[track_caller]
    pub(crate) fn token(&mut self, owner: &str) -> u64 {
        match self.ask(Ask::once(owner)) {
            Acquired::Token(token) => token,
            taken @ Acquired::Taken { .. } => panic!("{taken:?}"),
        }
    }

    /// Asks, and isn't granted the lock.
    #[track_caller]
    pub(crate) fn refused(&mut self, ask: Ask<'_>) {
        let answer = self.ask(ask);
        assert!(matches!(answer, Acquired::Taken { .. }), "{answer:?}");
    }

    /// Enters the line or stays in it.
    #[track_caller]
    pub(crate) fn wait(&mut self, owner: &str, inbox: &str) {
        self.refused(Ask::waiting(owner, TTL, inbox));
    }

    /// Enters the line or stays in it, overdue as soon as the script has ended.
    #[track_caller]
    pub(crate) fn wait_and_die(&mut self, owner: &str, inbox: &str) {
        self.refused(Ask::waiting(owner, 0, inbox));
    }

    pub(crate) fn renew(&mut self, owner: &str, ttl: u64) -> bool {
        is_one(&self.run(1, &[owner, &ttl.to_string()]).expect("renew"))
    }

    /// Without a token, the owner doesn't know what it was granted.
    pub(crate) fn try_release(&mut self, owner: &str, token: Option<u64>) -> RedisResult<Value> {
        let counter = token.map_or(0, |token| token + 1).to_string();
        self.run(2, &[owner, &counter])
    }

    pub(crate) fn release(&mut self, owner: &str, token: Option<u64>) -> bool {
        is_one(&self.try_release(owner, token).expect("release"))
    }

    pub(crate) fn query<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        cmd(words[0])
            .arg(&words[1..])
            .query(&mut self.connection)
            .expect("a command of the test")
    }

    /// From now on nothing can be published but to channels of this pattern.
    pub(crate) fn may_publish_only_to(&mut self, pattern: &str) {
        let channel = format!("&{pattern}");
        let rules = ["on", "nopass", "~*", "+@all", "resetchannels", &channel];
        let end = format!("&{END}");
        self.query::<()>(&[&["ACL", "SETUSER", "scripts"], &rules[..], &[&end]].concat());
        self.query::<()>(&["AUTH", "scripts", "any"]);
    }

    pub(crate) fn set_counter(&mut self, value: &str) {
        let fence = self.fence.clone();
        self.query::<()>(&["SET", &fence, value, "PX", "60000"]);
    }

    pub(crate) fn keys(&self) -> [String; 4] {
        [&self.lock, &self.fence, &self.queue, &self.waiters].map(String::clone)
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.query::<()>(&["DEL", key]);
    }

    /// Ends the lease in another way than by a release.
    pub(crate) fn forget_holder(&mut self) {
        let lock = self.lock.clone();
        self.delete(&lock);
    }

    pub(crate) fn expire(&mut self) {
        let lock = self.lock.clone();
        self.query::<()>(&["PEXPIRE", &lock, "1"]);
        let ended = || self.seen().holder.is_none();
        wait_until("the lease to end", PATIENCE, ended);
    }

    pub(crate) fn seen(&mut self) -> Seen {
        let [lock, fence, queue, waiters] = self.keys();
        let mut pipe = redis::pipe();
        pipe.get(&lock).get(&fence).lrange(&queue, 0, -1);
        pipe.hgetall(&waiters);
        pipe.pttl(&lock).pttl(&fence).pttl(&queue).pttl(&waiters);
        pipe.cmd("TIME");
        type Answers = (
            Option<String>,
            Option<String>,
            Vec<String>,
            BTreeMap<String, String>,
            i64,
            i64,
            i64,
            i64,
            (u64, u64),
        );
        let answers: Answers = pipe.query(&mut self.connection).expect("look");
        let (holder, counter, line, waiters, a, b, c, d, (seconds, micros)) = answers;
        Seen {
            holder,
            counter: counter.map(|digits| digits.parse().expect("digits and nothing else")),
            line,
            waiters,
            pttls: [a, b, c, d],
            micros: seconds * 1_000_000 + micros,
        }
    }

    pub(crate) fn micros(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.query(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Waits until a counter that starts anew is larger than `token`.
    pub(crate) fn wait_for_clock(&mut self, token: u64) {
        let passed = || self.micros() > token;
        wait_until("the clock to pass the counter", PATIENCE, passed);
    }

    /// All that a script that changes nothing must not change; a ttl only shrinks.
    pub(crate) fn contents(&mut self) -> (Option<String>, Option<u64>) {
        let seen = self.seen();
        (seen.holder, seen.counter)
    }
}

impl Seen {
    /// Who waits, first come first; and the same members have their details in the other key.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<&str> {
        let mut line: Vec<_> = self.line.iter().map(String::as_str).collect();
        line.sort_unstable();
        assert!(line.iter().eq(self.waiters.keys()), "{self:?}");
        self.line.iter().map(String::as_str).collect()
    }

    /// All but how long it lasts.
    pub(crate) fn contents(&self) -> impl PartialEq + Debug {
        (&self.holder, self.counter, &self.line, &self.waiters)
    }

    #[track_caller]
    pub(crate) fn assert_every_key_expires(&self) {
        for pttl in self.pttls {
            assert!(pttl == -2 || (0..=COUNTER_TTL).contains(&pttl), "{self:?}");
        }
    }
}

impl<'a> Ears<'a> {
    pub(crate) fn on(connection: &'a mut Connection, channels: &[&str]) -> Self {
        let mut ears = connection.as_pubsub();
        ears.subscribe(END).expect("subscribe");
        let mut ears = Ears(ears);
        channels.iter().for_each(|channel| ears.open(channel));
        ears
    }

    pub(crate) fn open(&mut self, channel: &str) {
        self.0.subscribe(channel).expect("subscribe");
    }

    pub(crate) fn close(&mut self, channel: &str) {
        self.0.unsubscribe(channel).expect("unsubscribe");
    }

    /// What was published since, by channel.
    pub(crate) fn heard(&mut self, bench: &mut Bench) -> Vec<(String, String)> {
        bench.query::<()>(&["PUBLISH", END, ""]);
        let mut heard = Vec::new();
        loop {
            let message = self.0.get_message().expect("a message");
            if message.get_channel_name() == END {
                return heard;
            }
            let payload = message.get_payload().expect("text");
            heard.push((message.get_channel_name().to_owned(), payload));
        }
    }
}

fn is_one(answer: &Value) -> bool {
    match answer {
        Value::Int(1) => true,
        Value::Int(0) => false,
        other => panic!("{other:?}"),
    }
}

/// The token after `stored`, by the rules of the script's header.
pub(crate) fn next_token(stored: u64, micros: u64) -> u64 {
    let abandoned = stored % 2 == 1;
    let above_all_used = stored + if abandoned { 2 * HAND_OVERS + 1 } else { 1 };
    let class = if abandoned { 3 } else { 1 };
    (above_all_used.max(micros)..)
        .find(|token| token % 4 == class)
        .expect("one of four")
}

/// Longer than what a key has by then: the end of a full ttl.
pub(crate) fn is_full(pttl: i64, full: i64) -> bool {
    (full - 10_000..=full).contains(&pttl)
}
