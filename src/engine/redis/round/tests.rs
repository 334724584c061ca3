use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::engine::redis::server_of;

/// What a server does when it is asked again on the same connection.
#[derive(Clone, Copy)]
enum Again {
    Closes,
    IsSilent,
}

/// A server that answers once on each connection.
fn server(again: Again) -> Arc<Server> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for client in listener.incoming() {
            let mut client = client.unwrap();
            await_question(&mut client);
            client.write_all(b"+PONG\r\n").unwrap();
            await_question(&mut client);
            if matches!(again, Again::IsSilent) {
                silent.push(client);
            }
        }
    });
    server_of(&format!("redis://127.0.0.1:{port}"))
}

fn await_question(client: &mut TcpStream) {
    let mut come = Vec::new();
    while !come.ends_with(b"PING\r\n") {
        let mut byte = [0];
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        come.extend(byte);
    }
}

#[test]
fn server_whose_idle_connection_fails_or_is_silent_is_asked_on_another() {
    for again in [Again::Closes, Again::IsSilent] {
        let (server, ping) = (server(again), ::redis::cmd("PING"));
        for _ in 0..3 {
            let deadline = Deadline::after(Duration::from_secs(2));
            let group = Group::new(vec![server.clone()], &deadline);
            let mut round = group.ask(&ping);
            let said = round.next(&deadline);
            assert!(
                matches!(&said, Some((0, Ok(Value::SimpleString(pong)))) if pong == "PONG"),
                "{said:?}"
            );
            assert!(round.next(&deadline).is_none(), "it was asked once");
        }
    }
}

#[test]
fn group_that_ends_stops_connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = server_of(&format!("redis://:secret@127.0.0.1:{port}"));
    let group = Group::new(vec![server], &Deadline::after(Duration::from_secs(60)));
    let ping = ::redis::cmd("PING");
    let round = group.ask(&ping);
    let (mut client, _) = listener.accept().unwrap();
    drop(round);
    drop(group);
    let patience = Duration::from_secs(20);
    client.set_read_timeout(Some(patience)).unwrap();
    let end = client.read_to_end(&mut Vec::new());
    assert!(end.is_ok(), "it waits for the server's answer: {end:?}");
}
