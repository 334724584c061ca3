//! Many processes that read, and one that writes.

use super::*;
use support::{Child, RedisServer};

const ROLE: &str = "TEST_ROLE";
const FOR_MS: &str = "TEST_FOR_MS";

/// What all tell one another while they are inside, on the server itself.
const READING: &str = "reading";
const WRITING: &str = "writing";

fn start(server: &RedisServer, role: &str, time: Duration) -> Child {
    let (url, time) = (server.url(), time.as_millis().to_string());
    let args = [(URL, &*url), (TTL, "10000"), (ROLE, role), (FOR_MS, &time)];
    Child::spawn("reads or writes", &args)
}

/// How often it was inside, and how long it waited for that at most.
#[track_caller]
fn took(child: &mut Child) -> (u64, Duration) {
    let line = child.wait_for("took", PATIENCE);
    let (turns, longest) = line.split_once(' ').unwrap();
    (turns.parse().unwrap(), millis(longest.parse().unwrap()))
}

#[test]
fn neither_eight_readers_nor_a_writer_wait_for_long() {
    let server = RedisServer::start();
    let time = Duration::from_secs(3);
    let watch = Stopwatch::start();
    let mut readers: Vec<_> = (0..8).map(|_| start(&server, "reads", time)).collect();
    let mut writer = start(&server, "writes", time);
    let children = readers.iter_mut().chain([&mut writer]);
    let (turns, longest): (Vec<_>, Vec<_>) = children.map(took).unzip();
    assert!(turns.iter().all(|turns| *turns >= 20), "{turns:?} turns");
    // A turn of all takes some milliseconds.
    watch.assert_took(*longest.iter().max().unwrap(), millis(250));
    for key in [READING, WRITING] {
        assert_eq!(server.get(key).as_deref(), Some("0"));
        server.query::<()>(&["DEL", key]);
    }
    assert_nothing_left(&server);
}
