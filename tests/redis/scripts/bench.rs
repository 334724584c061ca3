//! Locks of a server, seen through the scripts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis::{Connection, FromRedisValue, RedisResult, Script, Value, cmd};

use super::TTL;
use super::ask::{Ask, is_released, read};
use super::seen::Seen;
use support::RedisServer;
use support::scripts::{ALL, Acquired, Verb, whole};

/// The channel on which [`Ears`](super::seen::Ears) hear that there is nothing more to hear.
pub(crate) const END: &str = "end";
/// Where inboxes hear of leases that were broken.
pub(crate) const BROKEN: &str = "inbox:broken";
/// How many keys a lock has, its value not counted.
pub(crate) const KEYS: usize = 6;

/// The keys of a lock and its value, in the order of the scripts.
fn keys_of(lock: &str) -> [String; KEYS + 1] {
    [
        "",
        ":fence",
        ":queue",
        ":waiters",
        ":read_queue",
        ":holders",
        ":value",
    ]
    .map(|suffix| format!("{lock}{suffix}"))
}

pub(crate) struct Bench {
    pub(crate) connection: Connection,
    scripts: Vec<Script>,
    pub(crate) lock: String,
    pub(crate) fence: String,
    pub(crate) queue: String,
}

impl Bench {
    /// A name that nothing else uses.
    pub(crate) fn new(server: &RedisServer) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lock = format!("{{test:{}}}", NUMBER.fetch_add(1, Relaxed));
        let [_, fence, queue, ..] = keys_of(&lock);
        Self {
            connection: server.connection(),
            scripts: ALL.map(|code| Script::new(&whole(code))).into(),
            lock,
            fence,
            queue,
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

    pub(crate) fn run(&mut self, verb: Verb, arguments: &[&str]) -> RedisResult<Value> {
        let keys = self.keys();
        let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
        self.run_on(verb, &keys[..KEYS], &arguments)
    }

    pub(crate) fn try_ask(&mut self, ask: Ask<'_>) -> RedisResult<Value> {
        let keys = self.keys();
        self.run_on(Verb::Acquire, &keys[..KEYS], &ask.arguments())
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

    pub(crate) fn renew_as(&mut self, mode: &str, owner: &str, ttl: u64) -> bool {
        let answer = self.run(Verb::Renew, &[owner, &ttl.to_string(), mode]);
        read::<u8>(answer.expect("renew")) == 1
    }

    pub(crate) fn release(&mut self, owner: &str, token: Option<u64>) -> bool {
        self.release_as("x", owner, token)
    }

    /// Without a token, the owner doesn't know what it was granted.
    pub(crate) fn release_as(&mut self, mode: &str, owner: &str, token: Option<u64>) -> bool {
        let counter = token.map_or(0, |token| token + 1).to_string();
        is_released(&self.run(Verb::Release, &[owner, &counter, mode]))
    }

    /// Takes the lock from whoever has it, as those hear that listen there.
    pub(crate) fn break_lock(&mut self) -> RedisResult<Value> {
        self.run(Verb::Break, &[BROKEN])
    }

    /// How many permits are out; -1 when the lock is held otherwise.
    pub(crate) fn permits(&mut self) -> i64 {
        read(self.run(Verb::Permits, &[]).expect("permits"))
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

    pub(crate) fn keys(&self) -> [String; KEYS + 1] {
        keys_of(&self.lock)
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.query::<()>(&["DEL", key]);
    }

    /// Ends the lease in another way than by a release.
    pub(crate) fn forget_holder(&mut self) {
        let lock = self.lock.clone();
        self.delete(&lock);
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

/// Several locks of a server.
pub(crate) struct Several(pub(crate) Vec<Bench>);

impl Several {
    pub(crate) fn new(server: &RedisServer, names: usize) -> Self {
        Several((0..names).map(|_| Bench::new(server)).collect())
    }

    fn run(&mut self, verb: Verb, names: &[usize], arguments: &[String]) -> RedisResult<Value> {
        let keys = |name: &usize| self.0[*name].keys().into_iter().take(KEYS);
        let keys: Vec<_> = names.iter().flat_map(keys).collect();
        self.0[0].run_on(verb, &keys, arguments)
    }

    pub(crate) fn try_ask(&mut self, names: &[usize], ask: Ask<'_>) -> RedisResult<Value> {
        self.run(Verb::AcquireAll, names, &ask.arguments())
    }

    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        self.0.iter_mut().map(Bench::seen).collect()
    }

    /// None of the names is held by `owner`, nor waited for.
    #[track_caller]
    pub(crate) fn assert_has_none(&mut self, owner: &str) {
        for seen in self.seen() {
            assert_ne!(seen.holder.as_deref(), Some(owner), "{seen:?}");
            assert!(!seen.line().contains(&owner), "{seen:?}");
        }
    }
}
