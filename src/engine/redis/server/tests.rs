//! What a server says to a command, told apart from what never reached it.

use super::*;
use crate::base::options::Options;
use crate::engine::redis::address::{self, At};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

fn server_at(listener: &TcpListener) -> Arc<Server> {
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let address = address::parse(&url).unwrap();
    let settings = Settings::new(&address, &Options::default()).unwrap();
    let At::One(endpoint) = address.at else {
        panic!("it is one")
    };
    Arc::new(Server::new(endpoint, Arc::new(settings)).unwrap())
}

fn unanswered(server: &Arc<Server>) -> Unanswered<Failure> {
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
