//! Processes that read, write and count on a server, and tell one another there or in files.

use std::fs::File;
use std::io::Write as _;
use std::thread;
use std::time::Instant;

use crosslock::{Error, Mutex, MutexGuard};
use redis::{Connection, cmd};

use super::*;
use support::{hear, say};

const NAME: &str = "n";
const READING: &str = "reading";
const WRITING: &str = "writing";

/// What processes note.
const BEGUN: u8 = b'b';
const OK: u8 = b'o';
const LOST: u8 = b'l';
const UNKNOWN: u8 = b'u';

fn connect() -> Connection {
    let client = redis::Client::open(arg(URL)).unwrap();
    client.get_connection().unwrap()
}

pub(crate) fn lock_sets() {
    let lock = locker();
    let mut server = connect();
    let mut names = ["a", "b", "c", "d"];
    say("ready");
    while let Some(order) = hear() {
        for _ in 0..order.parse().unwrap() {
            fastrand::shuffle(&mut names);
            let some = &names[..fastrand::usize(1..4)];
            let guard = lock.lock_all(some).unwrap();
            for name in some {
                // The last token that was seen inside: a holder that is stale has a smaller one, and no claim.
                let seen: u64 = cmd("GET").arg(name).query(&mut server).unwrap_or(0);
                let token = guard.fencing_token();
                assert!(seen < token || !guard.is_held(), "{token} after {seen}");
                if guard.is_held() {
                    cmd("SET").arg(name).arg(token).exec(&mut server).unwrap();
                }
            }
        }
        say("done");
    }
}

pub(crate) fn read_or_write() {
    let lock = locker();
    let mut server = connect();
    let reads = arg("TEST_ROLE") == "reads";
    let end = Instant::now() + Duration::from_millis(arg("TEST_FOR_MS").parse().unwrap());
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
    thread::sleep(Duration::from_millis(1));
    assert_eq!(change(other, 0), 0, "{other} while {own}");
    change(own, -1);
}

pub(crate) fn increment_and_note() {
    let counter = locker().mutex(NAME, 0u64).unwrap();
    let notes = arg("TEST_NOTES");
    // Until it is killed, or has done as many as it was told.
    let turns = hear().unwrap().parse().unwrap();
    let mut notes = File::options().append(true).open(notes).unwrap();
    let mut done = 0;
    while done < turns {
        let outcome = increment_once(&counter, || notes.write_all(&[BEGUN]).unwrap());
        done += u64::from(outcome == OK);
        notes.write_all(&[outcome]).unwrap();
    }
    say("done");
}

fn increment_once(counter: &Mutex<u64>, begin: impl FnOnce()) -> u8 {
    let mut guard = counter.lock().unwrap();
    *guard += 1;
    begin();
    match MutexGuard::unlock(guard) {
        Ok(()) => OK,
        Err(Error::Lost { .. }) => LOST,
        Err(_) => UNKNOWN,
    }
}
