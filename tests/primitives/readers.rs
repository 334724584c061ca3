//! Many processes that read, and one that writes.

use std::thread;
use std::time::Instant;

use redis::{Connection, cmd};

use super::*;
use support::{Child, RedisServer, is_child, say};

const ROLE: &str = "TEST_ROLE";
const FOR_MS: &str = "TEST_FOR_MS";

/// What all tell one another while they are inside, on the server itself.
const READING: &str = "reading";
const WRITING: &str = "writing";

#[test]
fn child_takes_turns() {
    if !is_child("readers::child_takes_turns") {
        return;
    }
    let lock = locker();
    let mut server = redis::Client::open(arg(URL))
        .unwrap()
        .get_connection()
        .unwrap();
    let reads = arg(ROLE) == "reads";
    let end = Instant::now() + millis(arg(FOR_MS).parse().unwrap());
    let (mut turns, mut longest) = (0, Duration::ZERO);
    while Instant::now() < end {
        let begun = Instant::now();
        let guard = if reads {
            lock.read(NAME)
        } else {
            lock.write(NAME)
        };
        let guard = guard.unwrap();
        (turns, longest) = (turns + 1, longest.max(begun.elapsed()));
        be_inside(&mut server, reads);
        guard.unlock().unwrap();
    }
    say(&format!("took {turns} {}", longest.as_millis()));
}

/// Says that it is inside, and sees that nobody is whom it excludes: of two that are inside, one sees the other.
fn be_inside(server: &mut Connection, reads: bool) {
    let mut change =
        |key: &str, by: i64| -> i64 { cmd("INCRBY").arg(key).arg(by).query(server).unwrap() };
    let (own, other) = if reads {
        (READING, WRITING)
    } else {
        (WRITING, READING)
    };
    let inside = change(own, 1);
    assert!(reads || inside == 1, "{inside} write");
    assert_eq!(change(other, 0), 0, "{other} while {own}");
    thread::sleep(millis(1));
    assert_eq!(change(other, 0), 0, "{other} while {own}");
    change(own, -1);
}

fn start(server: &RedisServer, role: &str, time: Duration) -> Child {
    let (url, time) = (server.url(), time.as_millis().to_string());
    let args = [(URL, &*url), (TTL, "10000"), (ROLE, role), (FOR_MS, &time)];
    Child::spawn("readers::child_takes_turns", &args)
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
