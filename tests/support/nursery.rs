//! The thread that starts every child process.
//!
//! Linux ties a child's parent-death signal to the parent's thread, not to its process: a child started by a test's own
//! thread would be killed when that test ends, even if another still uses it. This thread lives as long as the process.

use std::io;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};
use std::thread;

type Order = (Command, mpsc::Sender<io::Result<Child>>);

pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static NURSERY: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let (reply, answer) = mpsc::channel();
    NURSERY
        .get_or_init(open)
        .send((command, reply))
        .expect("the nursery never ends");
    answer.recv().expect("the nursery never ends")
}

fn open() -> mpsc::Sender<Order> {
    let (orders, inbox) = mpsc::channel::<Order>();
    let body = move || {
        for (mut command, reply) in inbox {
            let _ = reply.send(command.spawn());
        }
    };
    thread::Builder::new()
        .name("nursery".into())
        .spawn(body)
        .expect("start the nursery");
    orders
}
