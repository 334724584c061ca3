//! A server with the scripts, by a clock that the test sets.

use std::collections::HashMap;
use std::sync::Arc;

use redis::{Connection, FromRedisValue, Value, cmd};
use support::RedisServer;

use crate::engine::rules::tasks::Micros;

pub(super) const SECOND: Micros = 1_000_000;
pub(super) const START: Micros = 1_700_000_000 * SECOND;
/// In the place of the server's clock.
const CLOCK: &str = "clock";
const KEYS: [&str; 7] = [
    "{q}:tasks",
    "{q}:due",
    "{q}:ends",
    "{q}:workers",
    "{q}:line",
    "{q}:waiting",
    "{q}:finished",
];

/// A server with the scripts.
pub(super) struct Real {
    connection: Connection,
    digests: HashMap<&'static str, String>,
    _server: RedisServer,
}

const SCRIPTS: [&str; 7] = [
    "task/insert",
    "task/take",
    "task/renew",
    "task/finish",
    "task/next",
    "task/change",
    "task/look",
];

impl Real {
    pub(super) fn start() -> Self {
        let server = RedisServer::start();
        let mut connection = server.connection();
        let digests = SCRIPTS.map(|name| {
            let code = support::scripts::whole(name);
            let by_clock = code.replace(
                "redis.call('TIME')",
                &format!("redis.call('LRANGE', '{CLOCK}', '0', '1')"),
            );
            assert!(by_clock != code);
            let load = cmd("SCRIPT").arg("LOAD").arg(by_clock).take();
            (name, load.query(&mut connection).expect("a digest"))
        });
        Real {
            connection,
            digests: digests.into(),
            _server: server,
        }
    }

    fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let command = cmd(words[0]).arg(&words[1..]).query(&mut self.connection);
        command.expect("a command of the test")
    }

    pub(super) fn begin(&mut self) {
        self.ask::<()>(&["FLUSHALL"]);
        self.set_clock(START);
    }

    pub(super) fn set_clock(&mut self, now: Micros) {
        self.ask::<()>(&["DEL", CLOCK]);
        let parts = [now / SECOND, now % SECOND].map(|part| part.to_string());
        self.ask::<()>(&["RPUSH", CLOCK, &parts[0], &parts[1]]);
    }

    pub(super) fn run(&mut self, script: &str, arguments: &[&str]) -> Value {
        let (digest, count) = (self.digests[script].clone(), KEYS.len().to_string());
        self.ask(&[&["EVALSHA", &*digest, &*count], &KEYS[..], arguments].concat())
    }

    pub(super) fn line(&mut self) -> Vec<(Arc<str>, String)> {
        let owners: Vec<String> = self.ask(&["LRANGE", KEYS[4], "0", "-1"]);
        let told = |owner: String| {
            let entry: String = self.ask(&["HGET", KEYS[5], &owner]);
            let (told, _) = entry.split_once(' ').unwrap();
            (owner.into(), told.to_owned())
        };
        owners.into_iter().map(told).collect()
    }
}
