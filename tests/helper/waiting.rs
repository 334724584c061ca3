//! Threads that wait, in processes of their own.

use std::sync::mpsc;
use std::thread;

use super::*;
use support::{Thread, hear, say, wait_until};

const THREADS: usize = 4;

pub(crate) fn wait_with_threads() {
    let lock = Locker::open(&arg(URL)).unwrap();
    let threads = [(); THREADS].map(|()| {
        let (lock, (tell, told)) = (lock.clone(), mpsc::channel());
        let waiter = thread::spawn(move || {
            tell.send(Thread::current()).unwrap();
            lock.lock("a").unwrap()
        });
        let thread = told.recv().unwrap();
        wait_until("a thread to wait", PATIENCE, || thread.is_asleep());
        waiter
    });
    say("waits");
    hear();
    // Behind the others of all processes.
    for thread in threads {
        let guard = thread.join().unwrap();
        say(&format!("holds {}", guard.fencing_token()));
        guard.unlock().unwrap();
    }
    say("done");
}
