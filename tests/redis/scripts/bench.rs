//! One lock of a server, seen through the scripts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis::{Connection, FromRedisValue, RedisResult, Script, Value, cmd};

use super::ask::{Ask, is_one, released};
use super::seen::Seen;
use super::{PATIENCE, TTL};
use support::scripts::{ALL, Acquired, Verb, whole};
use support::{RedisServer, wait_until};

/// The channel on which [`Ears`](super::seen::Ears) hear that there is nothing more to hear.
pub(crate) const END: &str = "end";
/// How many keys a lock has, its value not counted.
pub(crate) const KEYS: usize = 6;

pub(crate) struct Bench {
    pub(crate) connection: Connection,
    scripts: Vec<Script>,
    pub(crate) lock: String,
    pub(crate) fence: String,
    pub(crate) queue: String,
    pub(crate) waiters: String,
    pub(crate) readers: String,
    pub(crate) holders: String,
    pub(crate) value: String,
}

impl Bench {
    /// A name that nothing else uses.
    pub(crate) fn new(server: &RedisServer) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lock = format!("{{test:{}}}", NUMBER.fetch_add(1, Relaxed));
        let key = |suffix: &str| format!("{lock}:{suffix}");
        Self {
            connection: server.connection(),
            scripts: ALL.map(|code| Script::new(&whole(code))).into(),
            fence: key("fence"),
            queue: key("queue"),
            waiters: key("waiters"),
            readers: key("read_queue"),
            holders: key("holders"),
            value: key("value"),
            lock,
        }
    }

    /// Runs a script with other keys than those of this lock.
    pub(crate) fn run_on(
        &mut self,
        verb: Verb,
        keys: &[String],
        arguments: &[String],
    ) -> RedisResult<Value> {
        let mut call = self.scripts[verb as usize].prepare_invoke();
        keys.iter().for_each(|key| {
            call.key(key);
        });
        arguments.iter().for_each(|argument| {
            call.arg(argument);
        });
        call.invoke(&mut self.connection)
    }

    /// With the key of the value if it is `valued`.
    pub(crate) fn run(
        &mut self,
        verb: Verb,
        valued: bool,
        arguments: &[&str],
    ) -> RedisResult<Value> {
        let keys = self.keys();
        let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
        self.run_on(verb, &keys[..KEYS + usize::from(valued)], &arguments)
    }

    pub(crate) fn try_ask(&mut self, ask: Ask<'_>) -> RedisResult<Value> {
        let arguments = ask.arguments();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        self.run(Verb::Acquire, ask.valued, &arguments)
    }

    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Acquired {
        Acquired::of(&self.try_ask(ask).expect("acquire"))
    }

    /// Is granted the lock.
    #[track_caller]
    pub(crate) fn granted(&mut self, ask: Ask<'_>) -> u64 {
        match self.ask(ask) {
            Acquired::Token(token) => token,
            other => panic!("{other:?}"),
        }
    }

    /// Asks once, exclusively, and is granted the lock.
    #[track_caller]
    pub(crate) fn token(&mut self, owner: &str) -> u64 {
        self.granted(Ask::once(owner))
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

    /// The same, in another mode.
    #[track_caller]
    pub(crate) fn wait_to(&mut self, mode: &str, owner: &str, inbox: &str) {
        self.refused(Ask::waiting(owner, TTL, inbox).with_mode(mode));
    }

    /// Enters the line or stays in it, overdue as soon as the script has ended.
    #[track_caller]
    pub(crate) fn wait_and_die(&mut self, owner: &str, inbox: &str) {
        self.refused(Ask::waiting(owner, 0, inbox));
    }

    pub(crate) fn renew_as(
        &mut self,
        mode: &str,
        owner: &str,
        ttl: u64,
        value: Option<&str>,
    ) -> bool {
        let ttl = ttl.to_string();
        let arguments: Vec<_> = [owner, &ttl, mode].into_iter().chain(value).collect();
        let answer = self.run(Verb::Renew, value.is_some(), &arguments);
        is_one(&answer.expect("renew"))
    }

    /// Without a token, the owner doesn't know what it was granted.
    pub(crate) fn try_release(
        &mut self,
        mode: &str,
        owner: &str,
        token: Option<u64>,
        value: Option<&str>,
    ) -> RedisResult<Value> {
        let counter = token.map_or(0, |token| token + 1).to_string();
        let arguments: Vec<_> = [owner, &counter, mode].into_iter().chain(value).collect();
        self.run(Verb::Release, value.is_some(), &arguments)
    }

    pub(crate) fn release(&mut self, owner: &str, token: Option<u64>) -> bool {
        self.release_as("x", owner, token, None)
    }

    pub(crate) fn release_as(
        &mut self,
        mode: &str,
        owner: &str,
        token: Option<u64>,
        value: Option<&str>,
    ) -> bool {
        self.release_answer(mode, owner, token, value) == 1
    }

    pub(crate) fn release_answer(
        &mut self,
        mode: &str,
        owner: &str,
        token: Option<u64>,
        value: Option<&str>,
    ) -> i64 {
        released(&self.try_release(mode, owner, token, value))
    }

    /// How many permits are out; -1 when the lock is held otherwise.
    pub(crate) fn permits(&mut self) -> i64 {
        match self.run(Verb::Permits, false, &[]).expect("permits") {
            Value::Int(number) => number,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn query<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        cmd(words[0])
            .arg(&words[1..])
            .query(&mut self.connection)
            .expect("a command of the test")
    }

    pub(crate) fn set_counter(&mut self, value: &str) {
        let fence = self.fence.clone();
        self.query::<()>(&["SET", &fence, value, "PX", "60000"]);
    }

    /// In the order of the scripts.
    pub(crate) fn keys(&self) -> [String; KEYS + 1] {
        [
            &self.lock,
            &self.fence,
            &self.queue,
            &self.waiters,
            &self.readers,
            &self.holders,
            &self.value,
        ]
        .map(String::clone)
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

    pub(crate) fn micros(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.query(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    pub(crate) fn seen(&mut self) -> Seen {
        Seen::of(&self.keys(), &mut self.connection)
    }

    /// All that a script that changes nothing must not change; a ttl only shrinks.
    pub(crate) fn contents(&mut self) -> (Option<String>, Option<u64>) {
        let seen = self.seen();
        (seen.holder, seen.counter)
    }
}
