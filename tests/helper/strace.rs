//! What a process does that is killed at a system call of it.

use crosslock::LockGuard;
use rustix::process::{PTracer, set_ptracer};

use super::*;
use support::{hear, say};

const TTL: Duration = Duration::from_millis(500);

pub(crate) fn play() {
    // Where only a parent may trace. Elsewhere the kernel knows no such thing.
    let _ = set_ptracer(PTracer::Any);
    say("ready");
    hear().unwrap();
    play_on(&arg("TEST_PLAY"), &arg(URL));
    // Nothing more to count.
    std::process::exit(0);
}

fn play_on(play: &str, url: &str) {
    let lock = Locker::builder(url).ttl(TTL).build().unwrap();
    match play {
        "lock" => hold(lock.lock("a").unwrap()),
        "lock_all" => hold(lock.lock_all(&["a", "b", "c"]).unwrap()),
        "read" => hold(lock.read("a").unwrap()),
        "permits" => hold(lock.semaphore("a", 3).unwrap().acquire_many(2).unwrap()),
        "timed" => {
            let timed = lock.try_lock_for("a", Duration::from_millis(20));
            assert!(timed.unwrap().is_none());
        }
        "downgrade" => {
            let guard = lock.write("a").unwrap();
            say(&format!("has {}", guard.fencing_token()));
            say("leaves");
            let guard = guard.downgrade().unwrap();
            say("left");
            guard.unlock().unwrap();
        }
        "value" => {
            let value = lock.mutex("a", 0_u64).unwrap();
            value.set(1).unwrap();
        }
        "pass" => {
            let guard = lock.lock("a").unwrap();
            say(&format!("has {}", guard.fencing_token()));
            say("leaves");
            let ticket = guard.into_ticket().expect("a ticket");
            hold(lock.adopt(&ticket).unwrap());
        }
        "break" => {
            assert_eq!(lock.break_lock("a").unwrap().len(), 1);
            say("broke");
        }
        _ => panic!("{play}"),
    }
}

fn hold(guard: LockGuard) {
    say(&format!("has {}", guard.fencing_token()));
    say("holds");
    hear().unwrap();
    say("leaves");
    guard.unlock().unwrap();
    say("left");
}
