//! Children that are forked off, and in which threads begin.
//!
//! Rust's std has a lock of the whole process, which a thread takes as it begins and as it ends: it notes where its
//! stack is, for the message about one that overflows. A child that is forked off at that moment inherits it locked, by
//! a thread that the child doesn't have. Then no thread of the child ever begins, and it can't exit either. No library
//! mends that, and which locks the crate under test leaves behind is seen by all other children.

use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fork::Fork;
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};

/// Far more than a thread takes to begin on a busy machine.
const BEGINNING: Duration = Duration::from_secs(5);

/// Runs `body` in a child that is forked off from this process, and that dies with it; returns its process id.
///
/// The child ends with 0, or with 1 if `body` panics.
#[track_caller]
pub fn forked(body: impl FnOnce()) -> i32 {
    loop {
        let (mut begun, begins) = io::pipe().expect("make a pipe");
        match fork::fork().expect("fork") {
            Fork::Parent(pid) => {
                drop(begins);
                if begun.read_exact(&mut [0]).is_ok() {
                    return pid;
                }
                let status = fork::waitpid(pid).expect("wait for the child");
                assert!(fork::WIFSIGNALED(status), "the child fails: {status}");
                eprintln!("a child inherited a lock of std, and another is forked off");
            }
            Fork::Child => {
                drop(begun);
                run(begins, body)
            }
        }
    }
}

fn run(mut begins: io::PipeWriter, body: impl FnOnce()) -> ! {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        set_parent_process_death_signal(Some(Signal::KILL)).expect("set the parent-death signal");
        if !threads_begin() {
            // To exit takes that lock, too.
            kill_process(getpid(), Signal::KILL).expect("kill this process");
        }
        begins.write_all(&[1]).expect("the parent reads");
        drop(begins);
        body();
    }));
    // Not back into the test's harness, which goes on in the parent.
    exit(i32::from(outcome.is_err()))
}

fn threads_begin() -> bool {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || tell.send(()));
    let begins = told.recv_timeout(BEGINNING).is_ok();
    if begins {
        let _ = thread.join();
    }
    begins
}
