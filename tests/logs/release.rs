//! Guards that couldn't be released: `drop` returns nothing, so the log says it.

use crosslock::Locker;
use support::RedisServer;

use super::{Level, lines_with, listen};

#[test]
fn guard_that_is_dropped_while_the_server_is_away_is_logged_as_not_released() {
    listen();
    let server = RedisServer::start();
    let locker = Locker::open(&server.url()).unwrap();
    let guard = locker.lock("release").unwrap();
    server.kill();
    drop(guard);
    let mut lines = lines_with("\"release\"");
    lines.retain(|line| line.level == Level::Warn);
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    // Which lock it was, when, that it wasn't released, and why.
    for word in ["\"release\"", "on drop", "can't release", "refused"] {
        assert_eq!(line.text.matches(word).count(), 1, "{word:?}: {line:?}");
    }
}
