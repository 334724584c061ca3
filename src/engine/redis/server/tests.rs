//! How many late questions a server has, and for how long.

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;
use crate::engine::net::IDLE;
use crate::engine::redis::server_of;

fn server_at(listener: &TcpListener) -> Arc<Server> {
    server_of(&format!("redis://{}/", listener.local_addr().unwrap()))
}

/// PING that may have to go out where another command did.
struct Ordered(SameConnection<'static>);

impl Command for Ordered {
    fn packed(&self) -> Vec<u8> {
        ::redis::cmd("PING").packed()
    }

    fn same_connection(&self) -> SameConnection<'_> {
        self.0
    }
}

/// Reads the commands of so many connections, says of each that it has come, and answers none.
fn be_silent(listener: &TcpListener, connections: usize, read: &Sender<()>) {
    thread::scope(|scope| {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let mut command = ::redis::cmd("PING").packed();
                while stream.read_exact(&mut command).is_ok() {
                    read.send(()).unwrap();
                }
            });
        }
    });
}

/// Ends a call when the server has its command, and says nothing.
fn cancel(server: &Arc<Server>, same: SameConnection<'static>, read: &Receiver<()>) {
    let cancel = Cancel::default();
    let deadline = Deadline::after(Duration::from_secs(20)).or(&cancel);
    thread::scope(|scope| {
        let call = || server.call(&Ordered(same), Manner::Plain, &deadline);
        let call = scope.spawn(call);
        read.recv().unwrap();
        cancel.set();
        assert!(call.join().unwrap().unwrap_err().sent);
    });
}

/// Has a silent server of so many connections.
fn with_peer(connections: usize, test: impl FnOnce(Arc<Server>, &Receiver<()>)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = server_at(&listener);
    let (sender, read) = unbounded();
    thread::scope(|scope| {
        scope.spawn(|| be_silent(&listener, connections, &sender));
        test(server, &read);
    });
}

#[test]
fn no_more_than_some_questions_are_late() {
    with_peer(40, |server, read| {
        for number in 0..40 {
            cancel(
                &server,
                SameConnection::Asks(number.to_string().leak()),
                read,
            );
        }
        assert_eq!(server.late.len(), MOST);
        assert!(
            server
                .late
                .take(SameConnection::Asks("7"), Instant::now())
                .is_none()
        );
        assert!(
            server
                .late
                .take(SameConnection::TakesBack("8"), Instant::now())
                .is_some()
        );
        server.retire();
        assert_eq!(server.late.len(), 0);
    });
}

#[test]
fn question_that_is_late_for_long_is_given_up() {
    with_peer(2, |server, read| {
        for owner in ["a", "b"] {
            cancel(&server, SameConnection::Asks(owner), read);
        }
        let later = Instant::now() + IDLE / 2;
        assert!(server.late.take(SameConnection::Any, later).is_none());
        assert_eq!(server.late.len(), 2);
        let later = later + IDLE;
        assert!(
            server
                .late
                .take(SameConnection::TakesBack("b"), later)
                .is_none()
        );
        assert_eq!(server.late.len(), 0);
    });
}
