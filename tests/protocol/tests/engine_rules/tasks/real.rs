//! A server with the scripts, by a clock that the test sets.

use std::collections::HashMap;
use std::sync::Arc;

use redis::{Connection, Value, cmd};
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
            let digest: String = cmd("SCRIPT")
                .arg("LOAD")
                .arg(by_clock)
                .query(&mut connection)
                .unwrap();
            (name, digest)
        });
        Real {
            connection,
            digests: digests.into(),
            _server: server,
        }
    }

    pub(super) fn begin(&mut self) {
        cmd("FLUSHALL").exec(&mut self.connection).unwrap();
        self.set_clock(START);
    }

    pub(super) fn set_clock(&mut self, now: Micros) {
        cmd("DEL").arg(CLOCK).exec(&mut self.connection).unwrap();
        let mut push = cmd("RPUSH");
        push.arg(CLOCK).arg(now / SECOND).arg(now % SECOND);
        push.exec(&mut self.connection).unwrap();
    }

    pub(super) fn run(&mut self, script: &str, arguments: &[&str]) -> Value {
        let mut call = cmd("EVALSHA");
        call.arg(&self.digests[script])
            .arg(KEYS.len())
            .arg(&KEYS)
            .arg(arguments);
        call.query(&mut self.connection).unwrap()
    }

    pub(super) fn line(&mut self) -> Vec<(Arc<str>, String)> {
        let owners: Vec<String> = cmd("LRANGE")
            .arg(KEYS[4])
            .arg(0)
            .arg(-1)
            .query(&mut self.connection)
            .unwrap();
        let told = |owner: String| {
            let entry: String = cmd("HGET")
                .arg(KEYS[5])
                .arg(&owner)
                .query(&mut self.connection)
                .unwrap();
            let (told, _) = entry.split_once(' ').unwrap();
            (owner.into(), told.to_owned())
        };
        owners.into_iter().map(told).collect()
    }
}
