//! What a lock on Redis needs at least, on one connection of the `redis` crate.

use std::borrow::Cow;

use redis::Connection;

use super::lock::Lock;
use super::lua;
use super::place::ask;
use super::server::connect;

/// A round trip to lock and one to unlock, which do nothing.
pub(crate) struct Pings(Connection);

impl Pings {
    pub(crate) fn to(url: &str) -> Self {
        Pings(connect(url))
    }
}

impl Lock for Pings {
    fn lock(&mut self) -> Option<u64> {
        ask::<()>(&mut self.0, &["PING"]);
        Some(0)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        ask::<()>(&mut self.0, &["PING"]);
        "done".into()
    }
}

/// The least: SET NX PX, and a compare-and-delete.
pub(crate) struct Floor {
    connection: Connection,
    delete: String,
}

impl Floor {
    pub(crate) fn to(url: &str) -> Self {
        const DELETE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] \
            then return redis.call('DEL', KEYS[1]) end return 0";
        let mut connection = connect(url);
        let delete = ask(&mut connection, &["SCRIPT", "LOAD", DELETE]);
        Floor { connection, delete }
    }
}

impl Lock for Floor {
    fn lock(&mut self) -> Option<u64> {
        let set = ["SET", "floor", "owner", "NX", "PX", "10000"];
        let set: Option<String> = ask(&mut self.connection, &set);
        assert!(set.is_some());
        Some(0)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let call = ["EVALSHA", &self.delete, "1", "floor", "owner"];
        let deleted: i64 = ask(&mut self.connection, &call);
        assert_eq!(deleted, 1);
        "done".into()
    }
}

/// The scripts of this crate without the crate.
pub(crate) struct Scripts {
    connection: Connection,
    /// Their digests.
    acquire: String,
    release: String,
    keys: Vec<String>,
    owner: String,
    token: i64,
}

impl Scripts {
    pub(crate) fn to(url: &str, key: &str) -> Self {
        let mut connection = connect(url);
        let mut load = |name| ask(&mut connection, &["SCRIPT", "LOAD", &lua::whole(name)]);
        let (acquire, release) = (load("lock/acquire"), load("lock/release"));
        let kinds = [":fence", ":queue", ":waiters", ":read_queue", ":holders"];
        let keys = [""].into_iter().chain(kinds);
        Scripts {
            acquire,
            release,
            connection,
            keys: keys.map(|kind| format!("{key}{kind}")).collect(),
            // As long as the owners of the crate.
            owner: "x".repeat(60),
            token: 0,
        }
    }

    fn call(&mut self, script: &str, argument: i64) -> i64 {
        let mut call = redis::cmd("EVALSHA");
        call.arg(script).arg(self.keys.len()).arg(&self.keys);
        call.arg(&self.owner).arg(argument).arg("x");
        call.query(&mut self.connection).expect("an answer")
    }
}

impl Lock for Scripts {
    fn lock(&mut self) -> Option<u64> {
        let script = self.acquire.clone();
        self.token = self.call(&script, 10_000);
        self.token.try_into().ok()
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let script = self.release.clone();
        let released = self.call(&script, self.token + 1);
        assert_eq!(released, 1);
        "done".into()
    }
}
