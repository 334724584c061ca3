//! A lock of a server, seen through the scripts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis::{Connection, FromRedisValue, RedisResult, Script, Value, cmd};

use super::TTL;
use support::RedisServer;
use support::scripts::{ALL, Acquired, Verb, whole};

/// The suffixes of a lock's keys, in the order of the scripts.
const SUFFIXES: [&str; 6] = [
    "",
    ":fence",
    ":queue",
    ":waiters",
    ":read_queue",
    ":holders",
];

pub(crate) struct Bench {
    connection: Connection,
    scripts: Vec<Script>,
    lock: String,
}

impl Bench {
    /// A name that nothing else uses.
    pub(crate) fn new(server: &RedisServer) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            connection: server.connection(),
            scripts: ALL.map(|code| Script::new(&whole(code))).into(),
            lock: format!("{{test:{}}}", NUMBER.fetch_add(1, Relaxed)),
        }
    }

    pub(crate) fn key(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.lock)
    }

    fn run(&mut self, verb: Verb, arguments: &[&str]) -> RedisResult<Value> {
        let keys = SUFFIXES.map(|suffix| self.key(suffix));
        let mut call = self.scripts[verb as usize].prepare_invoke();
        for key in keys {
            call.key(key);
        }
        for argument in arguments {
            call.arg(argument);
        }
        call.invoke(&mut self.connection)
    }

    /// Asks in a mode, once.
    pub(crate) fn try_ask(&mut self, mode: &str, owner: &str) -> RedisResult<Value> {
        self.run(Verb::Acquire, &[owner, &TTL.to_string(), mode])
    }

    /// Is granted the lock.
    #[track_caller]
    pub(crate) fn token(&mut self, mode: &str, owner: &str) -> u64 {
        let answer = self.try_ask(mode, owner).expect("acquire");
        Acquired::of(&answer).token().expect("it is free")
    }

    /// Asks exclusively, and stays in line unless it is granted the lock.
    pub(crate) fn ask(&mut self, owner: &str, inbox: &str) -> Acquired {
        let ttl = TTL.to_string();
        let answer = self.run(Verb::Acquire, &[owner, &ttl, "x", &ttl, inbox]);
        Acquired::of(&answer.expect("acquire"))
    }

    /// Enters the line or stays in it.
    #[track_caller]
    pub(crate) fn wait(&mut self, owner: &str, inbox: &str) {
        let answer = self.ask(owner, inbox);
        assert!(matches!(answer, Acquired::Taken { .. }), "{answer:?}");
    }

    #[track_caller]
    pub(crate) fn renew(&mut self, mode: &str, owner: &str) {
        let answer = self.run(Verb::Renew, &[owner, &TTL.to_string(), mode]);
        assert_eq!(answer.expect("renew"), Value::Int(1));
    }

    /// By the owner that was granted that token.
    #[track_caller]
    pub(crate) fn release(&mut self, mode: &str, owner: &str, token: u64) {
        assert_eq!(self.try_release(mode, owner, token), Value::Int(1));
    }

    /// The same, whether the lock is the owner's or not.
    pub(crate) fn try_release(&mut self, mode: &str, owner: &str, token: u64) -> Value {
        let answer = self.run(Verb::Release, &[owner, &(token + 1).to_string(), mode]);
        answer.expect("release")
    }

    pub(crate) fn query<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = cmd(words[0]);
        let answer = command.arg(&words[1..]).query(&mut self.connection);
        answer.expect("a command of the test")
    }
}
