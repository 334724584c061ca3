use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::*;
use crate::engine::redis::server_of;

/// What a node does when it is asked again on the same connection.
#[derive(Clone, Copy)]
enum Again {
    Closes,
    IsSilent,
}

/// A node of a cluster of one that answers once on each connection.
fn node(again: Again) -> Arc<Server> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for client in listener.incoming() {
            let mut client = client.unwrap();
            await_question(&mut client);
            client.write_all(answer(port).as_bytes()).unwrap();
            await_question(&mut client);
            if matches!(again, Again::IsSilent) {
                silent.push(client);
            }
        }
    });
    server_of(&format!("redis+cluster://127.0.0.1:{port}"))
}

fn await_question(client: &mut TcpStream) {
    let mut come = Vec::new();
    while !come.ends_with(b"SLOTS\r\n") {
        let mut byte = [0];
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        come.extend(byte);
    }
}

fn answer(port: u16) -> String {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let own = format!("own 127.0.0.1:{port}@1 myself,master - 0 0 1 connected 0-16383");
    let (info, nodes) = (bulk("cluster_state:ok"), bulk(&own));
    let (host, id) = (bulk("127.0.0.1"), bulk("own"));
    format!("{info}{nodes}*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n{host}:{port}\r\n{id}")
}

#[test]
fn node_whose_idle_connection_fails_or_is_silent_is_asked_on_another() {
    for again in [Again::Closes, Again::IsSilent] {
        let node = node(again);
        for _ in 0..3 {
            let deadline = Deadline::after(Duration::from_secs(2));
            let mut asking = Asking::all(std::slice::from_ref(&node), &deadline);
            let said = asking.next(&deadline);
            assert!(said.is_some_and(|(_, view)| view.is_ok_and(|view| view.is_usable())));
            assert!(asking.next(&deadline).is_none(), "it was asked once");
        }
    }
}
