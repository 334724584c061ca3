//! What a server says to a command, told apart from what never reached it, and from what it says to a late question.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;
use crate::engine::net::IDLE;
use crate::engine::redis::server_of;

fn server_at(listener: &TcpListener) -> Arc<Server> {
    server_of(&format!("redis://{}/", listener.local_addr().unwrap()))
}

fn unanswered(server: &Arc<Server>) -> Failed<Failure> {
    let deadline = Deadline::after(Duration::from_secs(20));
    server
        .call(&::redis::cmd("PING"), Manner::Plain, &deadline)
        .unwrap_err()
}

#[test]
fn command_that_was_answered_counts_as_sent() {
    for answer in [
        "-ERR what\r\n",
        "-OOM no memory\r\n",
        "-READONLY a replica\r\n",
        "HTTP/1.1 400 Bad Request\r\n",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = server_at(&listener);
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 100]).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        assert!(unanswered(&server).sent, "{answer:?}");
        peer.join().unwrap();
    }
}

#[test]
fn command_that_found_no_server_does_not_count_as_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = server_at(&listener);
    drop(listener);
    let unanswered = unanswered(&server);
    assert!(!unanswered.sent && matches!(unanswered.error, Failure::Closed(_)));
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

/// A peer that has connections, and says when it has read a command.
struct Peer {
    connections: usize,
    /// How many of them, which come first, answer only when there are as many commands as `together`.
    silent: usize,
    together: usize,
    read: Sender<()>,
}

impl Peer {
    fn serve(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            for number in 0..self.connections {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || self.answer(number, stream));
            }
        });
    }

    /// By the number of the connection, and by which of its commands it was.
    fn answer(&self, connection: usize, mut stream: TcpStream) {
        let mut command = ::redis::cmd("PING").packed();
        let mut count = 0;
        while stream.read_exact(&mut command).is_ok() {
            count += 1;
            let is_silent = connection < self.silent;
            let first = if is_silent && count == self.together {
                1
            } else {
                count
            };
            let last = if is_silent && count < self.together {
                0
            } else {
                count
            };
            for number in first..=last {
                // In two parts, of which the first may be all that has come.
                for part in [format!("+{connection}"), format!(".{number}\r\n")] {
                    let _ = stream.write_all(part.as_bytes());
                }
            }
            self.read.send(()).unwrap();
        }
    }
}

/// What a server says to such a command.
fn said(server: &Arc<Server>, same: SameConnection<'static>, read: &Receiver<()>) -> String {
    let deadline = Deadline::after(Duration::from_secs(20));
    let answer = server.call(&Ordered(same), Manner::Plain, &deadline);
    read.recv().unwrap();
    match answer.unwrap().value {
        Value::SimpleString(text) => text,
        value => panic!("{value:?}"),
    }
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

/// Has a server of so many connections, of which so many are silent.
fn with_peer(
    [connections, silent, together]: [usize; 3],
    test: impl FnOnce(Arc<Server>, &Receiver<()>),
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = server_at(&listener);
    let (sender, read) = unbounded();
    let peer = Peer {
        connections,
        silent,
        together,
        read: sender,
    };
    thread::scope(|scope| {
        scope.spawn(|| peer.serve(&listener));
        test(server, &read);
    });
}

#[test]
fn answer_that_nobody_waits_for_is_nobody_elses() {
    with_peer([2, 1, 3], |server, read| {
        let (asks, takes_back) = (SameConnection::Asks("a"), SameConnection::TakesBack("a"));
        cancel(&server, asks, read);
        // Others don't wait behind it, and leave it where it is.
        assert_eq!(said(&server, SameConnection::Asks("b"), read), "1.1");
        assert_eq!(said(&server, SameConnection::Any, read), "1.2");
        // Without an answer either, the connection stays the owner's.
        cancel(&server, takes_back, read);
        assert_eq!(said(&server, takes_back, read), "0.3");
        // Then it is as any other, and the one that was used last.
        assert_eq!(said(&server, SameConnection::TakesBack("b"), read), "0.4");
        assert_eq!(server.late.len(), 0);
    });
}

#[test]
fn release_behind_no_question_leaves_its_connection() {
    with_peer([2, 1, usize::MAX], |server, read| {
        cancel(&server, SameConnection::TakesBack("a"), read);
        assert_eq!(server.late.len(), 0);
        assert_eq!(said(&server, SameConnection::TakesBack("a"), read), "1.1");
    });
}

#[test]
fn no_more_than_some_questions_are_late() {
    with_peer([40, 40, usize::MAX], |server, read| {
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
    with_peer([2, 2, usize::MAX], |server, read| {
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
