//! What the log says of a guard that couldn't be released, since `drop` returns nothing.

#![cfg(feature = "redis")]

use std::sync::Mutex;

use crosslock::Locker;
use log::{LevelFilter, Log, Metadata, Record};
use support::RedisServer;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Logger;

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn guard_that_is_dropped_while_the_server_is_away_is_logged_as_not_released() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(LevelFilter::Warn);
    let server = RedisServer::start();
    let locker = Locker::open(&server.url()).unwrap();
    let guard = locker.lock("a").unwrap();
    server.kill();
    drop(guard);
    let lines = LINES.lock().unwrap();
    let line = lines.iter().find(|line| line.contains("on drop"));
    let line = line.unwrap_or_else(|| panic!("{lines:?}"));
    // Which lock it was, that it wasn't released, and why.
    for word in ["\"a\"", "not released", "refused"] {
        assert_eq!(line.matches(word).count(), 1, "{word:?}: {line}");
    }
}
